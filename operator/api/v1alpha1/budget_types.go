package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Budget bounds what an experiment may take of machines and of time.
// +kubebuilder:validation:MinProperties=1
type Budget struct {
	// nodeHours is how long trials may hold nodes in all, in hours: a trial that runs on 4 nodes
	// for half an hour takes 2. Each counts from its admission until it is cleaned up, whether it
	// is valid or not. The next one is expected to take as long as the longest valid trial so far,
	// and at least its schedule. Above 0, and at most 1000000, as in 12 or "0.5". Default: no
	// bound.
	// +optional
	NodeHours *resource.Quantity `json:"nodeHours,omitempty"`

	// until is the time at which the last trial is to be over: a trial that is expected to last
	// longer does not start. One that still waits in the queue then is withdrawn. Default: no
	// bound.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}
