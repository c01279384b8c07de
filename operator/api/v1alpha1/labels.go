package v1alpha1

// Labels and annotations that Assay sets. All share one prefix.
const (
	// LabelExperiment is on every object of an experiment: its name.
	LabelExperiment = "assay.dev/experiment"
	// LabelTrial is on every object of a trial: its name.
	LabelTrial = "assay.dev/trial"
	// LabelPoint is on a Trial and its results: the index of its point.
	LabelPoint = "assay.dev/point"
	// LabelPart is on every pod of a trial: PartReplica, PartClient or PartPrepare.
	LabelPart = "assay.dev/part"
	// LabelShard is on every replica: the index of its shard.
	LabelShard = "assay.dev/shard"
	// LabelRegion is on every replica: the name of its region.
	LabelRegion = "assay.dev/region"
	// LabelReplicaBase is on every StatefulSet: the index in the shard of its ordinal 0.
	LabelReplicaBase = "assay.dev/replica-base"
	// LabelSystem is on the snapshot of a System that an experiment took: the System's name.
	LabelSystem = "assay.dev/system"
	// LabelResults is on every ConfigMap with results: "experiment" or "trial".
	LabelResults = "assay.dev/results"

	// AnnotationProgress is on a Trial while its clients run: how far they are, as JSON {"committed":123,"perSecond":45.6}. It is for people who
	// watch and is written every few seconds at most.
	AnnotationProgress = "assay.dev/progress"

	// FinalizerTrial holds a Trial until everything that it made is confirmed gone.
	FinalizerTrial = "assay.dev/trial"
	// FinalizerExperiment holds an Experiment until its trials are gone.
	FinalizerExperiment = "assay.dev/experiment"
)

// Values of LabelPart.
const (
	PartReplica = "replica"
	PartClient  = "client"
	PartPrepare = "prepare"
)
