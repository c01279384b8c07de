package results

// Measurement is what became of one of an experiment's measurements in a trial.
type Measurement struct {
	Name string `json:"name"`
	// Value in the measurement's unit. Nil: it was not measured, and Reason says why.
	Value  *float64 `json:"value,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

// MeasurementColumn is one of an experiment's measurements: what the numbers of its name are.
type MeasurementColumn struct {
	Name  string `json:"name"`
	Unit  string `json:"unit,omitempty"`
	Query string `json:"query"`
	// Over says how the window's values became one: Last, Mean, Minimum or Maximum.
	Over string `json:"over"`
}
