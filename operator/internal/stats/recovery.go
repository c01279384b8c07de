package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"assay.dev/assay/operator/internal/results"
)

// RecoveryRule says what counts as a dip and as a recovery.
type RecoveryRule struct {
	// FromMillis and ToMillis bound the data that is used, relative to t = 0: the measurement window. Bins that are not all in it are left out.
	FromMillis, ToMillis float64
	// BeforeMillis is how much data before the fault gives the throughput to compare with. Default 5000.
	BeforeMillis float64
	// Share of the throughput before, above 0 and at most 1: below it is a dip, at it or above is back. Default 0.9.
	Share float64
	// DipBins is over how many bins throughput is averaged to find a dip. Default 3.
	DipBins int
	// BackBins is over how many bins throughput is averaged to find the recovery. Default 10 (1 s), so that one burst is none.
	BackBins int
}

// Recovery is what a fault did to throughput. Instants are in milliseconds after the fault was confirmed, with the resolution of the timeline (100 ms): that
// of a bin is its start, and 0 for the bin that the fault lies in.
//
// Subtleness ahead: a bin of a slow system holds few transactions, and three of them below 90% in a row are then no event. So a dip must also be deeper than
// noise.
type Recovery struct {
	// Before is the mean throughput before the fault, in transactions per second.
	Before float64
	// Dipped: throughput fell. Without a dip, all that follows is 0, and the fault did nothing that this timeline shows (NoDip).
	Dipped bool
	// DetectMillis until throughput fell: how long the system kept serving as if there were no fault.
	DetectMillis float64
	// Depth of the dip: 1 - (least mean of DipBins bins)/Before, from above 1 - Share to 1 (nothing was served).
	Depth float64
	// Recovered: throughput came back.
	Recovered bool
	// RecoverMillis until throughput was back. When it was not (NotRecovered), until the end of the data: it took longer than that.
	RecoverMillis float64
	// Lost transactions, from the start of the dip to the recovery or the end of the data: the sum of Before less what was served. Bins above Before
	// count against it, as noise and as work that was made up for; the positive parts alone would call noise a loss.
	Lost float64
	// Cautions: NoDip, NotRecovered, ShortBaseline, NoisyBaseline.
	Cautions []Caution
}

// withDefaults fills in what is 0 and says what is wrong.
func (r RecoveryRule) withDefaults() (RecoveryRule, error) {
	if r.BeforeMillis == 0 {
		r.BeforeMillis = 5000
	}
	if r.Share == 0 {
		r.Share = 0.9
	}
	if r.DipBins == 0 {
		r.DipBins = 3
	}
	if r.BackBins == 0 {
		r.BackBins = 10
	}
	switch {
	case !(r.FromMillis < r.ToMillis) || math.IsInf(r.FromMillis, 0) || math.IsInf(r.ToMillis, 0):
		return r, fmt.Errorf("the window from %g to %g ms is empty", r.FromMillis, r.ToMillis)
	case !(r.Share > 0 && r.Share <= 1):
		return r, fmt.Errorf("the share is %g; it must be above 0 and at most 1", r.Share)
	case !(r.BeforeMillis > 0):
		return r, fmt.Errorf("there must be data before the fault, not %g ms", r.BeforeMillis)
	case r.DipBins < 1 || r.BackBins < 1:
		return r, fmt.Errorf("a dip of %d bins and a recovery of %d: each needs one", r.DipBins, r.BackBins)
	}
	return r, nil
}

