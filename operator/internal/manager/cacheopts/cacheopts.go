// Package cacheopts decides which objects the manager keeps in memory.
//
// The API server's records of who set which field (managedFields) are as large as many objects. No
// program here reads them, so they are removed before an object is cached. The cache keeps the pods
// of trials, and their owners, but no other pods of the cluster. Objects with much content that are
// rarely read (ConfigMaps, Secrets, ControllerRevisions) are not cached: controllers read them with
// the manager's API reader.
//
// A manager that was installed for some namespaces has no right to look into others, and does not
// try: see Reader, too.
package cacheopts

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Options returns the options of the cache of a manager for some namespaces. Without namespaces,
// the cache is for the whole cluster.
func Options(namespaces ...string) cache.Options {
	var of map[string]cache.Config
	if len(namespaces) > 0 {
		of = make(map[string]cache.Config, len(namespaces))
	}
	for _, n := range namespaces {
		of[n] = cache.Config{}
	}
	return cache.Options{
		DefaultNamespaces: of,
		DefaultTransform:  cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Trial{}: {Transform: shareStrings},
			&corev1.Pod{}:     ofTrials(), &corev1.Service{}: ofTrials(), &appsv1.StatefulSet{}: ofTrials(), &batchv1.Job{}: ofTrials(),
		},
	}
}

func ofTrials() cache.ByObject {
	exists, err := labels.NewRequirement(v1alpha1.LabelTrial, selection.Exists, nil)
	if err != nil {
		panic("the trial label is no label key: " + err.Error())
	}
	return cache.ByObject{Label: labels.NewSelector().Add(*exists)}
}
