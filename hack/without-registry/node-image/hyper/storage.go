package main

// The storage provisioner gives a PersistentVolumeClaim a directory of the node
// where its first pod runs, in place of kind's local-path-provisioner, whose
// module brings another release of Kubernetes' libraries. One runs on each node
// (../manifests/default-storage.yaml) and serves the claims of its own node.
//
// Its arguments are environment variables: NODE_NAME, and STORAGE_ROOT, the
// directory that holds those of the volumes, the same on the node and in the pod.

import (
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// provisionerName is what the StorageClass names.
const provisionerName = "storage.kind.assay.dev"

func runStorage() {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	s := storage{node: os.Getenv("NODE_NAME"), root: os.Getenv("STORAGE_ROOT")}
	controller.NewProvisionController(ctx, client, provisionerName, s, controller.LeaderElection(false)).Run(ctx)
}

type storage struct{ node, root string }

// ShouldProvision: the scheduler has chosen this node for the claim's first pod.
func (s storage) ShouldProvision(_ context.Context, claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations["volume.kubernetes.io/selected-node"] == s.node
}

// ShouldDelete: the volume is a directory of this node.
func (s storage) ShouldDelete(_ context.Context, volume *corev1.PersistentVolume) bool {
	return volume.Labels[corev1.LabelHostname] == s.node
}

// Provision makes the directory. A size is not enforced, as in kind's.
func (s storage) Provision(_ context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if m := o.PVC.Spec.VolumeMode; m != nil && *m == corev1.PersistentVolumeBlock {
		return nil, controller.ProvisioningFinished, errors.New("volumeMode is Block; a directory can only be Filesystem")
	}
	path := filepath.Join(s.root, o.PVName)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	if err := os.Chmod(path, 0o777); err != nil { // whatever the umask is: the pod's user is unknown here
		return nil, controller.ProvisioningFinished, err
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName, Labels: map[string]string{corev1.LabelHostname: s.node}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			AccessModes:                   o.PVC.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{s.node}}},
			}}}},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the directory of a released volume.
func (s storage) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	return os.RemoveAll(filepath.Join(s.root, volume.Name))
}
