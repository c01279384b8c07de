package results

import (
	"math"
	"slices"
)

// The resources that a Use is of. Bytes of network and disks are counted in both directions by
// UseNetwork and UseDisk.
const (
	UseCPU             = "CPU"
	UseMemory          = "Memory"
	UsePageCache       = "PageCache"
	UseNetworkReceived = "NetworkReceived"
	UseNetworkSent     = "NetworkSent"
	UseNetwork         = "Network"
	UseDiskRead        = "DiskRead"
	UseDiskWritten     = "DiskWritten"
	UseDisk            = "Disk"
)

// ResourceOverTime is how one resource was spread over the seconds of a window: cores of CPU, bytes
// of memory and page cache, bytes per second of network and disks. Percentiles are of the bins of
// the series that lie in the window, by nearest rank.
type ResourceOverTime struct {
	Resource string  `json:"resource"`
	Mean     float64 `json:"mean"`
	P50      float64 `json:"p50"`
	P95      float64 `json:"p95"`
	P99      float64 `json:"p99"`
	Max      float64 `json:"max"`
}

// PartUse is what the pods of one part of a trial used together: the use of all pods is first added
// up in each second, and then summarized over time.
type PartUse struct {
	// Part is replica, component or client; empty: all pods of the trial.
	Part string `json:"part,omitempty"`
	Pods int    `json:"pods"`
	// Seconds of the window that the readings of every pod cover.
	Seconds  float64            `json:"seconds"`
	OverTime []ResourceOverTime `json:"overTime,omitempty"`
}

// usable says how to read a resource from a pod's Resources and its series.
type usable struct {
	name string
	// level: an amount at an instant, and no rate.
	level bool
	// total of a rate over the window, in unit times seconds; false: not known.
	total func(*Resources) (float64, bool)
	// bins are those of the series. The function unit gives the factor from a bin's value to the
	// resource's unit, by the bin's length in seconds.
	bins func(*ResourceSeries) [][]int64
	unit func(seconds float64) float64
}

func perSecond(seconds float64) float64 { return 1 / seconds }

func always(x float64) func(float64) float64 { return func(float64) float64 { return x } }

// usables are all resources.
var usables = []usable{
	{UseCPU, false, func(r *Resources) (float64, bool) { return r.CPUMeanCores * r.Seconds, true },
		func(s *ResourceSeries) [][]int64 { return [][]int64{s.CPUMillicores} }, always(1e-3)},
	{UseMemory, true, nil, func(s *ResourceSeries) [][]int64 { return [][]int64{s.MemoryKiB} }, always(1 << 10)},
	{UsePageCache, true, nil, func(s *ResourceSeries) [][]int64 { return [][]int64{s.PageCacheKiB} }, always(1 << 10)},
	{UseNetworkReceived, false, func(r *Resources) (float64, bool) { return float64(r.ReceivedBytes), true },
		func(s *ResourceSeries) [][]int64 { return [][]int64{s.ReceivedBytes} }, perSecond},
	{UseNetworkSent, false, func(r *Resources) (float64, bool) { return float64(r.SentBytes), true },
		func(s *ResourceSeries) [][]int64 { return [][]int64{s.SentBytes} }, perSecond},
	{UseNetwork, false, func(r *Resources) (float64, bool) { return float64(r.ReceivedBytes + r.SentBytes), true },
		func(s *ResourceSeries) [][]int64 { return [][]int64{s.ReceivedBytes, s.SentBytes} }, perSecond},
	{UseDiskRead, false, func(r *Resources) (float64, bool) { return known(r.DiskReadBytes) },
		func(s *ResourceSeries) [][]int64 { return [][]int64{s.DiskReadBytes} }, perSecond},
	{UseDiskWritten, false, func(r *Resources) (float64, bool) { return known(r.DiskWrittenBytes) },
		func(s *ResourceSeries) [][]int64 { return [][]int64{s.DiskWrittenBytes} }, perSecond},
	{UseDisk, false, func(r *Resources) (float64, bool) { return known(r.DiskReadBytes, r.DiskWrittenBytes) },
		func(s *ResourceSeries) [][]int64 { return [][]int64{s.DiskReadBytes, s.DiskWrittenBytes} }, perSecond},
}