// Recover measures what a fault did, from the committed transactions of a trial's timeline. confirmedMillis is when the fault was confirmed, relative to t = 0;
// its plan does not matter.
//
// With T(i) the throughput of bin i, and B and S the mean and the standard deviation of the bins that end in the last BeforeMillis before the fault,
//
//	dip:       the first bin from that of the fault on with T(i) < Share B, from which the mean of DipBins bins is below both
//	           Share B and B - 4 S/sqrt(DipBins); where there is none, the mean of BackBins bins and B - 5 S/sqrt(BackBins); then
//	           that of four times as many, with 6 S, and so on, while there are bins
//	recovery:  the first bin after it with T(i) >= Share B, from which the mean of min(T, B) over BackBins bins is at least
//	           Share times what it was before the fault
//	lost:      sum of (B - T(i)) times the length of a bin, from the dip to the recovery
//
// The second bound of the dip is a control chart's (Shewhart 1931; 4 deviations rather than 3, since a hundred means are looked at): noise alone passes it in
// fewer than 1% of trials. Where bins are so noisy that little is below it, as with clients whose think time makes them march in step, an outage of seconds
// would not be: hence the longer looks, each with one deviation more so that it does not find more in noise. The cap at B keeps a burst, as of requests that had waited, from passing for a recovery.
//
// It fails when the rule is wrong, when there is no bin before the fault or after it, or when nothing was served before it.
func Recover(t results.Timeline, confirmedMillis float64, rule RecoveryRule) (Recovery, error) {
	rule, err := rule.withDefaults()
	if err != nil {
		return Recovery{}, fmt.Errorf("recovery: %w", err)
	}
	if t.IntervalMillis <= 0 {
		return Recovery{}, fmt.Errorf("recovery: the timeline's bins are %d ms wide; they must have a width", t.IntervalMillis)
	}
	width := float64(t.IntervalMillis)
	var before, after []float64
	firstAfter := 0.0 // start of the first bin after
	for i, committed := range t.Committed {
		start := float64(t.FirstMillis) + width*float64(i)
		switch end := start + width; {
		case committed < 0:
			return Recovery{}, fmt.Errorf("recovery: bin %d has %d committed transactions", i+1, committed)
		case start < rule.FromMillis || end > rule.ToMillis:
		case end <= confirmedMillis && start >= confirmedMillis-rule.BeforeMillis:
			before = append(before, float64(committed)/width*1000)
		case end > confirmedMillis:
			if len(after) == 0 {
				firstAfter = start
			}
			after = append(after, float64(committed)/width*1000)
		}
	}
	r := Recovery{}
	if len(before) > 0 {
		r.Before = stat.Mean(before, nil)
	}
	if r.Before == 0 || len(after) == 0 {
		return Recovery{}, fmt.Errorf("recovery: %d bins before the fault at %g ms with %g tx/s, and %d after it; there must be throughput before and data after",
			len(before), confirmedMillis, r.Before, len(after))
	}
	if float64(len(before))*width < 1000 {
		r.Cautions = append(r.Cautions, ShortBaseline)
	}
	since := func(bin int) float64 { return math.Max(0, firstAfter+width*float64(bin)-confirmedMillis) }
	r.measure(before, after, rule, since, width/1000)
	return r, nil
}

// dipDeviations is how many standard deviations of its mean a dip must be below the throughput before, when it is looked for over few bins. Each longer look has one more.
const dipDeviations = 4

// longerLooks is by how much each look after the second is longer than the one before: 1 s, 4 s, 16 s by default.
const longerLooks = 4

// measure finds the dip and the recovery. since is the time from the fault to the start of a bin after it; seconds is the length of a bin.
func (r *Recovery) measure(before, after []float64, rule RecoveryRule, since func(int) float64, seconds float64) {
	floor := rule.Share * r.Before
	noise := 0.0
	if len(before) > 1 {
		noise = stat.StdDev(before, nil)
	}
	dips := func(deviations float64) func(bins []float64) bool {
		return func(bins []float64) bool {
			bound := r.Before - deviations*noise/math.Sqrt(float64(len(bins)))
			return bins[0] < floor && stat.Mean(bins, nil) < math.Min(floor, bound)
		}
	}
	capped := func(bins []float64) float64 {
		var sum float64
		for _, x := range bins {
			sum += math.Min(x, r.Before)
		}
		return sum / float64(len(bins))
	}
	usual := capped(before)
	back := func(bins []float64) bool { return bins[0] >= floor && capped(bins) >= rule.Share*usual }

	if firstWindow(before, 0, rule.DipBins, dips(dipDeviations)) >= 0 {
		r.Cautions = append(r.Cautions, NoisyBaseline)
	}
	dip := firstWindow(after, 0, rule.DipBins, dips(dipDeviations))
	for bins, deviations := rule.BackBins, dipDeviations+1.0; dip < 0 && bins <= len(after); bins, deviations = bins*longerLooks, deviations+1 {
		dip = firstWindow(after, 0, bins, dips(deviations))
	}
	if dip < 0 {
		r.Cautions = append(r.Cautions, NoDip)
		return
	}
	r.Dipped, r.DetectMillis = true, since(dip)
	end := firstWindow(after, dip, rule.BackBins, back)
	r.Recovered = end >= 0
	if !r.Recovered {
		end = len(after)
		r.Cautions = append(r.Cautions, NotRecovered)
	}
	r.RecoverMillis = since(end)
	least := r.Before
	for i := dip; i+rule.DipBins <= len(after) && i < end; i++ {
		least = math.Min(least, stat.Mean(after[i:i+rule.DipBins], nil))
	}
	r.Depth = 1 - least/r.Before
	for _, x := range after[dip:end] {
		r.Lost += (r.Before - x) * seconds
	}
}

// firstWindow is where the first stretch of length bins that is as wanted starts, from a bin on; -1 when there is none.
func firstWindow(bins []float64, from, length int, wanted func([]float64) bool) int {
	for i := from; i+length <= len(bins); i++ {
		if wanted(bins[i : i+length]) {
			return i
		}
	}
	return -1
}
