package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DatasetUsers says which pods of a trial get a copy: Replicas; Clients; All, both of these;
// Components, only those of the listed components.
// +kubebuilder:validation:Enum=Replicas;Clients;All;Components
type DatasetUsers string

// The pods that may get a copy.
const (
	DatasetForReplicas DatasetUsers = "Replicas"
	DatasetForClients  DatasetUsers = "Clients"
	DatasetForAll      DatasetUsers = "All"
	// DatasetForComponents is for pods of the listed components only.
	DatasetForComponents DatasetUsers = "Components"
)

// DatasetCheck says how a copy is compared with the prepared data. Sizes compares names, kinds,
// modes, sizes and targets of links. It also compares sizes and times of the prepared files, in
// case a program changed them. Content does the same, and compares the SHA-256 of every file, read
// back from the copy.
// +kubebuilder:validation:Enum=Sizes;Content
type DatasetCheck string

// The checks of a copy.
const (
	DatasetCheckSizes   DatasetCheck = "Sizes"
	DatasetCheckContent DatasetCheck = "Content"
)

// DatasetBytes says whether the nodes of a data set must have the same bytes. Identical: they must,
// and a preparation that makes others fails. PerNode: each node keeps the bytes that its own recipe
// made, and a copy is compared with the digest of its node.
// +kubebuilder:validation:Enum=Identical;PerNode
type DatasetBytes string

// The bytes of nodes.
const (
	DatasetBytesIdentical DatasetBytes = "Identical"
	DatasetBytesPerNode   DatasetBytes = "PerNode"
)

// DatasetSource is a directory of data that a System's pods begin with. A recipe fills it once on
// each node; every pod of every trial gets a copy of its own.
// +kubebuilder:validation:XValidation:rule="!has(self.usedBy) || self.usedBy != 'Components' || (has(self.components) && size(self.components) > 0)",fieldPath=".components",message="is empty, and usedBy is Components: name the components whose pods get a copy"
type DatasetSource struct {
	// name of the data set, unique in the system. At most 20 characters.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// doc says in a sentence what the data is.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Doc string `json:"doc,omitempty"`

	// container is the recipe: it fills outputPath and exits with 0. Among its templates' variables
	// it may use only .Parameters, since the data outlives the trial. The rendered recipe is the
	// data set's key: another image, command, environment, user or directory makes another data
	// set. The recipe must give the same bytes each time, unless bytes is PerNode or the set is on
	// one node only.
	Container Container `json:"container"`

	// bytes says whether the recipe makes the same bytes on all nodes. Identical rejects other
	// bytes. PerNode is for recipes that cannot make the same bytes twice, as with most databases.
	// The data means the same on each node, and each node has a digest of its own. Default:
	// Identical.
	// +optional
	Bytes DatasetBytes `json:"bytes,omitempty"`

	// outputPath is the directory that the recipe fills, absolute. Links out of it are refused.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/.+`
	OutputPath string `json:"outputPath"`

	// size is the most that the data may hold, from 1Mi to 16Ti. A recipe that writes more fails.
	// A node needs twice the size while the set is made, and once for each copy.
	Size resource.Quantity `json:"size"`

	// timeout on each node, of the recipe and of storing its files. Default: 1h. From 1s to 72h.
	// +optional
	// +kubebuilder:default="1h"
	Timeout Duration `json:"timeout,omitempty"`

	// mountPath is where each pod finds its copy, absolute. The copy belongs to the user of the
	// pod's first container, and is gone with the pod.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/.+`
	MountPath string `json:"mountPath"`

	// subPath is the directory of the data set that a pod copies, relative to outputPath. It is a
	// template, rendered for each pod: node-{{.Self.Index}} gives each replica a directory of its
	// own. Addresses are not known to it. The key of the data set does not depend on it. Default:
	// the whole data set.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	SubPath string `json:"subPath,omitempty"`

	// usedBy says which pods get a copy. Default: Replicas.
	// +optional
	// +kubebuilder:default=Replicas
	UsedBy DatasetUsers `json:"usedBy,omitempty"`

	// components whose pods get a copy, besides those of usedBy. With usedBy: Components there is
	// one at least. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=14
	Components []string `json:"components,omitempty"`

	// check says how each copy is compared with the prepared data. Default: Sizes.
	// +optional
	// +kubebuilder:default=Sizes
	Check DatasetCheck `json:"check,omitempty"`
}

