package results

// Figure is a plot that the experiment declares. It has one of Stack, SpeedUp and Percentiles.
type Figure struct {
	Name        string   `json:"name"`
	Title       string   `json:"title,omitempty"`
	Stack       *Stack   `json:"stack,omitempty"`
	SpeedUp     *SpeedUp `json:"speedUp,omitempty"`
	Percentiles []string `json:"percentiles,omitempty"` // P50, P99, ...
}

// Stack is measurements of one unit that add up.
type Stack struct {
	Parts []string `json:"parts"`
}

// SpeedUp is a metric of every point divided by that of a baseline. For a latency, the value of the
// baseline is divided by the value of the point.
type SpeedUp struct {
	// Of is Throughput, MeanLatency, P50Latency or P99Latency.
	Of   string            `json:"of"`
	Over map[string]string `json:"over"`
}
