package results

// ResourceLine is what the pods of one part of a point's valid trials used in the window. Only a
// report has it: the trials' own results have the numbers pod by pod.
type ResourceLine struct {
	Point       int32             `json:"point"`
	Coordinates map[string]string `json:"coordinates"`
	// Part is replica or client. Pods is the number of pods in one trial, and Trials the number of
	// valid trials whose use is known.
	Part   string `json:"part"`
	Pods   int    `json:"pods"`
	Trials int    `json:"trials"`
	// CPUMeanCores of one pod and CPUTotalCores of all pods of a trial together, means over the
	// trials; CPUMaxCores is the most that any pod used in one second.
	CPUMeanCores  float64 `json:"cpuMeanCores"`
	CPUTotalCores float64 `json:"cpuTotalCores"`
	CPUMaxCores   float64 `json:"cpuMaxCores"`
	// MemoryMaxBytes is the greatest working set of any pod.
	MemoryMaxBytes int64 `json:"memoryMaxBytes"`
	// ReceivedPerSecond and SentPerSecond are bytes of all pods of a trial together, means over the
	// trials.
	ReceivedPerSecond float64 `json:"receivedPerSecond"`
	SentPerSecond     float64 `json:"sentPerSecond"`
	// BusyShare is the mean over the pods' nodes. ThrottledShare is the greatest of a container,
	// and StealShare the greatest of a node.
	BusyShare      float64 `json:"busyShare"`
	ThrottledShare float64 `json:"throttledShare"`
	StealShare     float64 `json:"stealShare"`
	// LimitShare is the greatest of a container. BusyWorstShare and PressureShare are the greatest
	// of a node. Each is a mean over the window of a trial. 0: no limit, or not known.
	LimitShare     float64 `json:"limitShare,omitempty"`
	BusyWorstShare float64 `json:"busyWorstShare,omitempty"`
	PressureShare  float64 `json:"pressureShare,omitempty"`
	// Balance over the pods. Nil: there is one pod, or the pods used nothing.
	Balance *PartBalance `json:"balance,omitempty"`
	// OverTime is of all pods together: means over the trials of which it is known. PodOverTime is
	// of one pod, the mean over pods and trials. Nil in results without it.
	OverTime    []ResourceOverTime `json:"overTime,omitempty"`
	PodOverTime []ResourceOverTime `json:"podOverTime,omitempty"`
	// Volumes by their names: bytes of all pods together when the window was over, means over the
	// trials.
	Volumes []VolumeLine `json:"volumes,omitempty"`
}

// VolumeLine is what a volume holds in all pods of a part.
type VolumeLine struct {
	Name  string  `json:"name"`
	Bytes float64 `json:"bytes"`
}

// LatencyBy is the latency of a part of a point's operations: means over the valid trials that have
// that part. Only a report has it.
type LatencyBy struct {
	Point       int32             `json:"point"`
	Coordinates map[string]string `json:"coordinates"`
	// By is operation (its kind), node (that answered) or region (of the clients). Name is the
	// kind, node or region.
	By     string `json:"by"`
	Name   string `json:"name"`
	Trials int    `json:"trials"`
	// Throughput in operations per second, and latencies in milliseconds.
	Throughput float64 `json:"throughput"`
	MeanMillis float64 `json:"meanMillis"`
	P50Millis  float64 `json:"p50Millis"`
	P95Millis  float64 `json:"p95Millis"`
	P99Millis  float64 `json:"p99Millis"`
	// Variation is the coefficient of variation of the mean latency over all nodes or regions, as a
	// mean over the trials. Nil: it is unknown, or By is operation.
	Variation *float64 `json:"variation,omitempty"`
}

// PartBalance is how evenly the work is spread over the pods of a part: means over the trials.
type PartBalance struct {
	// CPUCoV and SentCoV are coefficients of variation over the pods, of processors' time and of
	// bytes sent in the whole window. A value of 0 is perfect balance, and sqrt(n-1) is one pod of
	// n that does everything. CPUMaxToMean and SentMaxToMean are the busiest pod's value divided by
	// the mean of the pods, from 1 to n.
	CPUCoV        float64 `json:"cpuCoV"`
	CPUMaxToMean  float64 `json:"cpuMaxToMean"`
	SentCoV       float64 `json:"sentCoV"`
	SentMaxToMean float64 `json:"sentMaxToMean"`
	// CPUMeanCoV is the coefficient of variation in each bin of the series, as a mean over the
	// bins. CPUOutside is the share of the pods' bins below half or above one and a half times the
	// mean of all pods in the bin. SeriesTrials is the number of trials with series. If it is 0,
	// both numbers are unknown.
	CPUMeanCoV   float64 `json:"cpuMeanCoV,omitempty"`
	CPUOutside   float64 `json:"cpuOutside,omitempty"`
	SeriesTrials int     `json:"seriesTrials,omitempty"`
}

// PartSeries is the total use of the pods of one part over time, as the mean of a point's valid
// trials. -1: not known in any trial.
type PartSeries struct {
	Part           string    `json:"part"`
	IntervalMillis int64     `json:"intervalMillis"`
	FirstMillis    int64     `json:"firstMillis"`
	Cores          []float64 `json:"cores"`
	SentPerSecond  []float64 `json:"sentPerSecond"`
}