// ForReplicas reports whether replicas get a copy.
func (d *DatasetSource) ForReplicas() bool {
	return d.UsedBy != DatasetForClients && d.UsedBy != DatasetForComponents
}

// ForClients reports whether client pods get a copy.
func (d *DatasetSource) ForClients() bool {
	return d.UsedBy == DatasetForClients || d.UsedBy == DatasetForAll
}

// DatasetRecipe is a recipe with its templates rendered.
type DatasetRecipe struct {
	// system is the System for which the data set was first asked for.
	// +kubebuilder:validation:MaxLength=40
	System string `json:"system"`
	// name of the data set.
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`

	// image that makes the data.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`
	// command to run, with all arguments.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Command []string `json:"command"`
	// env sets environment variables.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Env []EnvVar `json:"env,omitempty"`
	// workingDir the command starts in. Default: the image's.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	WorkingDir string `json:"workingDir,omitempty"`
	// runAsUser is the numeric user that the command runs as.
	// +kubebuilder:validation:Minimum=0
	RunAsUser int64 `json:"runAsUser"`
	// outputPath is the directory that the command fills.
	// +kubebuilder:validation:MaxLength=256
	OutputPath string `json:"outputPath"`
	// bytes is PerNode if each node has bytes of its own. Empty: all nodes have the same.
	// +optional
	Bytes DatasetBytes `json:"bytes,omitempty"`
}

// PerNode reports whether each node has bytes of its own.
func (r *DatasetRecipe) PerNode() bool { return r.Bytes == DatasetBytesPerNode }

// DatasetSpec says which data is wanted on which nodes.
type DatasetSpec struct {
	// recipe that makes the data. It never changes: another recipe makes another Dataset.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="recipe is immutable: another recipe makes another Dataset"
	Recipe DatasetRecipe `json:"recipe"`

	// size is the most that the data may hold.
	Size resource.Quantity `json:"size"`

	// timeout on each node. From 1s to 72h.
	Timeout Duration `json:"timeout"`

	// imagePullPolicy as in a Pod. Default: IfNotPresent.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// resources of the recipe's container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// nodes that want the data. Trials add to them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	Nodes []string `json:"nodes,omitempty"`
}

// DatasetNode is what was prepared on one node.
type DatasetNode struct {
	// name of the node.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// preparedAt is when the data was in its place.
	PreparedAt metav1.Time `json:"preparedAt"`
	// recipeSeconds is how long the recipe ran, in whole seconds.
	RecipeSeconds int64 `json:"recipeSeconds"`
	// keepMilliseconds is how long it took to hash the recipe's files and to put them in their
	// place.
	KeepMilliseconds int64 `json:"keepMilliseconds"`
	// digest of this node's tree, if each node has bytes of its own.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Digest string `json:"digest,omitempty"`
}

// DatasetStatus is the state of a data set.
type DatasetStatus struct {
	// conditions: Ready is True when every node of the spec has the data. It is False with the
	// reason Preparing, or with the reason why the data cannot be prepared: RecipeFailed,
	// NotIdentical, NoClaim.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// digest of the tree: sha256: and a hash in hexadecimal. It covers names, kinds, modes, sizes,
	// targets of links and the SHA-256 of all files. Empty if each node has bytes of its own: then
	// nodes has the digests.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Digest string `json:"digest,omitempty"`
	// bytes of all files together, on the node with most.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// files, directories not counted, on the node with most.
	// +optional
	Files int64 `json:"files,omitempty"`

	// nodes that have the data.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Nodes []DatasetNode `json:"nodes,omitempty"`

	// lastUsed is when a trial was last made that uses it.
	// +optional
	LastUsed *metav1.Time `json:"lastUsed,omitempty"`
}

