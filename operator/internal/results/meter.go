package results

import (
	"cmp"
	"math"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
)

const (
	// maxResourceBins bounds a pod's series, and with it the memory of a meter and the size of what
	// it sends, however long the window is. At 512 seconds and more, a bin is the mean of several
	// readings. Means, maxima and shares of the window are of the readings themselves.
	maxResourceBins = 512
	// aroundWindow is how much of warm-up and cool-down is read, too; at least leastAfter, since
	// the window's end lies between two readings.
	aroundWindow = 5 * time.Second
	leastAfter   = time.Second
	// shortest time between two readings whose rate counts as one of a second.
	shortest = 500 * time.Millisecond
	// usualPeriod of a limit, where the kernel does not say.
	usualPeriod = 100 * time.Millisecond
)

// resourceIntervals are the widths of bins.
var resourceIntervals = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
}

// Meter turns a pod's readings into its Resources. Meter assumes that a counter rises evenly
// between two readings. So the error of the window's part is at most what the counter rises in a
// second, at each end. A counter that has fallen has begun anew: its rise between the two readings
// is unknown.
//
// Its memory is bounded by maxResourceBins, some 30 KiB for each container. It is not safe for
// concurrent use.
type Meter struct {
	measure    time.Duration
	from, to   time.Duration
	interval   time.Duration
	containers map[string]*containerMeter
	order      []string
	pod        track
	node       NodeUse
	pressure   bool
	unmeasured []string
}

// containerMeter keeps what is read of one container.
type containerMeter struct {
	track
	use    ContainerUse
	period time.Duration
	// waitsUnknown: some reading did not have how long threads waited.
	waitsUnknown bool
	memory       []int64 // greatest in each bin; -1: no reading
	pageCache    []int64 // the same
	// diskUnknown says why some reading had no counters of disks.
	diskUnknown string
}

// The counters of a container's track, and of a pod's.
const (
	cpuNanos = iota
	throttledNanos
	throttledPeriods
	waitedNanos
	canaryWakes
	canaryLate
	diskRead
	diskWritten
	containerCounters
)

const (
	received = iota
	sent
	busy
	steal
	total
	interrupts
	agentNanos
	switches
	pressureNanos
	energyMicros
	podCounters
)

// NewMeter returns a meter for a run with these windows and a pod with these containers.
func NewMeter(w timeline.Windows, containers []string) *Meter {
	m := &Meter{measure: w.Measure, from: -min(w.WarmUp, aroundWindow).Truncate(time.Second), containers: map[string]*containerMeter{}, order: containers}
	m.to = w.Measure.Truncate(time.Second) + max(leastAfter, min(w.CoolDown, aroundWindow).Truncate(time.Second))
	if m.to < w.Measure+leastAfter/2 {
		m.to += time.Second
	}
	for _, m.interval = range resourceIntervals {
		if int((m.to-m.from)/m.interval)+2 <= maxResourceBins {
			break
		}
	}
	first := m.from.Truncate(m.interval)
	if first > m.from { // Truncate goes towards 0
		first -= m.interval
	}
	bins := int((m.to - first + m.interval - 1) / m.interval)
	newTrack := func(counters int) track {
		t := track{measure: w.Measure, first: first, interval: m.interval, window: make([]float64, counters), covered: make([]float64, bins)}
		for range bins {
			t.bins = append(t.bins, make([]float64, counters))
		}
		return t
	}
	m.pod = newTrack(podCounters)
	for _, name := range containers {
		c := &containerMeter{track: newTrack(containerCounters), use: ContainerUse{Name: name}, memory: make([]int64, bins), pageCache: make([]int64, bins)}
		for i := range c.memory {
			c.memory[i], c.pageCache[i] = -1, -1
		}
		m.containers[name] = c
	}
	return m
}

// Span returns the first and the last instant of readings, relative to t = 0. There is one each
// second.
func (m *Meter) Span() (from, to time.Duration) { return m.from, m.to }

// Unmeasured notes why something cannot be read. The same text is noted once.
func (m *Meter) Unmeasured(why string) {
	if !slices.Contains(m.unmeasured, why) && len(m.unmeasured) < 16 {
		m.unmeasured = append(m.unmeasured, why)
	}
}

