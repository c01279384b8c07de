package v1alpha1

// Role says how to find the replica that plays a role. Shortly before a fault that targets the
// role, Assay asks each replica whether it has the role. Exactly one of command, http and log is
// set.
// +kubebuilder:validation:XValidation:rule="[has(self.log), has(self.http), has(self.command)].filter(x, x).size() == 1",message="set exactly one of log, http, command",messageExpression=`(has(self.log) ? 'log ' : "") + (has(self.http) ? 'http ' : "") + (has(self.command) ? 'command ' : "") + 'is set; set exactly one of log, http, command'`
type Role struct {
	// name of the role: leader, primary.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// component whose pods may have the role, instead of replicas. A pod of it counts as a replica
	// below. Default: none, replicas have it.
	// +optional
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	Component string `json:"component,omitempty"`

	// command exits with 0 in the replica that has the role. Template.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command,omitempty"`

	// http answers with a status from 200 to 299 in the replica that has the role.
	// +optional
	HTTP *HTTPGate `json:"http,omitempty"`

	// log finds the role in the replica's output.
	// +optional
	Log *RoleLog `json:"log,omitempty"`
}

// RoleLog finds a role in a replica's output. The last line that matches one of the two patterns
// decides: the replica has the role if that line matches gained.
type RoleLog struct {
	// gained is a regular expression (RE2) of a line that a replica prints when it gets the role.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Gained string `json:"gained"`

	// lost is a regular expression (RE2) of a line that a replica prints when it loses the role, or
	// sees that another replica has it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Lost string `json:"lost"`

	// stream to read. Default: Any.
	// +optional
	// +kubebuilder:default=Any
	Stream OutputStream `json:"stream,omitempty"`

	// container whose output is read. Default: the first.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Container string `json:"container,omitempty"`
}
