package v1alpha1

// Labels and annotations that Assay sets. All share one prefix.
const (
	// LabelExperiment is on every object of an experiment: its name.
	LabelExperiment = "assay.dev/experiment"
	// LabelTrial is on every object of a trial: its name.
	LabelTrial = "assay.dev/trial"
	// LabelPoint is on a Trial, its pods and its results: the index of its point.
	LabelPoint = "assay.dev/point"
	// LabelTrialNamespace is on the pods that reset machines, which run outside of the trial's
	// namespace: the name of that namespace.
	LabelTrialNamespace = "assay.dev/trial-namespace"
	// LabelPodType is on every pod of a trial: PodTypeReplica, PodTypeComponent, PodTypeClient,
	// PodTypePrepare or PodTypeMachine.
	LabelPodType = "assay.dev/pod-type"
	// LabelShard is on every replica: the index of its shard.
	LabelShard = "assay.dev/shard"
	// LabelComponent is on every pod of a component: its name.
	LabelComponent = "assay.dev/component"
	// LabelRegion is on every replica and component pod: the name of its region.
	LabelRegion = "assay.dev/region"
	// LabelReplicaBase is on every StatefulSet: the index that its pod of ordinal 0 has in the
	// shard or component.
	LabelReplicaBase = "assay.dev/replica-base"
	// LabelSystem is on the snapshot of a System that an experiment took, and on the pods of the
	// trials with it: the System's name.
	LabelSystem = "assay.dev/system"
	// LabelSeal is on the ControllerRevision that holds the text of an experiment's seal: "claims".
	LabelSeal = "assay.dev/seal"
	// LabelResults is on every ConfigMap with results: "experiment", "trial" or "files".
	LabelResults = "assay.dev/results"

	// LabelTry is on an Experiment that kubectl assay try made: the name of the experiment whose
	// point it tries. The made experiment has one trial, which is in no average.
	LabelTry = "assay.dev/try"

	// LabelRecurs is on every run of an experiment that recurs, and on its results: the name of
	// that experiment.
	LabelRecurs = "assay.dev/recurs"

	// LabelDataset is on every Job, and its pods, that prepares or removes a data set: the
	// Dataset's name.
	LabelDataset = "assay.dev/dataset"

	// LabelImages is on every Job, and its pods, that has a node pull images before a trial: the
	// experiment's name.
	LabelImages = "assay.dev/images"

	// LabelPool is set on a Node by its owner: the pool that it belongs to. A taint of this key and
	// the pool's name keeps pods of others away.
	LabelPool = "assay.dev/pool"

	// AnnotationProgress is on a Trial while its clients run: how far they are, as JSON
	// {"committed":123,"perSecond":45,"atMillis":2000}, and which faults took effect. It is for
	// people who watch, and is written every 2 s at most.
	AnnotationProgress = "assay.dev/progress"

	// AnnotationDueTime is on every run of an experiment that recurs: when it was due, in UTC, as
	// RFC 3339 writes it.
	AnnotationDueTime = "assay.dev/due-time"

	// AnnotationAxisPrefix begins annotations of every pod of a trial. The name of an axis follows
	// the prefix. The value is the point's value of that axis.
	AnnotationAxisPrefix = "axis.assay.dev/"

	// AnnotationAllowMachineFaults is set on a Node by its owner: "true" allows trials to reset it
	// (nodeKill, mode Machine).
	AnnotationAllowMachineFaults = "assay.dev/allow-machine-faults"

	// FinalizerTrial holds a Trial until everything that it made is confirmed gone.
	FinalizerTrial = "assay.dev/trial"
	// FinalizerDataset holds a Dataset until its bytes are gone from the nodes.
	FinalizerDataset = "assay.dev/dataset"
	// FinalizerExperiment holds an Experiment until its trials are gone.
	FinalizerExperiment = "assay.dev/experiment"
)

// Values of LabelPodType.
const (
	PodTypeReplica   = "replica"
	PodTypeComponent = "component"
	PodTypeClient    = "client"
	PodTypePrepare   = "prepare"
	PodTypeMachine   = "machine"
)