// Container takes in a reading of a container that the meter was made for. Readings come in order.
func (m *Meter) Container(name string, r ContainerReading) {
	c := m.containers[name]
	risen, seconds, inWindow := c.add(r.At, []float64{
		cpuNanos: float64(r.CPU), throttledNanos: float64(r.Throttled), throttledPeriods: float64(r.ThrottledPeriods), waitedNanos: float64(r.Waited),
		canaryWakes: float64(r.Wakes), canaryLate: float64(r.LateWakes), diskRead: float64(r.DiskRead), diskWritten: float64(r.DiskWritten),
	})
	if inWindow && seconds >= shortest.Seconds() {
		c.use.CPUMaxCores = max(c.use.CPUMaxCores, risen[cpuNanos]/1e9/seconds)
	}
	if r.At >= -shortest && r.At <= m.measure+shortest {
		c.use.MemoryMaxBytes, c.use.MemoryPeakBytes = max(c.use.MemoryMaxBytes, r.Memory), max(c.use.MemoryPeakBytes, r.Peak)
		c.use.PageCacheMaxBytes = max(c.use.PageCacheMaxBytes, r.PageCache)
		c.use.LimitCores = 0
		if r.Quota > 0 && r.Period > 0 {
			c.use.LimitCores = float64(r.Quota) / float64(r.Period)
		}
	}
	c.waitsUnknown = c.waitsUnknown || r.WaitsUnknown
	c.use.DiskFrom = r.DiskFrom
	if r.DiskFrom == "" {
		c.diskUnknown = cmp.Or(c.diskUnknown, r.DiskUnknown, "its launcher does not count what disks read and write")
	}
	c.period = cmp.Or(r.Period, usualPeriod)
	if i := c.bin(r.At); i >= 0 && i < len(c.memory) {
		c.memory[i], c.pageCache[i] = max(c.memory[i], r.Memory), max(c.pageCache[i], r.PageCache)
	}
}

// Pod takes in a reading of the pod's network and its node.
func (m *Meter) Pod(r PodReading) {
	risen, seconds, inWindow := m.pod.add(r.At, []float64{
		received: float64(r.Received), sent: float64(r.Sent), busy: float64(r.Busy), steal: float64(r.Steal), total: float64(r.Total),
		interrupts: float64(r.Interrupts), agentNanos: float64(r.Agent),
		switches: float64(r.Switches), pressureNanos: float64(r.Pressure),
		energyMicros: float64(r.EnergyMicros),
	})
	m.node.EnergyUnmeasured = cmp.Or(m.node.EnergyUnmeasured, r.EnergyUnknown)
	m.node.CPUs, m.node.Machine, m.pressure = r.CPUs, r.Machine, r.HasPressure
	if inWindow && seconds >= shortest.Seconds() && risen[total] > 0 {
		m.node.BusyMaxShare = max(m.node.BusyMaxShare, risen[busy]/risen[total])
		m.node.StealMaxShare = max(m.node.StealMaxShare, stolen(risen))
	}
}

// Resources puts together what was read by now.
func (m *Meter) Resources() *Resources {
	r := &Resources{Seconds: m.pod.seconds, Containers: []ContainerUse{}, Node: m.node, Unmeasured: m.unmeasured}
	for _, name := range m.order {
		use := m.containers[name].result()
		r.Seconds = min(r.Seconds, use.Seconds)
		r.CPUMeanCores += use.CPUMeanCores
		r.CPUMaxCores += use.CPUMaxCores
		r.MemoryMaxBytes += use.MemoryMaxBytes
		r.PageCacheMaxBytes += use.PageCacheMaxBytes
		r.ThrottledShare = max(r.ThrottledShare, use.ThrottledShare)
		r.Containers = append(r.Containers, use)
	}
	if len(m.order) > 1 {
		r.CPUMaxCores = m.togetherMax(r.CPUMaxCores)
	}
	w := m.pod.window
	r.Node.Seconds = rounded(m.pod.seconds)
	r.ReceivedBytes, r.SentBytes = int64(math.Round(w[received])), int64(math.Round(w[sent]))
	if w[total] > 0 {
		r.Node.BusyShare, r.Node.StealShare = rounded(w[busy]/w[total]), rounded(stolen(w))
		r.Node.InterruptShare = rounded(w[interrupts] / w[total])
	}
	r.Node.BusyMaxShare, r.Node.StealMaxShare = rounded(r.Node.BusyMaxShare), rounded(r.Node.StealMaxShare)
	if m.pod.seconds > 0 {
		r.AgentMeanCores = rounded(w[agentNanos] / 1e9 / m.pod.seconds)
		r.Node.SwitchesPerSecond = math.Round(w[switches] / m.pod.seconds)
		if m.node.EnergyUnmeasured == "" {
			joules := rounded(w[energyMicros] / 1e6)
			r.Node.EnergyJoules = &joules
		}
		if m.pressure {
			share := rounded(w[pressureNanos] / 1e9 / m.pod.seconds)
			r.Node.PressureShare = &share
		}
	}
	r.Seconds, r.CPUMeanCores, r.CPUMaxCores = rounded(r.Seconds), rounded(r.CPUMeanCores), rounded(r.CPUMaxCores)
	r.Series = m.series()
	r.addDisks()
	for _, name := range m.order {
		if why := m.containers[name].diskUnknown; why != "" && r.DiskReadBytes == nil && m.containers[name].last != nil {
			r.Unmeasured = append(slices.Clip(r.Unmeasured), "container "+name+disksUnmeasured+why)
		}
	}
	r.OverTime = overTime([]*Resources{r}, m.measure.Milliseconds())
	return r
}

