package results

// FlameGraph is where the processes of a pod spent processor time, in a trial that never counts.
type FlameGraph struct {
	Trial       string            `json:"trial"`
	Coordinates map[string]string `json:"coordinates,omitempty"`
	Fault       string            `json:"fault"`
	Time        int               `json:"time,omitempty"` // of the fault, from 1
	Pod         string            `json:"pod"`
	Tool        string            `json:"tool"`
	// FromMillis and ToMillis are when the profiler sampled, relative to t = 0.
	FromMillis float64 `json:"fromMillis"`
	ToMillis   float64 `json:"toMillis"`
	Samples    int64   `json:"samples"`
	// File is the name of the picture among the pod's files, and In says where the picture is, as
	// in CollectedFile. Empty: there is no picture.
	File string `json:"file,omitempty"`
	In   string `json:"in,omitempty"`
	// Error says why there is no picture.
	Error string `json:"error,omitempty"`
}