// Conditions and reasons of a Dataset.
const (
	// DatasetReady is True when every node of the spec has the data.
	DatasetReady = "Ready"
	// ReasonPrepared: every node has the data.
	ReasonPrepared = "Prepared"
	// ReasonRecipeFailed: the recipe failed on a node, or took too long; the message has its last
	// lines. It is tried again when the spec changes, and when the Dataset is deleted.
	ReasonRecipeFailed = "RecipeFailed"
	// ReasonNotIdentical: two runs of the recipe gave different bytes.
	ReasonNotIdentical = "NotIdentical"
	// ReasonNoClaim: the namespace has no PersistentVolumeClaim for data sets.
	ReasonNoClaim = "NoClaim"
	// ReasonRemoving: the data is being deleted from the nodes.
	ReasonRemoving = "Removing"
)

// Dataset is data that a System's recipe made, kept on the nodes' disks. The manager makes the
// Dataset, and deletes it when no trial has used it for long. A user may delete it by hand. The
// bytes are deleted with it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=assay,shortName=ads
// +kubebuilder:printcolumn:name="System",type=string,JSONPath=`.spec.recipe.system`
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.recipe.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.status.bytes`
// +kubebuilder:printcolumn:name="Files",type=integer,JSONPath=`.status.files`
// +kubebuilder:printcolumn:name="Last used",type=date,JSONPath=`.status.lastUsed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Dataset struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the data set.
	Spec DatasetSpec `json:"spec"`

	// status of the data set.
	// +optional
	Status DatasetStatus `json:"status,omitempty"`
}

// DatasetList is a list of Datasets.
// +kubebuilder:object:root=true
type DatasetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Dataset `json:"items"`
}

// DatasetDigest is the digest of the tree on one node.
type DatasetDigest struct {
	// node that has the tree.
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// digest of the tree.
	// +kubebuilder:validation:MaxLength=80
	Digest string `json:"digest"`
}

// TrialDataset is a data set that a trial's pods begin with, as it was when the trial was made.
type TrialDataset struct {
	// name of the data set in the System.
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`
	// dataset is the name of the Dataset.
	// +kubebuilder:validation:MaxLength=63
	Dataset string `json:"dataset"`
	// digest of the data set's tree. Empty if each node has bytes of its own.
	// +kubebuilder:validation:MaxLength=80
	Digest string `json:"digest"`
	// digests of the trees, if each node has bytes of its own: of all nodes on which a pod may run
	// that gets a copy.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=256
	Digests []DatasetDigest `json:"digests,omitempty"`
	// bytes of all files together, on the node with most.
	Bytes int64 `json:"bytes"`
	// files, directories not counted, on the node with most.
	Files int64 `json:"files"`
	// preparedNodes is the number of nodes on which the data had been prepared.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	PreparedNodes int32 `json:"preparedNodes"`
	// prepareMilliseconds is how long the slowest node took to prepare the data: recipe, hash and
	// storing.
	PrepareMilliseconds int64 `json:"prepareMilliseconds"`
}

// DigestOn returns the digest that a copy on a node has. It is empty if the node has no data.
func (d *TrialDataset) DigestOn(node string) string {
	if len(d.Digests) == 0 {
		return d.Digest
	}
	for _, on := range d.Digests {
		if on.Node == node {
			return on.Digest
		}
	}
	return ""
}

// DatasetCopies describes one data set's copies in the pods of a trial.
type DatasetCopies struct {
	// name of the data set in the System.
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`
	// copies, one in each pod. All have the digest that the trial's spec has for their node.
	Copies int32 `json:"copies"`
	// bytes of the largest copy.
	Bytes int64 `json:"bytes"`
	// method of the copies: Reflink, Copy, or Mixed where pods or files differ.
	// +kubebuilder:validation:Enum=Reflink;Copy;Mixed
	Method string `json:"method"`
	// check that each copy has passed.
	Check DatasetCheck `json:"check"`
	// fastestMilliseconds is how long the fastest copy took, with its check.
	FastestMilliseconds int64 `json:"fastestMilliseconds"`
	// slowestMilliseconds is how long the slowest copy took, with its check.
	SlowestMilliseconds int64 `json:"slowestMilliseconds"`
}