// disksUnmeasured is in every text of Unmeasured about a container's disks.
const disksUnmeasured = ": disks: "

// addDisks adds up the bytes that disks read and wrote for the containers, if all of them are
// known.
func (r *Resources) addDisks() {
	var read, written int64
	for _, c := range r.Containers {
		if c.DiskFrom == "" {
			return
		}
		read, written = read+c.DiskReadBytes, written+c.DiskWrittenBytes
	}
	if len(r.Containers) > 0 {
		r.DiskReadBytes, r.DiskWrittenBytes = &read, &written
	}
}

// togetherMax is the most that all containers together used in one second. It is at most the sum of
// their maxima, which may lie in different seconds. If bins are wider than a second, only that sum
// is known.
func (m *Meter) togetherMax(sum float64) float64 {
	if m.interval != time.Second {
		return sum
	}
	most := 0.0
	for i := range m.pod.covered {
		if start := m.pod.first + time.Duration(i)*m.interval; start < 0 || start+m.interval > m.measure {
			continue
		}
		cores := 0.0
		for _, c := range m.containers {
			cores += c.rate(i, cpuNanos) / 1e9
		}
		most = max(most, cores)
	}
	return min(most, sum)
}

// result is the container's part of the window.
func (c *containerMeter) result() ContainerUse {
	use := c.use
	if c.seconds > 0 {
		use.CPUMeanCores = c.window[cpuNanos] / 1e9 / c.seconds
		use.ThrottledShare = min(1, c.window[throttledPeriods]*c.period.Seconds()/c.seconds)
		if wakes := c.window[canaryWakes]; wakes > 0 {
			late := rounded(c.window[canaryLate] / wakes)
			use.LateShare, use.Wakes = &late, int64(math.Round(wakes))
		}
		if !c.waitsUnknown {
			waited := rounded(c.window[waitedNanos] / 1e9)
			use.WaitedSeconds = &waited
		}
	}
	if c.diskUnknown != "" {
		use.DiskFrom = ""
	} else {
		use.DiskReadBytes, use.DiskWrittenBytes = int64(math.Round(c.window[diskRead])), int64(math.Round(c.window[diskWritten]))
	}
	use.ThrottledPeriods, use.ThrottledSeconds = int64(math.Round(c.window[throttledPeriods])), rounded(c.window[throttledNanos]/1e9)
	use.Seconds, use.CPUMeanCores, use.CPUMaxCores, use.ThrottledShare = rounded(c.seconds), rounded(use.CPUMeanCores), rounded(use.CPUMaxCores), rounded(use.ThrottledShare)
	return use
}

