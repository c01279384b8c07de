package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SystemSpec says how to deploy one system under test, unchanged: its image needs to know nothing
// of Assay.
//
// Strings marked "template" are Go templates over the resolved topology;
// docs/reference/templates.md lists what they see.
// +kubebuilder:validation:XValidation:rule="has(self.machines) || has(self.workloads)",fieldPath=".workloads",message="say what clients can run: one workload at least; or set machines and script"
// +kubebuilder:validation:XValidation:rule="has(self.machines) || has(self.replicas)",fieldPath=".replicas",message="say how many replicas there are and how one runs; or set machines and script"
// +kubebuilder:validation:XValidation:rule="has(self.machines) || has(self.clients)",fieldPath=".clients",message="say how a client runs and what it reports; or set machines and script"
// +kubebuilder:validation:XValidation:rule="has(self.machines) == has(self.script)",fieldPath=".script",message="machines and script belong together: a script on one of the machines is the run of a trial"
// +kubebuilder:validation:XValidation:rule="!has(self.machines) || !(has(self.replicas) || has(self.clients) || has(self.components) || has(self.prepare) || has(self.datasets) || has(self.steps) || has(self.checks) || has(self.roles))",fieldPath=".machines",message="a System with machines has no replicas, clients, components, prepare, datasets, steps, checks or roles: the script does what these are for"
// +kubebuilder:validation:XValidation:rule="has(self.machines) || !has(self.shared)",fieldPath=".shared",message="directories are shared by machines that answer SSH: set machines and script, or give replicas volumes"
type SystemSpec struct {
	// description says what the system is, in a sentence. At most 1024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	// program names the program in the images. With it, a verdict says whether a paper measured the
	// same program. Default: not known; it then counts as a stand-in for any other.
	// +optional
	Program *Program `json:"program,omitempty"`

	// parameters are the knobs that an Experiment may turn. Assay rejects an Experiment that sets
	// any other parameter.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Parameters []Parameter `json:"parameters,omitempty"`

	// machines answer SSH, and a script on one of them drives the others, as the authors of many
	// artifacts have it: docs/guide/ssh-artifacts.md. They are instead of replicas, components,
	// clients and prepare. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Machines []MachineGroup `json:"machines,omitempty"`

	// shared are directories that all machines of a trial see, as the homes of many testbeds are.
	// With machines only. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=4
	Shared []SharedDirectory `json:"shared,omitempty"`

	// script is the run of a trial, on one of the machines. With machines only.
	// +optional
	Script *Script `json:"script,omitempty"`

	// workloads are what the system's clients can run. An Experiment names one of them. Required
	// without machines; with machines the default is one workload, script.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Workloads []Workload `json:"workloads,omitempty"`

	// prepare makes files once for all replicas and clients of a trial (keys, certificates) before
	// any of them starts.
	// +optional
	Prepare *PrepareStep `json:"prepare,omitempty"`

	// datasets are directories of data that are made once on each node. Pods get a fresh copy
	// before a trial starts. The owner of the cluster provides the place: see
	// docs/guide/data-sets.md. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Datasets []DatasetSource `json:"datasets,omitempty"`

	// replicas says how many replicas a shard has and how one runs. Required without machines.
	// +optional
	Replicas ReplicasSpec `json:"replicas,omitzero"`

	// components are pods of the system besides replicas and clients, such as a coordinator or a
	// proxy. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Components []Component `json:"components,omitempty"`

	// steps run in order after the replicas are ready and before the clients start: create a
	// keyspace, wait for the ring, load, flush.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Steps []Step `json:"steps,omitempty"`

	// clients says how one client pod runs and where its results are. Required without machines.
	// +optional
	Clients ClientsTemplate `json:"clients,omitzero"`

	// checks run when the clients of a trial are over and the replicas still run: each says whether
	// the system kept its promises. Their verdict is a result of the trial. A verdict makes no
	// trial invalid, and no trial is repeated because of it. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Checks []SafetyCheck `json:"checks,omitempty"`

	// roles say how to find the replica that plays a role (leader, primary) at a given moment.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Roles []Role `json:"roles,omitempty"`
}

// Program is the program under test.
type Program struct {
	// name of the program, as its authors call it: etcd.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`

	// version of the program in the images. Default: not known.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// reimplements names the program whose published protocol this one implements anew: Basil, for
	// a Basil that others wrote. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reimplements string `json:"reimplements,omitempty"`

	// url of the program's source or of its authors' page. Default: not known.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	URL string `json:"url,omitempty"`
}

// ParameterType is the type of a declared parameter: String; Integer (64-bit); Decimal; Boolean
// (true or false); Duration (such as 4ms).
// +kubebuilder:validation:Enum=String;Integer;Decimal;Boolean;Duration
type ParameterType string

// The types of a parameter.
const (
	ParameterString   ParameterType = "String"
	ParameterInteger  ParameterType = "Integer"
	ParameterDecimal  ParameterType = "Decimal"
	ParameterBoolean  ParameterType = "Boolean"
	ParameterDuration ParameterType = "Duration"
)

// Parameter declares one knob: its name, its values, its effect.
type Parameter struct {
	// name is how experiments and templates call the parameter, in lowerCamelCase.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-zA-Z0-9]*$`
	Name string `json:"name"`

	// type of its values.
	Type ParameterType `json:"type"`

	// default is used where an experiment sets nothing. A parameter without a default must be set
	// by the experiment.
	// +optional
	Default *Value `json:"default,omitempty"`

	// allowed lists the only values that are accepted. Empty: any value of the type.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Allowed []Value `json:"allowed,omitempty"`

	// minimum is the least value accepted. For Integer, Decimal and Duration only.
	// +optional
	Minimum *Value `json:"minimum,omitempty"`

	// maximum is the greatest value accepted. For Integer, Decimal and Duration only.
	// +optional
	Maximum *Value `json:"maximum,omitempty"`

	// doc says in a sentence what the parameter does, with its unit.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Doc string `json:"doc"`
}

// Workload is one thing that the system's clients can do.
type Workload struct {
	// name of the workload, as experiments call it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// doc says what a transaction or operation of the workload is.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Doc string `json:"doc,omitempty"`

	// parameters that only this workload has. Names must differ from the system's own.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Parameters []Parameter `json:"parameters,omitempty"`
}

// System is one system under test: how to deploy it, how its clients run, what they report.
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=assay,shortName=asys
// +kubebuilder:printcolumn:name="Replicas",type=string,JSONPath=`.spec.replicas.count`
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="metadata.name: at most 40 characters, since the names of other objects contain it",messageExpression="'metadata.name: \"' + self.metadata.name + '\" is too long: at most 40 characters, since the names of other objects contain it'"
type System struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the system.
	Spec SystemSpec `json:"spec"`
}

// SystemList is a list of Systems.
// +kubebuilder:object:root=true
type SystemList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []System `json:"items"`
}
