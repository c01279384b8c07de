package results

import "math"

// WindowCheck says whether throughput and mean latency were steady in a trial's measurement window.
// It is a warning and no verdict: the trial counts.
type WindowCheck struct {
	// Unchecked says why the window could not be checked. The other fields are then empty.
	Unchecked string `json:"unchecked,omitempty"`
	// Throughput in bins of the timeline, and their mean Latency. Latency is nil where some bin of
	// the window has no committed transaction.
	Throughput *Transient `json:"throughput,omitempty"`
	Latency    *Transient `json:"latency,omitempty"`
}

// Transient says whether a window has one level, and describes the part at its start that is unlike
// the rest.
type Transient struct {
	// Steady: without that part, the mean moves by less than is tolerated, or by less than noise
	// moves it.
	Steady bool `json:"steady"`
	// Millis is how long that part lasts, at most half of the window.
	Millis float64 `json:"millis"`
	// Bias is the effect of that part on the mean of the window, as a share: 0.1 is 10% too much.
	Bias float64 `json:"bias"`
	// Drift is by how much a straight line through the window rises from its start to its end, as a
	// share of the mean. 0: there is none beyond noise that matters.
	Drift float64 `json:"drift,omitempty"`
	// Change of the level within the window. Nil: there is no change that matters, or none was
	// looked for.
	Change *LevelChange `json:"change,omitempty"`
}

// LevelChange says where a window has other levels than in its longest stretch.
type LevelChange struct {
	// AtMillis are the instants at which the level changes.
	AtMillis []float64 `json:"atMillis"`
	// Bias is the effect of the other levels on the mean of the window, as a share.
	Bias float64 `json:"bias"`
	// EndsMillis is how long before the window's end the level fell below half; 0: it did not.
	EndsMillis float64 `json:"endsMillis,omitempty"`
}

// Steady reports whether throughput and latency are steady, as far as they were checked. known is
// false if neither was checked.
func (w *WindowCheck) Steady() (steady, known bool) {
	if w == nil || w.Throughput == nil {
		return false, false
	}
	return w.Throughput.Steady && (w.Latency == nil || w.Latency.Steady), true
}

// Cause says why a window is not steady: its start, a drift from its start to its end, other levels
// within it, or clients that ended before the window did. Empty: it is steady.
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

// UnsteadyBy describes an unsteady level by its cause and by the share that the cause moves the
// window's mean. The instant of the cause is unknown.
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
