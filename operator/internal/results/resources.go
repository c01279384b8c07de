package results

import "time"

// Resources is the use of resources by one pod in the measurement window, and the use of its node.
// The pod's agent reads both once a second. Shares are from 0 to 1.
type Resources struct {
	// Seconds of the window that the readings of all containers cover.
	Seconds float64 `json:"seconds"`
	// CPUMeanCores and CPUMaxCores (over one second) of all containers of the System together, the
	// agent's left out; 1 is one processor all of the time.
	CPUMeanCores float64 `json:"cpuMeanCores"`
	CPUMaxCores  float64 `json:"cpuMaxCores"`
	// AgentMeanCores is what the pod's agent used, which is in no other number of the pod.
	AgentMeanCores float64 `json:"agentMeanCores"`
	// ThrottledShare of the container that was throttled most.
	ThrottledShare float64 `json:"throttledShare"`
	// MemoryMaxBytes is the sum, over the containers, of the greatest reading of the working set.
	MemoryMaxBytes int64 `json:"memoryMaxBytes"`
	// ReceivedBytes and SentBytes by the pod's interfaces but loopback, with all headers; the
	// agent's own traffic, some kilobytes a second, is in it.
	ReceivedBytes int64 `json:"receivedBytes"`
	SentBytes     int64 `json:"sentBytes"`
	// DiskReadBytes and DiskWrittenBytes are the bytes that block devices read and wrote for the
	// containers. Nil: unknown for some container.
	DiskReadBytes    *int64 `json:"diskReadBytes,omitempty"`
	DiskWrittenBytes *int64 `json:"diskWrittenBytes,omitempty"`
	// PageCacheMaxBytes is the sum, over the containers, of the greatest reading of file pages. 0
	// in older results.
	PageCacheMaxBytes int64          `json:"pageCacheMaxBytes,omitempty"`
	Containers        []ContainerUse `json:"containers"`
	Node              NodeUse        `json:"node"`
	// Volumes of the pod on a disk, and what they held when the readings were over, which is some
	// seconds after the window.
	Volumes []VolumeUse `json:"volumes,omitempty"`
	// OverTime says how each resource was spread over the seconds of the window, all containers
	// together. It leaves out resources whose use is unknown.
	OverTime []ResourceOverTime `json:"overTime,omitempty"`
	// Series over time. Nil: it did not fit where it is stored.
	Series *ResourceSeries `json:"series,omitempty"`
	// Unmeasured says what could not be read, and why.
	Unmeasured []string `json:"unmeasured,omitempty"`
}

// ContainerUse is one container's part.
type ContainerUse struct {
	Name         string  `json:"name"`
	Seconds      float64 `json:"seconds"`
	CPUMeanCores float64 `json:"cpuMeanCores"`
	CPUMaxCores  float64 `json:"cpuMaxCores"`
	// LimitCores that it may use; 0: no limit.
	LimitCores float64 `json:"limitCores,omitempty"`
	// ThrottledPeriods are the periods in which the limit held the container back, and
	// ThrottledShare is their share of the window. ThrottledSeconds is how long the container was
	// held back, added up over processors.
	ThrottledPeriods int64   `json:"throttledPeriods,omitempty"`
	ThrottledShare   float64 `json:"throttledShare"`
	ThrottledSeconds float64 `json:"throttledSeconds,omitempty"`
	// WaitedSeconds is how long the container's threads were runnable without a processor, added up
	// over threads. It may include times in which the container was throttled. Nil: not known.
	WaitedSeconds *float64 `json:"waitedSeconds,omitempty"`
	// LateShare: after this share of its wake-ups in the window, the launcher's canary waited for a
	// processor for more than a millisecond. The canary is a thread in the container; Wakes is how
	// often it woke up. Nil: it did not wake up.
	LateShare *float64 `json:"lateShare,omitempty"`
	Wakes     int64    `json:"wakes,omitempty"`
	// MemoryMaxBytes is the greatest working set of the readings. MemoryPeakBytes is the most that
	// the kernel counted in the container's life, with all file pages; 0 where the kernel does not
	// keep it.
	MemoryMaxBytes  int64 `json:"memoryMaxBytes"`
	MemoryPeakBytes int64 `json:"memoryPeakBytes,omitempty"`
	// PageCacheMaxBytes is the greatest of the readings of its file pages.
	PageCacheMaxBytes int64 `json:"pageCacheMaxBytes,omitempty"`
	// DiskReadBytes and DiskWrittenBytes of the window. DiskFrom is io.stat or processes, as
	// package launcher has them; empty: neither is known.
	DiskReadBytes    int64  `json:"diskReadBytes,omitempty"`
	DiskWrittenBytes int64  `json:"diskWrittenBytes,omitempty"`
	DiskFrom         string `json:"diskFrom,omitempty"`
}

