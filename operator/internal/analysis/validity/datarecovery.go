package validity

import (
	"math"
	"slices"

	"assay.dev/assay/operator/internal/results"
)

const (
	// beforeMillis is the length of the time before a fault that gives the usual traffic of its
	// pods.
	beforeMillis = 5000
	// restoredShare is the share of the data beyond its usual traffic that a pod must have received
	// to count as restored. The rest may be a fluctuation of that traffic.
	restoredShare = 0.95
)

// addDataRecovery adds to each occurrence of a fault the data of pods that were away and came back.
// The data are the bytes that they received, and wrote to disks, until the end of the window. Their
// usual traffic before the fault is left out. The numbers come from resources over time, in bins of
// a second.
func addDataRecovery(t *results.Trial, all []results.Recovery) {
	for i := range all {
		r := &all[i]
		for _, begin := range t.Faults {
			if begin.Fault != r.Fault || begin.Time != r.Time || begin.ID == "" || begin.Error != "" || begin.Skipped {
				continue
			}
			end := slices.IndexFunc(t.Faults, func(f results.FaultRecord) bool { return f.Ends == begin.ID && f.Error == "" && f.ConfirmedMillis > 0 })
			pod := slices.IndexFunc(t.Pods, func(p results.Pod) bool { return p.Name == begin.Pod })
			if end < 0 || pod < 0 || t.Pods[pod].Resources == nil || t.Pods[pod].Resources.Series == nil {
				continue
			}
			s := restoring{t.Pods[pod].Resources.Series, begin.ConfirmedMillis, t.Faults[end].ConfirmedMillis, float64(t.MeasureNanos) / 1e6}
			received, took, ok := s.extra(s.series.ReceivedBytes)
			if !ok {
				continue
			}
			if r.Data == nil {
				r.Data = &results.DataRecovery{BackMillis: s.back - r.ConfirmedMillis}
			}
			d := r.Data
			d.Pods++
			d.ReceivedBytes, d.RestoreMillis = d.ReceivedBytes+received, max(d.RestoreMillis, took)
			d.BackMillis = min(d.BackMillis, s.back-r.ConfirmedMillis)
			if written, _, ok := s.extra(s.series.DiskWrittenBytes); ok {
				d.DiskWrittenBytes += written
			}
		}
	}
}

// restoring is a pod that was away from one instant to another, in milliseconds from t = 0.
type restoring struct {
	series                 *results.ResourceSeries
	away, back, windowEnds float64
}

// extra is how many bytes beyond its usual traffic the pod had after its return, and how long it
// took until nearly all had come. Both are unknown if there is no bin before the fault, or if some
// bin after it is unknown.
func (r restoring) extra(bins []int64) (bytes int64, millis float64, ok bool) {
	width := float64(r.series.IntervalMillis)
	var usual, usualBins float64
	var after []float64
	first := 0.0 // end of the first bin in which the pod was back
	for i, n := range bins {
		start := float64(r.series.FirstMillis) + float64(i)*width
		switch {
		case start >= r.away-beforeMillis && start+width <= r.away:
			if n >= 0 {
				usual, usualBins = usual+float64(n), usualBins+1
			}
		case start+width > r.back && start+width <= r.windowEnds:
			if n < 0 && len(after) > 0 {
				return 0, 0, false
			}
			if len(after) == 0 {
				first = start + width
			}
			after = append(after, max(0, float64(n)))
		}
	}
	if usualBins == 0 || len(after) == 0 {
		return 0, 0, false
	}
	total := 0.0
	for i := range after {
		after[i] -= usual / usualBins
		total += after[i]
	}
	if total <= 0 {
		return 0, 0, true
	}
	sum := 0.0
	for i, n := range after {
		if sum += n; sum >= restoredShare*total {
			return int64(math.Round(total)), first + float64(i)*width - r.back, true
		}
	}
	return int64(math.Round(total)), r.windowEnds - r.back, true
}
