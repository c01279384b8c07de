package results

import "math"

// WindowCheck is whether throughput and mean latency were steady in a trial's measurement window.
// It is a warning and no verdict: the trial counts.
type WindowCheck struct {
	// Unchecked says why nothing can be said; there is nothing else then.
	Unchecked string `json:"unchecked,omitempty"`
	// Throughput in bins of the timeline, and their mean Latency. Latency is nil where some bin of
	// the window has no committed transaction.
	Throughput *Transient `json:"throughput,omitempty"`
	Latency    *Transient `json:"latency,omitempty"`
}

// Transient says whether a window has one level, and describes the part at its start that is unlike
// the rest.
type Transient struct {
	// Steady: leaving it out moves the mean by less than is tolerated, or less than noise does.
	Steady bool `json:"steady"`
	// Millis that it lasts, at most half of the window.
	Millis float64 `json:"millis"`
	// Bias is what it does to the mean of the window, as a share: 0.1 is 10% too much.
	Bias float64 `json:"bias"`
	// Drift is by how much a straight line through the window rises from its start to its end, as a
	// share of the mean. 0: there is none beyond noise that matters.
	Drift float64 `json:"drift,omitempty"`
	// Change of the level within the window. Nil: there is none that matters, or it was not looked
	// for.
	Change *LevelChange `json:"change,omitempty"`
}

// LevelChange is where a window has other levels than in its longest stretch.
type LevelChange struct {
	// AtMillis are the instants at which the level changes.
	AtMillis []float64 `json:"atMillis"`
	// Bias is what the other levels do to the mean of the window, as a share.
	Bias float64 `json:"bias"`
	// EndsMillis is how long before the window's end the level fell below half; 0: it did not.
	EndsMillis float64 `json:"endsMillis,omitempty"`
}

// Steady reports whether what was checked is steady; known is false where nothing was.
func (w *WindowCheck) Steady() (steady, known bool) {
	if w == nil || w.Throughput == nil {
		return false, false
	}
	return w.Throughput.Steady && (w.Latency == nil || w.Latency.Steady), true
}

// Cause is what makes a window not steady: its start, a drift from its start to its end, other
// levels within it, or that clients ended before it did. Empty: it is steady.
func (t *Transient) Cause() string {
	switch {
	case t == nil || t.Steady:
		return ""
	case t.Change != nil && t.Change.EndsMillis > 0:
		return CauseEnd
	case t.Change != nil:
		return CauseChange
	case math.Abs(t.Drift)/2 > math.Abs(t.Bias):
		return CauseDrift
	}
	return CauseStart
}

// The causes of windows that are not steady.
const (
	CauseStart  = "Start"
	CauseDrift  = "Drift"
	CauseChange = "Change"
	CauseEnd    = "End"
)

// OfThroughput and OfLatency name the two levels of a window.
const (
	OfThroughput = "Throughput"
	OfLatency    = "Latency"
)

// UnsteadyBy is a level that is not steady for a cause that moves the mean of the window by a
// share. When it does so is not known.
func UnsteadyBy(cause string, moves float64) *Transient {
	switch cause {
	case CauseDrift:
		return &Transient{Drift: 2 * moves}
	case CauseChange:
		return &Transient{Change: &LevelChange{Bias: moves}}
	case CauseEnd:
		return &Transient{Change: &LevelChange{Bias: moves, EndsMillis: 1}}
	}
	return &Transient{Bias: moves}
}

// Moves is by how much the cause moves the mean of the window, as a share. A drift moves it by half
// of what it rises.
func (t *Transient) Moves() float64 {
	switch t.Cause() {
	case CauseEnd, CauseChange:
		return t.Change.Bias
	case CauseDrift:
		return t.Drift / 2
	}
	return t.Bias
}
