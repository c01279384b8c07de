package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"assay.dev/assay/operator/internal/results"
)

// RecoveryRule says what counts as a dip and as a recovery.
type RecoveryRule struct {
	// FromMillis and ToMillis bound the data that is used, relative to t = 0: the measurement
	// window. Bins that are not all in it are left out.
	FromMillis, ToMillis float64
	// BeforeMillis is how much data before the fault gives the throughput to compare with. Default
	// 5000.
	BeforeMillis float64
	// Share of the earlier throughput, above 0 and at most 1: less is a dip, and as much or more is
	// a recovery. Default 0.9.
	Share float64
	// DipBins is over how many bins throughput is averaged to find a dip. Default 3.
	DipBins int
	// BackBins is over how many bins throughput is averaged to find the recovery. Default 10 (1 s),
	// so that one burst is no recovery.
	BackBins int
}

// Recovery is the effect of a fault on throughput. Instants are in milliseconds after the fault was
// confirmed, with the resolution of the timeline (100 ms). The instant of a bin is its start, or 0
// for the bin in which the fault lies.
//
// Subtleness ahead: a bin of a slow system holds few transactions, so that three bins in a row
// below 90% may be chance. So a dip must also be deeper than noise.
type Recovery struct {
	// Before is the mean throughput before the fault, in transactions per second.
	Before float64
	// Dipped: throughput fell. Without a dip (NoDip) DetectMillis, Depth, RecoverMillis and Lost
	// are 0: the fault did nothing that this timeline shows. LeastDip and ResolvedMillis say what
	// it could show.
	Dipped bool
	// LeastDip is the depth, from 1 - Share to 1, of the shallowest dip that 97.7% of trials tell
	// from noise. It is the depth for means of DipBins bins. If a dip was found, it is the depth
	// for the looks that found it. A shallower dip (ShallowDip) says only that no dip was deeper
	// than this. LeastDip is just above 1 if those looks find a dip before the fault, too.
	LeastDip float64
	// ResolvedMillis is how long throughput must be below Share of what it was, so that noise does
	// not hide it. 0: no look at the data after the fault is long enough.
	ResolvedMillis float64
	// DetectMillis until throughput fell: how long the system kept serving as if there were no
	// fault.
	DetectMillis float64
	// Depth of the dip: 1 - (throughput of DipBins bins at its bottom)/Before, from 0 to 1 (nothing
	// was served). Different bins give the place of the bottom and its depth, so that noise does
	// not make it deeper. A burst beside a short dip may hide it in these bins: then it is 0.
	Depth float64
	// Recovered: throughput came back.
	Recovered bool
	// RecoverMillis until throughput was back. When it was not (NotRecovered), until the end of the
	// data: it took longer than that.
	RecoverMillis float64
	// Lost transactions, from the start of the dip to the recovery or the end of the data. Each bin
	// adds Before less its throughput. Bins above Before reduce it, whether by noise or by work
	// that was made up for. The positive parts alone would count noise as a loss.
	Lost float64
	// Cautions: NoDip, ShallowDip, NotRecovered, ShortBaseline, NoisyBaseline.
	Cautions []Caution
}

// withDefaults fills in defaults for fields that are 0, and returns an error for wrong fields.
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

// Sure reports whether the dip is deeper than noise, so that its depth and its end are known.
func (r Recovery) Sure() bool { return r.Dipped && r.Depth >= r.LeastDip }

