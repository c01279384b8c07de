package results

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

// Transient is the part at the start of a window that is unlike the rest.
type Transient struct {
	// Steady: leaving it out changes the mean by no more than is tolerated, or than noise does.
	Steady bool `json:"steady"`
	// Millis that it lasts, at most half of the window.
	Millis float64 `json:"millis"`
	// Bias is what it does to the mean of the window, as a share: 0.1 is 10% too much.
	Bias float64 `json:"bias"`
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
