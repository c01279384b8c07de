package v1alpha1

// NoStore is the name of no store: results stay in the cluster even where the installation has a
// default store.
const NoStore = "none"

// Results says where an experiment's results are kept besides the cluster. The cluster always keeps
// them.
type Results struct {
	// store of this installation that raw results, timelines, logs, the report and the bundle are
	// put in: a name that the installation's owner gave it, or none. Default: the installation's
	// default store, if it has one. docs/guide/s3.md.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Store string `json:"store,omitempty"`
}

// ResultsArchive says how an experiment's results stand in its store.
type ResultsArchive struct {
	// store in use. It is chosen when the experiment is accepted and never changed.
	// +kubebuilder:validation:MaxLength=40
	Store string `json:"store"`

	// location of the experiment's objects: s3://bucket/..., a folder.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Location string `json:"location,omitempty"`

	// digest of the results whose report and bundle are stored; empty before the experiment is
	// complete and stored.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`

	// reason why the store does not take results, as the condition ResultsStored has it. Empty: the
	// store took the last results that it got.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message says what is wrong and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// TrialResultsStored is True when the store of the trial's experiment has all files of the trial.
// It is False with the reason while files wait in the cluster. Trials without a store do not have
// the condition. It is set when the trial is complete; nothing waits for it.
const TrialResultsStored = "ResultsStored"

// Reasons why results are not in a store. The results stay in the cluster, and the manager tries
// again.
const (
	// ReasonStoring: the results are on the way.
	ReasonStoring = "Storing"
	// ReasonStoreNotConfigured: the installation has no store of that name any more.
	ReasonStoreNotConfigured = "StoreNotConfigured"
	// ReasonStoreUnreachable: the store does not answer.
	ReasonStoreUnreachable = "StoreUnreachable"
	// ReasonStoreCertificate: the store's certificate is not trusted.
	ReasonStoreCertificate = "StoreCertificate"
	// ReasonStoreDenied: the store rejects the credentials, or they do not permit the request.
	ReasonStoreDenied = "StoreDenied"
	// ReasonStoreBucketMissing: the store has no such bucket.
	ReasonStoreBucketMissing = "StoreBucketMissing"
	// ReasonStoreFull: the store has no room.
	ReasonStoreFull = "StoreFull"
	// ReasonStoreError: anything else; the message has the error.
	ReasonStoreError = "StoreError"
	// ReasonStoreCorrupted: the stored object differs from the sent one.
	ReasonStoreCorrupted = "StoreCorrupted"
)

// ResultsKept is the value of LabelResults on ConfigMaps that wait in the cluster for a store. Each
// holds a part of an object, and has no meaning by itself.
const ResultsKept = "kept"

// ResultsFiles is the value of LabelResults on a ConfigMap with the files of a trial's pods, a
// gzipped tar for each pod. The ConfigMap is named after the trial's results, with FilesSuffix.
const (
	ResultsFiles = "files"
	FilesSuffix  = "-files"
)

// AnnotationResultsDigest is on an experiment's results ConfigMap: a digest of the stored results,
// which leaves out the time of storing.
const AnnotationResultsDigest = "assay.dev/digest"

// AnnotationTrialUID is on a trial's results ConfigMap: the UID of the Trial that the results
// belong to.
const AnnotationTrialUID = "assay.dev/trial-uid"

// AnnotationOutcome is on a trial's results ConfigMap: how the trial ended.
const AnnotationOutcome = "assay.dev/outcome"

// AnnotationReplaced is on a trial's results ConfigMap if it replaced results of earlier Trials of
// the same name, which a user deleted. It lists the outcomes of those Trials, with commas between
// them.
const AnnotationReplaced = "assay.dev/replaced"