// series writes the bins down.
func (m *Meter) series() *ResourceSeries {
	s := &ResourceSeries{IntervalMillis: m.interval.Milliseconds(), FirstMillis: m.pod.first.Milliseconds()}
	for i := range m.pod.covered {
		cpu, memory, throttled, pages, read, written := int64(0), int64(0), int64(0), int64(0), int64(0), int64(0)
		for _, name := range m.order {
			c := m.containers[name]
			if !c.known(i) {
				cpu, throttled = -1, -1
			}
			if !c.known(i) || c.diskUnknown != "" {
				read, written = -1, -1
			}
			if c.memory[i] < 0 {
				memory, pages = -1, -1
			}
			if cpu >= 0 {
				cpu += int64(math.Round(c.rate(i, cpuNanos) / 1e6))
				throttled = max(throttled, permille(c.rate(i, throttledPeriods)*c.period.Seconds()))
			}
			if memory >= 0 {
				memory, pages = memory+c.memory[i]>>10, pages+c.pageCache[i]>>10
			}
			if read >= 0 {
				read, written = read+int64(math.Round(c.bins[i][diskRead])), written+int64(math.Round(c.bins[i][diskWritten]))
			}
		}
		s.PageCacheKiB, s.DiskReadBytes, s.DiskWrittenBytes = append(s.PageCacheKiB, pages), append(s.DiskReadBytes, read), append(s.DiskWrittenBytes, written)
		s.CPUMillicores, s.MemoryKiB, s.ThrottledPermille = append(s.CPUMillicores, cpu), append(s.MemoryKiB, memory), append(s.ThrottledPermille, throttled)
		in, out, worked, robbed := int64(-1), int64(-1), int64(-1), int64(-1)
		if b := m.pod.bins[i]; m.pod.known(i) {
			in, out = int64(math.Round(b[received])), int64(math.Round(b[sent]))
			if b[total] > 0 {
				worked, robbed = permille(b[busy]/b[total]), permille(stolen(b))
			}
		}
		s.ReceivedBytes, s.SentBytes = append(s.ReceivedBytes, in), append(s.SentBytes, out)
		s.BusyPermille, s.StealPermille = append(s.BusyPermille, worked), append(s.StealPermille, robbed)
	}
	return s
}

// stolen is the share of the wanted processor time that the hypervisor gave to others. A processor
// that idles loses nothing.
func stolen(counters []float64) float64 {
	wanted := counters[busy] + counters[steal]
	if wanted == 0 {
		return 0
	}
	return counters[steal] / wanted
}

// rounded rounds to six decimals: further digits are noise, and take space.
func rounded(x float64) float64 { return math.Round(x*1e6) / 1e6 }

func permille(share float64) int64 { return int64(math.Round(1000 * min(share, 1))) }

// track keeps some counters that are read together: how much they rose in the window and in each
// bin.
type track struct {
	measure         time.Duration
	first, interval time.Duration

	at      time.Duration
	last    []float64 // nil before the first reading
	seconds float64   // of the window between readings
	window  []float64 // by how much each rose in the window
	covered []float64 // seconds of each bin between readings
	bins    [][]float64
}

// add takes in a reading. It returns how much each counter rose since the last one, in how many
// seconds, and whether any of them lie in the window. A reading that contradicts the previous one,
// such as a counter that fell, has no rise.
func (t *track) add(at time.Duration, values []float64) (risen []float64, seconds float64, inWindow bool) {
	before, from := t.last, t.at
	t.last, t.at = values, at
	if before == nil || at <= from {
		return nil, 0, false
	}
	risen = make([]float64, len(values))
	for i, v := range values {
		if risen[i] = v - before[i]; risen[i] < 0 {
			return nil, 0, false
		}
	}
	part := func(start, end time.Duration, covered *float64, into []float64) bool {
		overlap := min(at, end) - max(from, start)
		if overlap <= 0 {
			return false
		}
		*covered += overlap.Seconds()
		for i, r := range risen {
			into[i] += r * float64(overlap) / float64(at-from)
		}
		return true
	}
	inWindow = part(0, t.measure, &t.seconds, t.window)
	for i := max(0, t.bin(from)); i < len(t.bins); i++ {
		start := t.first + time.Duration(i)*t.interval
		if start >= at {
			break
		}
		part(start, start+t.interval, &t.covered[i], t.bins[i])
	}
	return risen, (at - from).Seconds(), inWindow
}

// bin that an instant lies in; there may be no such bin.
func (t *track) bin(at time.Duration) int {
	if at < t.first {
		return -1
	}
	return int((at - t.first) / t.interval)
}

// known reports whether at least half of a bin was measured.
func (t *track) known(bin int) bool { return t.covered[bin] >= t.interval.Seconds()/2 }

// rate of a counter in a bin, by the second. 0 where nothing was measured.
func (t *track) rate(bin, counter int) float64 {
	if t.covered[bin] == 0 {
		return 0
	}
	return t.bins[bin][counter] / t.covered[bin]
}
