package chart

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// No node's disks are written to unless the owner asks for it.
func TestDatasetsAreOffByDefault(t *testing.T) {
	r := render(t)
	for name := range r.objects {
		if strings.HasSuffix(name, "/assay-datasets") {
			t.Errorf("the default has %s", name)
		}
	}
	if got := argument(r.manager.Spec.Template.Spec.Containers[0].Args, "--datasets-keep"); got != "720h" {
		t.Errorf("data sets are kept for %s", got)
	}
}

// Each namespace has a claim that leads to a folder of its own on every node, and nothing but the
// DaemonSet that makes these folders mounts a path.
func TestEachNamespaceHasItsOwnFolder(t *testing.T) {
	r := render(t, "--set=datasets.namespaces={papers,lab},datasets.path=/data/assay,datasets.keep=48h")
	for _, namespace := range []string{"papers", "lab"} {
		volume, ok := r.objects["PersistentVolume/assay-datasets-"+namespace].(*corev1.PersistentVolume)
		if !ok {
			t.Fatalf("there is no volume for %s", namespace)
		}
		v := volume.Spec
		if v.HostPath.Path != "/data/assay/"+namespace || *v.HostPath.Type != corev1.HostPathDirectory || v.ClaimRef.Namespace != namespace || v.ClaimRef.Name != "assay-datasets" ||
			v.NodeAffinity != nil || v.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			t.Errorf("the volume of %s is %+v", namespace, v)
		}
		if !strings.Contains(r.text, "namespace: \""+namespace+"\"\n") || !strings.Contains(r.text, "volumeName: assay-datasets-"+namespace+"\n") {
			t.Errorf("there is no claim in %s", namespace)
		}
	}
	set := r.objects["DaemonSet/assay-datasets"].(*appsv1.DaemonSet)
	c := set.Spec.Template.Spec.Containers[0]
	if got := strings.Join(c.Command, " "); got != "/agent dataset directories --root /datasets papers lab" {
		t.Errorf("the DaemonSet runs %q", got)
	}
	s := c.SecurityContext
	if *s.RunAsUser != 0 || *s.RunAsGroup != 65532 || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Privileged != nil ||
		len(s.Capabilities.Add) > 0 || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || set.Spec.Template.Spec.HostPID || set.Spec.Template.Spec.HostNetwork {
		t.Errorf("the DaemonSet has the rights %+v", s)
	}
	if volumes := set.Spec.Template.Spec.Volumes; len(volumes) != 1 || volumes[0].HostPath.Path != "/data/assay" {
		t.Errorf("the DaemonSet has the volumes %+v", volumes)
	}
	for _, v := range r.manager.Spec.Template.Spec.Volumes {
		if v.HostPath != nil || v.PersistentVolumeClaim != nil {
			t.Errorf("the manager mounts %+v", v)
		}
	}
}