// VolumeUse is what one volume of a pod holds.
type VolumeUse struct {
	// Name of the volume in the System.
	Name string `json:"name"`
	// Bytes that it takes on the disk, as du counts them, and the lengths of its files.
	Bytes        int64 `json:"bytes"`
	ContentBytes int64 `json:"contentBytes"`
	Files        int64 `json:"files"`
	// Unmeasured says why these numbers are unknown. Empty: they are known.
	Unmeasured string `json:"unmeasured,omitempty"`
}

// NodeUse is the use of the pod's node in the window by all programs.
type NodeUse struct {
	// Seconds of the window that its readings cover.
	Seconds float64 `json:"seconds"`
	// Machine is the ID of this boot of the node's kernel. Nodes that are containers of one
	// machine, such as kind's, have the same ID. Empty: not known.
	Machine string `json:"machine,omitempty"`
	// CPUs of the node, and the share of their time in which they worked, in the mean and in the
	// busiest second.
	CPUs         int     `json:"cpus"`
	BusyShare    float64 `json:"busyShare"`
	BusyMaxShare float64 `json:"busyMaxShare"`
	// InterruptShare is the part of BusyShare that went to interrupts of devices and to their
	// deferred work, such as the network's.
	InterruptShare float64 `json:"interruptShare"`
	// StealShare is the share of the wanted processor time (busy and stolen) that the hypervisor
	// gave to others. It is given for the whole window, and for the worst second.
	StealShare    float64 `json:"stealShare"`
	StealMaxShare float64 `json:"stealMaxShare"`
	// PressureShare is the share of the window in which some process waited for a processor (PSI).
	// Nil: this kernel does not tell.
	PressureShare *float64 `json:"pressureShare,omitempty"`
	// SwitchesPerSecond between threads, on all processors.
	SwitchesPerSecond float64 `json:"switchesPerSecond"`
	// EnergyJoules that the processors' packages used in the window, by their own counters (RAPL).
	// Nil: EnergyUnmeasured says why it is not known, or these are older results.
	EnergyJoules     *float64 `json:"energyJoules,omitempty"`
	EnergyUnmeasured string   `json:"energyUnmeasured,omitempty"`
}

// ResourceSeries has these numbers over time, around the window, in bins of IntervalMillis. The
// first bin starts at FirstMillis. All slices have the same length. A bin is -1 if less than half
// of it was measured.
type ResourceSeries struct {
	IntervalMillis int64 `json:"intervalMillis"`
	FirstMillis    int64 `json:"firstMillis"`
	// CPUMillicores and MemoryKiB are of all containers together. MemoryKiB has the greatest
	// reading of each bin.
	CPUMillicores []int64 `json:"cpuMillicores"`
	MemoryKiB     []int64 `json:"memoryKiB"`
	// ThrottledPermille of the container that was throttled most.
	ThrottledPermille []int64 `json:"throttledPermille"`
	ReceivedBytes     []int64 `json:"receivedBytes"`
	SentBytes         []int64 `json:"sentBytes"`
	BusyPermille      []int64 `json:"busyPermille"`
	StealPermille     []int64 `json:"stealPermille"`
	// PageCacheKiB, DiskReadBytes and DiskWrittenBytes are as memory and network. Nil in older
	// results.
	PageCacheKiB     []int64 `json:"pageCacheKiB,omitempty"`
	DiskReadBytes    []int64 `json:"diskReadBytes,omitempty"`
	DiskWrittenBytes []int64 `json:"diskWrittenBytes,omitempty"`
}

// ContainerReading is what the kernel says of a container at an instant, relative to t = 0. All but
// Memory, Peak and PageCache are counters.
type ContainerReading struct {
	At               time.Duration
	CPU              time.Duration
	Throttled        time.Duration
	ThrottledPeriods int64
	// Quota of processor time in each Period; no Quota: no limit.
	Quota, Period time.Duration
	// Wakes of the launcher's canary, and those of them that were late.
	Wakes, LateWakes int64
	// Waited is how long its threads were runnable without a processor. WaitsUnknown: this kernel
	// does not tell.
	Waited       time.Duration
	WaitsUnknown bool
	// Memory is the working set, Peak the most that was counted, PageCache the file pages.
	Memory, Peak, PageCache int64
	// DiskRead and DiskWritten bytes, and where they are from. DiskUnknown says why they are not
	// known.
	DiskRead, DiskWritten int64
	DiskFrom, DiskUnknown string
}

// PodReading is what the kernel says of a pod's network and of its node at an instant, relative to
// t = 0. All but Machine and CPUs are counters.
type PodReading struct {
	At                 time.Duration
	Received, Sent     int64
	Busy, Steal, Total int64         // in any unit of processor time; Busy leaves out Steal
	Interrupts         int64         // the part of Busy that went to interrupts
	Agent              time.Duration // of processor time that the pod's agent has used
	Switches           int64
	Pressure           time.Duration
	Machine            string
	CPUs               int
	HasPressure        bool
	// EnergyMicros are microjoules. EnergyUnknown says why they are not known.
	EnergyMicros  int64
	EnergyUnknown string
}
