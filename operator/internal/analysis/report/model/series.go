package model

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// pointTimes is a PointSeries in the making: the timelines of the point's valid trials, and when
// faults were confirmed in them.
type pointTimes struct {
	point         int32
	coordinates   map[string]string
	trials        []timedTrial
	measureMillis float64
	marks         map[markKey][]float64
	// confirmed is when the last pod confirmed an action that takes time, over the trials.
	confirmed map[markKey]float64
	use       []*partTimes
}

// timedTrial is a trial's timeline, and its place in the order in which trials ran.
type timedTrial struct {
	*results.Timeline
	name   string
	number int32
}

type markKey struct {
	fault  string
	time   int
	kind   timeline.Kind
	object string
}

// begins is when a fault's action took effect. For a reset, it is when the reset began, since the
// confirmation is the return of the machine. For Chaos Mesh, it is when the manager asked for the
// action, since Chaos Mesh confirms up to some seconds late.
func begins(f results.FaultRecord) float64 {
	if timeline.Kind(f.Kind).ConfirmedLate() {
		return f.StartedMillis
	}
	return f.ConfirmedMillis
}

// addTimes takes in a valid trial with a timeline that shows a change: the trial had faults, or its
// load was to change.
func (d *Details) addTimes(t results.Trial) {
	first, last := map[markKey]float64{}, map[markKey]float64{}
	for _, f := range t.Faults {
		if f.Skipped || f.Error != "" {
			continue
		}
		k := markKey{f.Fault, timeOf(f.ID), timeline.Kind(f.Kind), f.Object}
		if at, seen := first[k]; !seen || begins(f) < at {
			first[k] = begins(f)
		}
		if k.kind.ConfirmedLate() && !k.kind.ByChaosMesh() {
			last[k] = max(last[k], f.ConfirmedMillis)
		}
	}
	if len(first) == 0 && !t.ChangingLoad || t.Timeline == nil || len(t.Timeline.Committed) == 0 {
		return
	}
	i := slices.IndexFunc(d.times, func(p *pointTimes) bool { return p.point == t.PointIndex })
	if i < 0 {
		d.times = append(d.times, &pointTimes{point: t.PointIndex, coordinates: t.Coordinates, marks: map[markKey][]float64{}, confirmed: map[markKey]float64{}})
		i = len(d.times) - 1
	}
	p := d.times[i]
	p.trials = append(p.trials, timedTrial{t.Timeline, t.Name, t.Number})
	p.measureMillis = max(p.measureMillis, float64(t.MeasureNanos)/1e6)
	p.addUse(t)
	for k, at := range first {
		p.marks[k] = append(p.marks[k], at)
		p.confirmed[k] = max(p.confirmed[k], last[k])
	}
}

// timeOf reads the occurrence of a fault from an action's ID, "<fault>/<time>/<kind>/<pod>". It is
// 1 if the ID has none.
func timeOf(id string) int {
	if parts := strings.Split(id, "/"); len(parts) == 4 {
		if n, err := strconv.Atoi(parts[1]); err == nil {
			return n
		}
	}
	return 1
}

// The widths of bins over time, and what decides between them. There are only as many bins as a
// plot of this size can show. Up to half a second, a bin has enough transactions that the line
// shows the system and not how its commits fall into bins.
var binWidths = []int64{100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000}

const (
	mostBins     = 400
	enoughInBin  = 20
	widestForFew = 500
)

// series puts the timelines together, bin by bin. Bins that not all trials have are left out.
func (p *pointTimes) series() results.PointSeries {
	slices.SortStableFunc(p.trials, func(a, b timedTrial) int {
		return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.name, b.name))
	})
	base := p.trials[0].IntervalMillis
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	var committed int64
	for _, t := range p.trials {
		from, to = max(from, t.FirstMillis), min(to, t.FirstMillis+int64(len(t.Committed))*base)
		for _, c := range t.Committed {
			committed += c
		}
	}
	perMilli := float64(committed) / float64(len(p.trials)) / float64(max(1, to-from))
	width := binWidths[len(binWidths)-1]
	for _, w := range binWidths {
		if w >= base && (to-from)/w <= mostBins && (w >= widestForFew || perMilli*float64(w) >= enoughInBin) {
			width = w
			break
		}
	}
	s := results.PointSeries{
		Point: p.point, Coordinates: p.coordinates, Trials: len(p.trials), IntervalMillis: width, MeasureMillis: p.measureMillis, Marks: p.faultMarks(),
		FirstMillis: int64(math.Ceil(float64(from)/float64(width))) * width,
	}
	for _, t := range p.trials {
		s.ByTrial = append(s.ByTrial, results.TrialSeries{Name: t.name})
	}
	for _, u := range p.use {
		s.Use = append(s.Use, u.series())
	}
	if !slices.ContainsFunc(p.trials, func(t timedTrial) bool { return t.Offered == nil }) {
		s.Offered = []float64{}
	}
	for start := s.FirstMillis; start+width <= to; start += width {
		addBin(&s, p.trials, start)
	}
	return s
}

// addBin adds the bin that starts at start.
func addBin(s *results.PointSeries, trials []timedTrial, start int64) {
	var sum, committed, micros, offered float64
	least, greatest := math.Inf(1), 0.0
	for k, t := range trials {
		i := (start - t.FirstMillis) / t.IntervalMillis
		var inBin int64
		var microsInBin float64
		for j := i; j < i+s.IntervalMillis/t.IntervalMillis; j++ {
			inBin += t.Committed[j]
			microsInBin += float64(t.LatencySumMicros[j])
			if s.Offered != nil {
				offered += float64(t.Offered[j])
			}
		}
		s.ByTrial[k].Latency = append(s.ByTrial[k].Latency, meanMillis(microsInBin, float64(inBin)))
		micros += microsInBin
		rate := float64(inBin) * 1000 / float64(s.IntervalMillis)
		sum, least, greatest = sum+rate, math.Min(least, rate), math.Max(greatest, rate)
		committed += float64(inBin)
	}
	s.Throughput = append(s.Throughput, sum/float64(len(trials)))
	if s.Offered != nil {
		s.Offered = append(s.Offered, offered*1000/float64(s.IntervalMillis)/float64(len(trials)))
	}
	s.ThroughputMin, s.ThroughputMax = append(s.ThroughputMin, least), append(s.ThroughputMax, greatest)
	s.Latency, s.Committed = append(s.Latency, meanMillis(micros, committed)), append(s.Committed, int64(committed))
}

// meanMillis is 0 where nothing was committed.
func meanMillis(micros, committed float64) float64 {
	if committed == 0 {
		return 0
	}
	return micros / committed / 1000
}

// faultMarks in the order of time.
func (p *pointTimes) faultMarks() []results.FaultMark {
	var marks []results.FaultMark
	for k, at := range p.marks {
		at = slices.Sorted(slices.Values(at))
		marks = append(marks, results.FaultMark{
			Fault: k.fault, Time: k.time, Kind: string(k.kind), Object: k.object, Ends: k.kind.Ends(),
			Millis: (at[(len(at)-1)/2] + at[len(at)/2]) / 2, MinMillis: at[0], MaxMillis: at[len(at)-1],
			ConfirmedMillis: p.confirmed[k],
		})
	}
	slices.SortFunc(marks, func(a, b results.FaultMark) int {
		return cmp.Or(cmp.Compare(a.Millis, b.Millis), cmp.Compare(a.Fault, b.Fault), cmp.Compare(a.Time, b.Time), cmp.Compare(a.Kind, b.Kind))
	})
	return marks
}
