package claims

import (
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Kinds of caveats of a verdict. Readers group by them; docs/reference/results.md lists them.
const (
	CaveatNotInterleaved    = "NotInterleaved"
	CaveatOneOrder          = "OneOrder"
	CaveatExcludedTrials    = "ExcludedTrials"
	CaveatSaturatedClients  = "SaturatedClients"
	CaveatClientTime        = "ClientTime"
	CaveatFailedRequests    = "FailedRequests"
	CaveatNoVariation       = "NoVariation"
	CaveatTrialsInGroups    = "TrialsInGroups"
	CaveatNearZero          = "DenominatorNearZero"
	CaveatChosenPoint       = "ChosenPoint"
	CaveatUnsaturated       = "Unsaturated"
	CaveatCrossing          = "Crossing"
	CaveatNotByRounds       = "NotByRounds"
	CaveatSearch            = "Search"
	CaveatOfTrials          = "OfTrials"
	CaveatSpoiledBySystem   = "SpoiledBySystem"
	CaveatFewRepetitions    = "FewRepetitions"
	CaveatNoInterval        = "NoInterval"
	CaveatSeveralClaims     = "SeveralClaims"
	CaveatReportedDeviation = "ReportedDeviation"
	CaveatWeak              = "WeakBound"
	CaveatNotSteady         = "NotSteady"
	CaveatOneSession        = "OneSession"
	CaveatPartOfCurve       = "PartOfCurve"
)

// caveat keeps what a reader must know of a verdict, once.
func (r *findings) caveat(kind, text string, points ...string) {
	c := results.Caveat{Kind: kind, Text: text, Points: points}
	same := func(d results.Caveat) bool {
		return d.Kind == c.Kind && d.Text == c.Text && slices.Equal(d.Points, c.Points)
	}
	if !slices.ContainsFunc(r.caveats, same) {
		r.caveats = append(r.caveats, c)
	}
}

// sampleCaveats returns the caveats about the trials of a verdict, and the closing words of its
// message: the number of trials, and the method of the intervals.
func (r *recorder) sampleCaveats() (all []results.Caveat, basis string) {
	own := r.caveats
	r.caveats = nil
	r.orderCaveats()
	r.survivors()
	r.cautions()
	for _, c := range notSteady(r.readings, r.looked) {
		r.caveat(CaveatNotSteady, c.Text, c.Points...)
	}
	for _, c := range own {
		r.caveat(c.Kind, c.Text, c.Points...)
	}
	r.equalTrials()
	for _, remark := range r.ofTrial {
		r.caveat(CaveatOfTrials, remark.String())
	}
	const none = "there is no interval, so that nothing is decided; it takes two repetitions or more"
	switch {
	case len(r.counts) == 0:
	case r.unknown && slices.Max(r.counts) == 1:
		r.caveat(CaveatNoInterval, "one trial for each point: "+none)
	case r.unknown && slices.Min(r.counts) == 1:
		r.caveat(CaveatNoInterval, fmt.Sprintf("%s, some points have one trial: %s", showCounts(r.counts), none))
	case r.unknown:
		r.caveat(CaveatNoInterval, showCounts(r.counts)+", and no interval")
	default:
		basis = "95% intervals, " + showCounts(r.counts)
		if r.look != nil {
			basis = fmt.Sprintf("intervals that hold together at 95%%, at look %d of %d, %s", r.look.number(), r.look.looks.Count(), showCounts(r.counts))
		}
		if how := r.how(); how != "" {
			basis += ", " + how
		}
	}
	return r.caveats, basis
}

// equalTrials names the points that were read whose trials all gave the same value. Their interval
// has no width, but the value is not certain: a clock or a limit may have made the trials equal.
func (r *recorder) equalTrials() {
	for _, p := range r.points {
		if len(r.samples[p.Index]) < 2 {
			continue
		}
		for _, m := range r.metricsAt[p.Index] {
			xs, ok := r.values(mean{point: p.Index, metric: m})
			if !ok {
				continue
			}
			if x := slices.Min(xs); x == slices.Max(xs) && !m.mayBeNone(x) {
				r.caveat(CaveatNoVariation, fmt.Sprintf("all %d trials at %s gave %s: an interval without width is no certainty, and no test was possible", len(xs), showPoint(p.Coordinates),
					number(x, stats.Decimals(x, 0))), showPoint(p.Coordinates))
				break
			}
		}
	}
}

// mayBeNone reports whether the value x in every trial needs no warning: no attempt was aborted, or
// no request failed.
func (m metric) mayBeNone(x float64) bool {
	return x == 0 && (m.name == stats.AbortRate || m.name == errorRate)
}

func (r *readings) pointNames(indexes []int32) []string {
	var names []string
	for _, p := range r.points {
		if slices.Contains(indexes, p.Index) {
			names = append(names, showPoint(p.Coordinates))
		}
	}
	return names
}

// message is the verdict in words: what was compared, each caveat, and the number of trials. It has
// only these parts.
func message(compared []string, caveats []results.Caveat, basis string) string {
	parts := slices.Clone(compared)
	for _, c := range caveats {
		parts = append(parts, c.Text)
	}
	if basis != "" {
		parts = append(parts, basis)
	}
	return strings.Join(parts, "; ")
}
