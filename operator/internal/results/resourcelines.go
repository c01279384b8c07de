package results

// ResourceLine is what the pods of one part of a point's valid trials used in the window. Only a
// report has it: it is in the trials' own results, pod by pod.
type ResourceLine struct {
	Point       int32             `json:"point"`
	Coordinates map[string]string `json:"coordinates"`
	// Part is replica or client; Pods of one trial, and the valid trials of which it is known.
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
	// BusyShare of the pods' nodes in the mean; ThrottledShare of the container, and StealShare of
	// the node, that had most of it.
	BusyShare      float64 `json:"busyShare"`
	ThrottledShare float64 `json:"throttledShare"`
	StealShare     float64 `json:"stealShare"`
	// LimitShare of the container that used most of its limit, BusyWorstShare and PressureShare of
	// the node that had most of it: means over the window of a trial. 0: no limit, or not known.
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
	// By is operation (its kind), node (that answered) or region (of the clients), and Name which.
	By     string `json:"by"`
	Name   string `json:"name"`
	Trials int    `json:"trials"`
	// Throughput in operations per second, and latencies in milliseconds.
	Throughput float64 `json:"throughput"`
	MeanMillis float64 `json:"meanMillis"`
	P50Millis  float64 `json:"p50Millis"`
	P95Millis  float64 `json:"p95Millis"`
	P99Millis  float64 `json:"p99Millis"`
	// Variation is the coefficient of variation over all names of nodes or regions of their mean
	// latency, the mean over the trials. Nil: of kinds of operations, or not known.
	Variation *float64 `json:"variation,omitempty"`
}

// PartBalance is how evenly the work is spread over the pods of a part: means over the trials.
type PartBalance struct {
	// CPUCoV and SentCoV are coefficients of variation over the pods, of processors' time and of
	// bytes sent in the whole window. A value of 0 is perfect balance, and sqrt(n-1) is one pod of
	// n that does everything. CPUMaxToMean and SentMaxToMean are what the busiest pod has by the
	// mean, from 1 to n.
	CPUCoV        float64 `json:"cpuCoV"`
	CPUMaxToMean  float64 `json:"cpuMaxToMean"`
	SentCoV       float64 `json:"sentCoV"`
	SentMaxToMean float64 `json:"sentMaxToMean"`
	// CPUMeanCoV is the mean over the bins of the series of the coefficient of variation in each.
	// CPUOutside is the share of these bins of pods that lie outside of half to one and a half
	// times the mean of the pods in the bin. SeriesTrials is of how many trials there are series;
	// 0: there are none, and neither number.
	CPUMeanCoV   float64 `json:"cpuMeanCoV,omitempty"`
	CPUOutside   float64 `json:"cpuOutside,omitempty"`
	SeriesTrials int     `json:"seriesTrials,omitempty"`
}

// PartSeries is what the pods of one part used over time, all of them together, the mean of a
// point's valid trials. -1: not known in any of them.
type PartSeries struct {
	Part           string    `json:"part"`
	IntervalMillis int64     `json:"intervalMillis"`
	FirstMillis    int64     `json:"firstMillis"`
	Cores          []float64 `json:"cores"`
	SentPerSecond  []float64 `json:"sentPerSecond"`
}
