// Package v1alpha1 holds the kinds of assay.dev: System, Experiment, Trial and Dataset.
//
// It is the only truth about them: CRDs, deep copies and the reference pages are
// generated from it. It imports the standard library, k8s.io/api/core/v1 and
// k8s.io/apimachinery only, so that other programs can import it cheaply.
//
// +kubebuilder:object:generate=true
// +groupName=assay.dev
package v1alpha1
