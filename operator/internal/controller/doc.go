// Package controller holds nothing but what the manager may do on a cluster; its controllers are in the folders below.
//
// The rules are in one place, each with its reason, since the owner of a cluster who lets strangers run experiments reads exactly
// this list. `make manifests` makes the ClusterRole of it. Leader election is not here: it needs a Role in the manager's own
// namespace only, which the chart brings.
//
// What users ask for and what the manager reports. Finalizers are set by update, and owner references that block deletion need
// the finalizers subresource where that admission plugin is on.
//
// +kubebuilder:rbac:groups=assay.dev,resources=systems,verbs=get;list;watch
// +kubebuilder:rbac:groups=assay.dev,resources=experiments,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=assay.dev,resources=trials,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=assay.dev,resources=experiments/status;trials/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=assay.dev,resources=experiments/finalizers;trials/finalizers,verbs=update
//
// What a trial consists of. All of it is applied, watched, and deleted with confirmation.
//
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=services;serviceaccounts,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;delete
//
// The logs of a trial that failed are kept with it.
//
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get
//
// Results and a System's snapshot; what a prepare step makes (keys) is kept in Secrets.
//
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;update;patch;delete
//
// Who is calling (agents show their service account's token), where pods run (part of every result), and what users are told.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch
package controller
