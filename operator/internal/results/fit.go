package results

import (
	"fmt"
	"math"
	"slices"
)

// WholeLimit is the most that a trial's results may take as JSON where they wait for a store, in
// bytes. Anyone who may write these ConfigMaps decides what their reader unpacks: Go values take
// some eight times as much as the JSON.
const WholeLimit = 8 << 20

// FitTrial encodes a trial in limit bytes at most, for a ConfigMap. When it is too large it leaves
// parts out, one after the other until it fits, and names them in LeftOut. First resources over
// time are made coarser. Then the logs go, resources over time, the links of single pairs of pods,
// the timeline, and the latency histogram. The numbers of the summary always stay; FitTrial fails
// when not even they fit.
func FitTrial(t Trial, limit int) ([]byte, error) {
	parts := []struct {
		name string
		drop func() bool // false: there was nothing to drop
	}{
		{"", func() bool { return true }},
		{fmt.Sprintf("pods.resources.series finer than %d bins", coarseBins), func() bool { return t.changeSeries((*ResourceSeries).coarser) }},
		{"logs", func() bool { had := len(t.Logs) > 0; t.Logs = nil; return had }},
		{"pods.resources.series", func() bool { return t.changeSeries(func(*ResourceSeries) *ResourceSeries { return nil }) }},
		{"pods.resources.overTime", t.dropOverTime},
		{"network.links", func() bool {
			if t.Network == nil || len(t.Network.Links) == 0 {
				return false
			}
			n := *t.Network
			n.Links = nil
			t.Network = &n
			return true
		}},
		{"timeline", func() bool { had := t.Timeline != nil; t.Timeline = nil; return had }},
		{"latency", func() bool { had := t.Latency != ""; t.Latency = ""; return had }},
	}
	size := 0
	for _, p := range parts {
		if !p.drop() {
			continue
		}
		if p.name != "" {
			t.LeftOut = append(t.LeftOut[:len(t.LeftOut):len(t.LeftOut)], p.name)
		}
		b, err := EncodeTrial(t)
		if err != nil {
			return nil, err
		}
		if len(b) <= limit {
			return b, nil
		}
		size = len(b)
	}
	return nil, fmt.Errorf("the results of trial %s take %d bytes even without logs, links, timeline and histogram; %d are allowed", t.Name, size, limit)
}

// coarseBins is the number of bins of a pod's resources over time, if the results are too long with
// all bins.
const coarseBins = 64

// changeSeries changes the pods' resources over time, in copies. It reports whether that changed
// anything.
func (t *Trial) changeSeries(change func(*ResourceSeries) *ResourceSeries) (changed bool) {
	t.Pods = slices.Clone(t.Pods)
	for i := range t.Pods {
		if t.Pods[i].Resources == nil || t.Pods[i].Resources.Series == nil {
			continue
		}
		r := *t.Pods[i].Resources
		before := r.Series
		r.Series = change(before)
		changed = changed || r.Series != before
		t.Pods[i].Resources = &r
	}
	return changed
}

// dropOverTime leaves out each pod's resources over time. Those of all pods together stay.
func (t *Trial) dropOverTime() (had bool) {
	t.Pods = slices.Clone(t.Pods)
	for i, p := range t.Pods {
		if p.Resources != nil && len(p.Resources.OverTime) > 0 {
			r := *p.Resources
			r.OverTime, had = nil, true
			t.Pods[i].Resources = &r
		}
	}
	return had
}

// coarser merges bins until there are coarseBins at most. It adds up bytes, keeps the greatest
// reading of memory, and takes the mean of the rest.
func (s *ResourceSeries) coarser() *ResourceSeries {
	n := (len(s.CPUMillicores) + coarseBins - 1) / coarseBins
	if n <= 1 {
		return s
	}
	sum := func(known []int64) int64 {
		total := int64(0)
		for _, v := range known {
			total += v
		}
		return total
	}
	mean := func(known []int64) int64 { return int64(math.Round(float64(sum(known)) / float64(len(known)))) }
	together := func(bins []int64, of func(known []int64) int64) []int64 {
		var out []int64
		for some := range slices.Chunk(bins, n) {
			known := slices.DeleteFunc(slices.Clone(some), func(v int64) bool { return v < 0 })
			if len(known) == 0 || 2*len(known) < len(some) {
				out = append(out, -1)
				continue
			}
			out = append(out, of(known))
		}
		return out
	}
	return &ResourceSeries{
		IntervalMillis: s.IntervalMillis * int64(n), FirstMillis: s.FirstMillis,
		CPUMillicores: together(s.CPUMillicores, mean), MemoryKiB: together(s.MemoryKiB, slices.Max), ThrottledPermille: together(s.ThrottledPermille, mean),
		ReceivedBytes: together(s.ReceivedBytes, sum), SentBytes: together(s.SentBytes, sum),
		BusyPermille: together(s.BusyPermille, mean), StealPermille: together(s.StealPermille, mean),
		PageCacheKiB: together(s.PageCacheKiB, slices.Max), DiskReadBytes: together(s.DiskReadBytes, sum), DiskWrittenBytes: together(s.DiskWrittenBytes, sum),
	}
}