// known adds up numbers; false: one is not there.
func known(numbers ...*int64) (sum float64, all bool) {
	for _, n := range numbers {
		if n == nil {
			return 0, false
		}
		sum += float64(*n)
	}
	return sum, true
}

// overTime says how the pods' total use was spread over a window of measureMillis, for each
// resource whose use is known. In each bin, all pods are added up.
func overTime(pods []*Resources, measureMillis int64) (all []ResourceOverTime) {
	for _, u := range usables {
		values, ok := u.inWindow(pods, measureMillis)
		if !ok {
			continue
		}
		slices.Sort(values)
		o := ResourceOverTime{
			Resource: u.name, P50: rankOf(values, 50), P95: rankOf(values, 95), P99: rankOf(values, 99), Max: values[len(values)-1],
		}
		for _, v := range values {
			o.Mean += v / float64(len(values))
		}
		if !u.level {
			o.Mean = 0
			for _, r := range pods {
				total, has := u.total(r)
				if ok = has && r.Seconds > 0; !ok {
					break
				}
				o.Mean += total / r.Seconds
			}
		}
		if ok {
			all = append(all, o.rounded(u.name))
		}
	}
	return all
}

// rounded drops fractions of bytes: no reading has them, and they take space.
func (o ResourceOverTime) rounded(resource string) ResourceOverTime {
	round := math.Round
	if resource == UseCPU {
		round = rounded
	}
	for _, x := range []*float64{&o.Mean, &o.P50, &o.P95, &o.P99, &o.Max} {
		*x = round(*x)
	}
	return o
}

// inWindow returns the sums over the pods for each bin in the window in which all pods are known.
// At least half of the bins in the window must be known.
func (u usable) inWindow(pods []*Resources, measureMillis int64) (values []float64, ok bool) {
	if len(pods) == 0 || slices.ContainsFunc(pods, func(r *Resources) bool { return r == nil || r.Series == nil }) {
		return nil, false
	}
	first := pods[0].Series
	if first.IntervalMillis <= 0 {
		return nil, false
	}
	scale, bins := u.unit(float64(first.IntervalMillis)/1000), 0
	for i := range first.CPUMillicores {
		start := first.FirstMillis + int64(i)*first.IntervalMillis
		if start < 0 || start+first.IntervalMillis > measureMillis {
			continue
		}
		bins++
		if sum, ok := u.at(pods, i); ok {
			values = append(values, sum*scale)
		}
	}
	return values, len(values) > 0 && 2*len(values) >= bins
}

// at adds the pods up in one bin. It is false if a pod is unknown there, or if its bins differ.
func (u usable) at(pods []*Resources, i int) (sum float64, ok bool) {
	first := pods[0].Series
	for _, r := range pods {
		s := r.Series
		if s.FirstMillis != first.FirstMillis || s.IntervalMillis != first.IntervalMillis {
			return 0, false
		}
		for _, bins := range u.bins(s) {
			if i >= len(bins) || bins[i] < 0 {
				return 0, false
			}
			sum += float64(bins[i])
		}
	}
	return sum, true
}

// rankOf is the p-th percentile of values in order.
func rankOf(values []float64, p float64) float64 {
	return values[max(0, int(math.Ceil(p/100*float64(len(values))))-1)]
}

// UseOf is the total use of the pods of each part of a trial, and of all pods. It leaves out a part
// if the use of one of its pods is unknown.
func UseOf(pods []Pod, measureNanos int64) (all []PartUse) {
	parts := []string{""}
	for _, p := range pods {
		if !slices.Contains(parts, p.Part) {
			parts = append(parts, p.Part)
		}
	}
	for _, part := range parts {
		use := PartUse{Part: part}
		var of []*Resources
		for _, p := range pods {
			if part == "" || p.Part == part {
				of = append(of, p.Resources)
			}
		}
		if use.OverTime = overTime(of, measureNanos/1e6); len(use.OverTime) == 0 {
			continue
		}
		use.Pods, use.Seconds = len(of), of[0].Seconds
		for _, r := range of {
			use.Seconds = min(use.Seconds, r.Seconds)
		}
		all = append(all, use)
	}
	return all
}