// Recover measures the effect of a fault, from the committed transactions of a trial's timeline.
// confirmedMillis is when the fault was confirmed, relative to t = 0; its plan does not matter.
//
// With T(i) the throughput of bin i, and B and S the mean and the standard deviation of the bins
// that end in the last BeforeMillis before the fault,
//
//	dip:       the first bin from that of the fault on with T(i) < Share B, from which the mean of DipBins bins is below both
//	           Share B and B - 4 S/sqrt(DipBins); where there is none, the mean of BackBins bins and B - 5 S/sqrt(BackBins); then
//	           that of four times as many, with 6 S, and so on, while there are bins
//	recovery:  the first bin after it with T(i) >= Share B, from which the mean of min(T, B) over BackBins bins is at least
//	           Share times what it was before the fault
//	lost:      sum of (B - T(i)) times the length of a bin, from the dip to the recovery
//	depth:     the dip's even bins say where the least mean of DipBins of them is, and the odd bins
//	           there how deep it is; then the other way round; the mean of both. The least mean itself
//	           would be that of the noise, too
//
// A look at k bins with a bound of c deviations finds a dip of depth d in 97.7% of trials where d B
// >= (c + 2) S/sqrt(k). It hides nothing that is far below Share B where c S/sqrt(k) <= (1 - Share)
// B.
//
// The second bound of the dip is a control chart's (Shewhart 1931; 4 deviations rather than 3,
// since a hundred means are looked at). Noise alone passes it in fewer than 1% of trials. If bins
// are very noisy, as with clients that act at once after their think time, even an outage of
// seconds is not below it. Longer looks find such an outage. Each has one deviation more, so that
// noise does not pass it more often. The cap at B keeps a burst, such as requests that had waited,
// from counting as a recovery.
//
// It fails when the rule is wrong, when there is no bin before the fault or after it, or when
// nothing was served before it.
func Recover(t results.Timeline, confirmedMillis float64, rule RecoveryRule) (Recovery, error) {
	rule, err := rule.withDefaults()
	if err != nil {
		return Recovery{}, fmt.Errorf("recovery: %w", err)
	}
	if t.IntervalMillis <= 0 {
		return Recovery{}, fmt.Errorf("recovery: the timeline's bins are %d ms wide; they must have a width", t.IntervalMillis)
	}
	width := float64(t.IntervalMillis)
	var before, after, earlier []float64 // earlier: all bins before the fault
	firstAfter := 0.0                    // start of the first bin after
	for i, committed := range t.Committed {
		start := float64(t.FirstMillis) + width*float64(i)
		switch end := start + width; {
		case committed < 0:
			return Recovery{}, fmt.Errorf("recovery: bin %d has %d committed transactions", i+1, committed)
		case start < rule.FromMillis || end > rule.ToMillis:
		case end <= confirmedMillis && start < confirmedMillis-rule.BeforeMillis:
			earlier = append(earlier, float64(committed)/width*1000)
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
	r.measure(before, append(earlier, before...), after, rule, since, width/1000)
	return r, nil
}

// dipDeviations is how many standard deviations of its mean a dip must lie below the earlier
// throughput, in the look at the fewest bins. Each longer look has one more.
const dipDeviations = 4

// surely is how many further deviations deep a dip must be for 97.7% of trials to find it.
const surely = 2

// noDepth is the least dip if every look that found the dip finds one before the fault, too. Then
// no depth tells the fault from a pause that comes by itself, such as a compaction.
const noDepth = 1.000_001

// backDeviations is how far the bottom of a dip must lie below Share of the earlier throughput, in
// deviations of the mean of BackBins bins. Then noise does not count as the recovery.
const backDeviations = 3

// longerLooks is by how much each look after the second is longer than the one before: 1 s, 4 s, 16
// s by default.
const longerLooks = 4

// look is one length of window in which a dip is looked for.
type look struct {
	bins       int
	deviations float64
}

// looks returns the looks at data bins, the shortest first.
func (r RecoveryRule) looks(data int) []look {
	all := []look{{bins: r.DipBins, deviations: dipDeviations}}
	for bins := r.BackBins; bins <= data; bins *= longerLooks {
		all = append(all, look{bins: bins, deviations: dipDeviations + float64(len(all))})
	}
	return all
}

// bound is how much noise a mean of the look's bins may have, in deviations of one bin.
func (l look) bound() float64 { return l.deviations / math.Sqrt(float64(l.bins)) }

// least is the depth that the look finds in 97.7% of trials, given the deviation of a bin by its
// mean.
func (l look) least(noise float64) float64 {
	return (l.deviations + surely) / math.Sqrt(float64(l.bins)) * noise
}

// measure finds the dip and the recovery. The argument whole has all bins before the fault. The
// argument since is the time from the fault to the start of a bin after it; seconds is the length
// of a bin.
func (r *Recovery) measure(before, whole, after []float64, rule RecoveryRule, since func(int) float64, seconds float64) {
	floor := rule.Share * r.Before
	noise := 0.0
	if len(before) > 1 {
		noise = stat.StdDev(before, nil)
	}
	dips := func(l look) func(bins []float64) bool {
		return func(bins []float64) bool {
			return bins[0] < floor && stat.Mean(bins, nil) < math.Min(floor, r.Before-l.bound()*noise)
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

	looks := rule.looks(len(after))
	dipsBefore := func(l look) bool { return firstWindow(whole, 0, l.bins, dips(l)) >= 0 }
	if dipsBefore(looks[0]) {
		r.Cautions = append(r.Cautions, NoisyBaseline)
	}
	r.resolve(looks, rule, noise/r.Before, seconds)
	dip := -1
	for i := 0; i < len(looks) && dip < 0; i++ {
		dip = firstWindow(after, 0, looks[i].bins, dips(looks[i]))
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
	}
	r.RecoverMillis = since(end)
	r.Depth = math.Max(0, 1-bottom(after, dip, end, rule.DipBins)/r.Before)
	for _, x := range after[dip:end] {
		r.Lost += (r.Before - x) * seconds
	}
	r.LeastDip = noDepth
	for _, l := range looks { // the longest that are low from the dip on say most
		if dip+l.bins <= len(after) && dips(l)(after[dip:dip+l.bins]) && !dipsBefore(l) {
			r.LeastDip = math.Min(r.LeastDip, rule.told(l, noise/r.Before))
		}
	}
	if !r.Sure() {
		r.Cautions = append(r.Cautions, ShallowDip)
	}
	if !r.Recovered {
		r.Cautions = append(r.Cautions, NotRecovered)
	}
}

// told is the depth above which a dip that a look finds is told from noise, and so is its end.
func (r RecoveryRule) told(l look, noise float64) float64 {
	end := 1 - r.Share + backDeviations*noise/math.Sqrt(float64(r.BackBins))
	return math.Min(1, math.Max(end, l.least(noise)))
}

// resolve says what the looks can show, given the deviation of a bin by its mean.
func (r *Recovery) resolve(looks []look, rule RecoveryRule, noise, seconds float64) {
	r.LeastDip = rule.told(looks[0], noise)
	for _, l := range looks {
		if l.bound()*noise <= 1-rule.Share {
			r.ResolvedMillis = math.Round(float64(l.bins) * seconds * 1000)
			return
		}
	}
}

// bottom is the throughput at the bottom of a dip that lasts from one bin to another. Noise makes
// the least of several means too low. So one half of the bins chooses the place, and the other half
// gives the throughput there. A dip that is too short for this has one mean.
func bottom(bins []float64, dip, end, length int) float64 {
	if end-dip < 2*length {
		return stat.Mean(bins[dip:min(len(bins), max(end, dip+length))], nil)
	}
	var sum float64
	for parity := range 2 {
		least, at := math.Inf(1), 0
		for i := dip + parity; i+2*(length-1) < end; i += 2 {
			if m := everyOther(bins, i, length); m < least {
				least, at = m, i
			}
		}
		beside := at + 1
		if beside+2*(length-1) >= end {
			beside = at - 1
		}
		sum += everyOther(bins, max(dip, beside), length)
	}
	return sum / 2
}

// everyOther is the mean of length bins, every second one from a bin on.
func everyOther(bins []float64, from, length int) float64 {
	var sum float64
	for k := range length {
		sum += bins[from+2*k]
	}
	return sum / float64(length)
}

// firstWindow is where, from a bin on, the first stretch of length bins starts that wanted accepts;
// -1 if there is none.
func firstWindow(bins []float64, from, length int, wanted func([]float64) bool) int {
	for i := from; i+length <= len(bins); i++ {
		if wanted(bins[i : i+length]) {
			return i
		}
	}
	return -1
}
