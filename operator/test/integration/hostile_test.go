package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// mostHostileMegabytes bounds the manager's memory, whatever Systems there are.
const mostHostileMegabytes = 300

// filled returns a change of a System: the largest number of files, each from the same template.
func filled(template string) func(*v1alpha1.SystemSpec) {
	return func(s *v1alpha1.SystemSpec) {
		for set := range 8 {
			files := v1alpha1.FileSet{MountPath: fmt.Sprintf("/set%d", set)}
			for i := range 32 {
				files.Files = append(files.Files, v1alpha1.File{Name: fmt.Sprintf("f%d", i), Template: template})
			}
			s.Replicas.Files = append(s.Replicas.Files, files)
		}
	}
}

// An author of a System could make all managers run out of memory, one after the other, or keep
// them busy for hours. Each template had a bound, and the sum of all templates had none. A user of
// another namespace must not be affected.
func TestHostileSystemsHoldNoOtherTrialUp(t *testing.T) {
	env := testenv.Get(t)
	binary := managerProgram(t)
	hostile := env.Namespace(t)
	systems := map[string]func(*v1alpha1.SystemSpec){
		"memory": filled(`{{printf "%01000000d" 1}}`),
		"time":   filled(`{{range 1000000}}{{end}}`),
		"arguments": func(s *v1alpha1.SystemSpec) {
			for range 120 {
				s.Replicas.Containers[0].Command = append(s.Replicas.Containers[0].Command, `{{printf "%01000000d" 1}}`)
			}
		},
	}
	// The experiments come first: an experiment without its System renders no template when it is
	// applied.
	for name := range systems {
		exp := builders.Experiment(name).Namespace(hostile).System(name).Obj()
		if err := env.Client.Create(t.Context(), exp); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range systems {
		if err := env.Client.Create(t.Context(), builders.System(name).Namespace(hostile).Set(change).Obj()); err != nil {
			t.Fatal(err)
		}
	}
	clearOthers(t, env, hostile)
	addNode(t, env)
	m := startManager(t, env, binary)
	began := time.Now()
	honest := env.Namespace(t)
	if err := env.Client.Create(t.Context(), builders.System("echo").Namespace(honest).Obj()); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Create(t.Context(), builders.Experiment("honest").Namespace(honest).System("echo").Obj()); err != nil {
		t.Fatal(err)
	}
	m.eventually(t, 2*time.Minute, "the pods of another namespace's trial are asked for", func() bool {
		sets := &appsv1.StatefulSetList{}
		return env.Client.List(t.Context(), sets, client.InNamespace(honest)) == nil && len(sets.Items) > 0
	})
	t.Logf("the other namespace's trial was deployed %v after the manager had begun", time.Since(began).Round(100*time.Millisecond))
	m.eventually(t, 2*time.Minute, "every hostile experiment is refused", func() bool {
		list := &v1alpha1.ExperimentList{}
		if env.Client.List(t.Context(), list, client.InNamespace(hostile)) != nil {
			return false
		}
		refused := 0
		for _, x := range list.Items {
			if c := meta.FindStatusCondition(x.Status.Conditions, v1alpha1.ExperimentAccepted); c != nil && c.Status == "False" && strings.Contains(c.Message, "more than") {
				t.Logf("%s: %.200s", x.Name, c.Message)
				refused++
			}
		}
		return refused == len(systems)
	})
	peak := m.peakMegabytes(t)
	t.Logf("the manager took %.0f MB at most", peak)
	if peak > mostHostileMegabytes {
		t.Errorf("the manager took %.0f MB at most; %d are allowed", peak, mostHostileMegabytes)
	}
}

// clearOthers removes the experiments and trials of earlier tests. Their managers are gone, so
// these trials would hold all pools for ever.
func clearOthers(t *testing.T, env *testenv.Env, keep string) {
	t.Helper()
	experiments, trials := &v1alpha1.ExperimentList{}, &v1alpha1.TrialList{}
	for _, list := range []client.ObjectList{experiments, trials} {
		if err := env.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	var all []client.Object
	for i := range experiments.Items {
		all = append(all, &experiments.Items[i])
	}
	for i := range trials.Items {
		all = append(all, &trials.Items[i])
	}
	const without = `{"metadata":{"finalizers":null}}`
	for _, o := range all {
		if o.GetNamespace() == keep {
			continue
		}
		err := errors.Join(
			client.IgnoreNotFound(env.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(without)))),
			client.IgnoreNotFound(env.Client.Delete(t.Context(), o)))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// addNode adds a node with room for a trial.
func addNode(t *testing.T, env *testenv.Env) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "hostile-test"}}
	if err := env.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), node) })
	node.Spec.Taints = nil
	if err := env.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("500"),
	}
	node.Status.Capacity = node.Status.Allocatable
	if err := env.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition holds. It fails when the manager has ended.
func (m *manager) eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(within)
	for !holds() {
		select {
		case err := <-m.ended:
			t.Fatalf("the manager ended: %v\n%s", err, m.tail())
		case <-deadline:
			t.Fatalf("not within %v: %s\n%s", within, what, m.tail())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
