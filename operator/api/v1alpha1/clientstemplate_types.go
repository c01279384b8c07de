package v1alpha1

// ClientBarrier says how the clients of all pods are held until t = 0 is agreed. Start: the command
// itself is started at the agreed instant, which is t = 0 less the warm-up. Ready: the command
// starts early, connects, creates the file named by ASSAY_READY_FILE and waits for the file named
// by ASSAY_START_FILE. That file says when t = 0 is; see docs/reference/client-interface.md.
// +kubebuilder:validation:Enum=Start;Ready
type ClientBarrier string

// The ways to hold clients.
const (
	BarrierStart ClientBarrier = "Start"
	BarrierReady ClientBarrier = "Ready"
)

// ClientSetting is a setting of an Experiment's clients that a complete client carries out itself:
// rate, arrivals, phases, trace, session, thinkTime, timeout, retry, each as spec.clients of
// Experiments has it.
// +kubebuilder:validation:Enum=rate;arrivals;phases;trace;session;thinkTime;timeout;retry
type ClientSetting string

// The settings.
const (
	SettingRate      ClientSetting = "rate"
	SettingArrivals  ClientSetting = "arrivals"
	SettingPhases    ClientSetting = "phases"
	SettingTrace     ClientSetting = "trace"
	SettingSession   ClientSetting = "session"
	SettingThinkTime ClientSetting = "thinkTime"
	SettingTimeout   ClientSetting = "timeout"
	SettingRetry     ClientSetting = "retry"
)

// ClientsTemplate says how one client pod runs and where its results are.
// +kubebuilder:validation:XValidation:rule="!has(self.driver) || self.containers.size() == 1",fieldPath=".containers",message="there is more than one; with a driver there is exactly one container"
type ClientsTemplate struct {
	// containers of a client pod. The first one is the client. With driver set, its command is the
	// driver that Assay's load generator starts and talks to (docs/reference/driver-protocol.md);
	// without driver, its command is a complete client.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Containers []Container `json:"containers"`

	// driver makes Assay's load generator run the workload: it paces, retries and measures; the
	// container's command only carries out single transactions.
	// +optional
	Driver *DriverSpec `json:"driver,omitempty"`

	// files are rendered before the containers' commands start.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=8
	Files []FileSet `json:"files,omitempty"`

	// collect lists the client's own files that are kept with the trial's results, as
	// replicas.collect does. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_*?][-A-Za-z0-9_.*?]*(/[A-Za-z0-9_*?][-A-Za-z0-9_.*?]*)*$`
	Collect []string `json:"collect,omitempty"`

	// metrics that every client pod serves for Prometheus. Default: none.
	// +optional
	Metrics *MetricsEndpoint `json:"metrics,omitempty"`

	// barrier says how the clients are held until all are there. Ignored with a driver. Default:
	// Start.
	// +optional
	// +kubebuilder:default=Start
	Barrier ClientBarrier `json:"barrier,omitempty"`

	// uses lists the settings of an Experiment's clients that a complete client reads from
	// templates (.Load, docs/reference/templates.md) and carries out. Assay rejects an Experiment
	// that sets any other, since no program would carry it out. Ignored with a driver: its load
	// generator carries out all settings. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Uses []ClientSetting `json:"uses,omitempty"`

	// misbehaving says which clients a complete client program itself makes misbehave, as Byzantine
	// clients do. The program leaves these clients out of its output. It is a CEL expression over
	// integers that is true for such a client. It sees client (its index over all pods), pod (the
	// index of its pod) and index (its own index in the pod), each from 0. It also sees clients and
	// pods, how many the trial has of each, and the System's parameters of type Integer. An
	// artifact whose faulty clients are the first ones of every pod has "index * pods + pod <
	// clients * parameters.faultyClients / 100". Numbers by correct client leave these clients out.
	// Not allowed with a driver, where the fault clientBehavior does this. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Misbehaving string `json:"misbehaving,omitempty"`

	// end says when a client is over. Ignored with a driver. Default: when it exits.
	// +optional
	End *ClientEnd `json:"end,omitempty"`

	// results say what the client reports and where. Ignored with a driver.
	// +optional
	Results *ClientResults `json:"results,omitempty"`
}

// DriverSpec chooses how the load generator reaches the system.
type DriverSpec struct {
	// protocol of the driver. Process: the container's command speaks the driver protocol on its
	// stdin and stdout. Echo: the load generator's own TCP echo driver; the command's only element
	// is host:port.
	// +kubebuilder:validation:Enum=Process;Echo
	// +kubebuilder:default=Process
	// +optional
	Protocol string `json:"protocol,omitempty"`
}
