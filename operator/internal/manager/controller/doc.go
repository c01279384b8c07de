// Package controller holds nothing but the rights of the manager; the controllers are in the
// folders below. `make manifests` makes one ClusterRole of all markers. Leader election and
// certificates need none of it: the chart brings Roles for the manager's own namespace.
// docs/reference/rights.md says what each right is for.
//
// Experiments are reported on, and kept by a finalizer until their trials are gone. A recurring
// Experiment makes runs, which are Experiments, and deletes the oldest of them. Where the API
// server checks owner references that block deletion, setting one needs the finalizers subresource.
//
// +kubebuilder:rbac:groups=assay.dev,resources=experiments,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=assay.dev,resources=experiments/status,verbs=update;patch
// +kubebuilder:rbac:groups=assay.dev,resources=experiments/finalizers,verbs=update
//
// Systems are read by admission and frozen as ControllerRevisions when an experiment is accepted.
//
// +kubebuilder:rbac:groups=assay.dev,resources=systems,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;create;delete
//
// Datasets are made when a trial needs them, and deleted when nothing uses them any more. Their
// Jobs are of the kind that trials have, too.
//
// +kubebuilder:rbac:groups=assay.dev,resources=datasets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=assay.dev,resources=datasets/status,verbs=update;patch
// +kubebuilder:rbac:groups=assay.dev,resources=datasets/finalizers,verbs=update
//
// Trials are carried out by pods, which no controller replaces; nodes are read to see what is free,
// and events to see why pods are refused.
//
// +kubebuilder:rbac:groups=assay.dev,resources=trials,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=assay.dev,resources=trials/status,verbs=update;patch
// +kubebuilder:rbac:groups=assay.dev,resources=trials/finalizers,verbs=update
// +kubebuilder:rbac:groups=assay.dev,resources=experiments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=list
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;delete
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
package controller
