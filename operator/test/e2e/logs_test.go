package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/testpack"
)

// Without a store, an experiment may keep the logs of a trial that counts. Here they show how many
// processors a program sees that is bound to one.
func TestLogsOfATrialThatCounts(t *testing.T) {
	e := newEnv(t)
	exp := e.apply(t, filepath.Join("testdata", "awkward.yaml"), func(o client.Object) {
		switch o := o.(type) {
		case *v1alpha1.System:
			o.Spec.Replicas.Containers[0].Processors = "1"
		case *v1alpha1.Experiment:
			size := resource.MustParse("64Ki")
			o.Spec.Debug = &v1alpha1.Debug{KeepLogs: &size}
			o.Spec.Tolerances.StartSpread = "100ms"
		}
	})
	r := lastValid(t, e.complete(t, exp, 3*time.Minute))
	kept := &corev1.ConfigMap{}
	if err := e.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: r.Name + "-results" + v1alpha1.FilesSuffix}, kept); err != nil {
		t.Fatalf("the logs of %s: %v", r.Name, err)
	}
	servers, clients := 0, 0
	for _, p := range r.Pods {
		files := testpack.Files(t, kept.BinaryData[p.Name+".tar.gz"])
		switch p.Part {
		case v1alpha1.PodTypeReplica:
			servers++
			if text := files["logs/server.stderr"]; !strings.Contains(text, "It sees 1 processors\n") || !strings.Contains(text, "Ready to process operations\n") {
				t.Errorf("%s printed %q", p.Name, text)
			}
		case v1alpha1.PodTypeClient:
			clients++
			if text := files["logs/client.stdout"]; strings.Count(text, "\n") < 100 {
				t.Errorf("of %s %d lines are kept", p.Name, strings.Count(text, "\n"))
			}
		}
	}
	if servers != 4 || clients != 2 {
		t.Errorf("there are logs of %d servers and %d clients, want 4 and 2", servers, clients)
	}
}
