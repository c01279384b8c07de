package validity

import (
	"fmt"
	"strings"
	"time"
)

// early is how much shorter than asked a packet may be in flight: backends round, and clocks tick.
const early = 50 * time.Microsecond

// CheckLinks compares every measurement of both ends with what was asked, and says what is wrong.
func CheckLinks(pairs []Pair, tolerance time.Duration) []string {
	var wrong []string
	for _, p := range pairs {
		for _, v := range p.Views() {
			if w := checkView(v, tolerance); w != "" {
				wrong = append(wrong, w)
				break // the other end says the same
			}
		}
	}
	return wrong
}

// checkView returns the faults in one end's measurements before t = 0, or nothing. Packets may be
// late by the tolerance: each way if its time is known, else over the round trip.
func checkView(v View, tolerance time.Duration) string {
	switch {
	case v.Said == nil:
		return fmt.Sprintf("%s has not measured its links with %s", v.From, v.To)
	case v.Said.BaselineRTT <= 0:
		return fmt.Sprintf("%s has not measured the undelayed path to %s", v.From, v.To)
	case v.Cut() && v.Said.RTT > 0:
		return fmt.Sprintf("%s <-> %s: every packet was asked to be lost one way, but probes were answered", v.From, v.To)
	case v.Cut():
		return ""
	case v.Said.RTT <= 0:
		return fmt.Sprintf("%s <-> %s: no probe was answered", v.From, v.To)
	}
	out := way{v.From, "->", v.To, "one way", v.Out.Delay, v.Out.Jitter, v.Said.BaselineRTT, v.Said.OutDelay}
	in := way{v.To, "->", v.From, "one way", v.In.Delay, v.In.Jitter, v.Said.BaselineRTT, v.Said.InDelay}
	both := way{v.From, "<->", v.To, "for the round trip", v.Out.Delay + v.In.Delay, v.Out.Jitter + v.In.Jitter, v.Said.BaselineRTT, v.Said.RTT}
	var wrong []string
	for _, w := range [...]way{out, in} {
		if w.measured > 0 && !w.fits(tolerance) {
			wrong = append(wrong, w.describe(tolerance))
		}
	}
	if len(wrong) > 0 && out.measured > 0 && in.measured > 0 && out.as(in).fits(tolerance) && in.as(out).fits(tolerance) {
		return fmt.Sprintf("%s -> %s: the directions are swapped: asked %v there and %v back, measured %v there and %v back",
			v.From, v.To, out.asked, in.asked, rounded(out.measured), rounded(in.measured))
	}
	if (out.measured <= 0 || in.measured <= 0) && len(wrong) == 0 && !both.fits(tolerance) {
		wrong = append(wrong, both.describe(tolerance))
	}
	return strings.Join(wrong, "; ")
}

// way is one direction of a pair, or both.
type way struct {
	from, arrow, to, kind         string
	asked, jitter, path, measured time.Duration
}

// as returns the other way with this way's measurement. So a measurement is judged by what was
// asked of the opposite direction.
func (w way) as(other way) way {
	other.measured = w.measured
	return other
}

func (w way) fits(tolerance time.Duration) bool {
	return w.measured >= w.asked-w.jitter-early && w.measured <= w.asked+w.jitter+w.path+tolerance
}

func (w way) describe(tolerance time.Duration) string {
	asked := w.asked.String()
	if w.jitter > 0 {
		asked += "±" + w.jitter.String()
	}
	return fmt.Sprintf("%s %s %s: asked %s %s, measured %v (the undelayed round trip takes %v, and tolerances.linkDelay is %v)",
		w.from, w.arrow, w.to, asked, w.kind, rounded(w.measured), rounded(w.path), tolerance)
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
