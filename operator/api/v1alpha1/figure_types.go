package v1alpha1

// Figure is a plot that the report has beside those of every experiment. docs/guide/figures.md
// shows each kind.
type Figure struct {
	// name of the figure, and of its files.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// title above the figure. Default: what it shows, such as its parts.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Title string `json:"title,omitempty"`

	// stack draws parts of a whole as a stacked bar for each point: the time of an operation by its
	// steps, storage by tier.
	Stack *Stack `json:"stack"`
}

// Stack is parts that add up.
type Stack struct {
	// parts in the order in which they are stacked, from 0 on: names of measurements of one unit. A
	// trial whose parts are not all measured, or of which one is below 0, is not in the figure.
	// +listType=set
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=40
	Parts []string `json:"parts"`
}
