// Package controller holds nothing but the rights of the manager that the trial controller does not name itself; the controllers are in the
// folders below. `make manifests` makes one ClusterRole of all markers. Leader election and certificates need none of it: the chart brings Roles
// for the manager's own namespace. docs/reference/rights.md says what each right is for.
//
// Experiments are reported on, and kept by a finalizer until their trials are gone. Where the API server checks owner references that
// block deletion, setting one needs the finalizers subresource.
//
// +kubebuilder:rbac:groups=assay.dev,resources=experiments,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=assay.dev,resources=experiments/status,verbs=update;patch
// +kubebuilder:rbac:groups=assay.dev,resources=experiments/finalizers,verbs=update
//
// Systems are read by admission and frozen as ControllerRevisions when an experiment is accepted.
//
// +kubebuilder:rbac:groups=assay.dev,resources=systems,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;create;delete
package controller
