package folder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/api/meta"
)

// open opens a store and makes a client of it, through client-go like that of a controller.
func open(t *testing.T, dir string) (*Store, client.WithWatch, *rest.Config) {
	t.Helper()
	s, err := Open(dir, "exp", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range Kinds {
		mapper.Add(k.GroupVersionKind(), meta.RESTScopeNamespace)
	}
	cfg := Config(&Server{Store: s})
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: clientgoscheme.Scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return s, c, cfg
}

func configMap(name string, finalizers ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: map[string]string{"of": name}, Finalizers: finalizers}, Data: map[string]string{"n": "1"}}
}

func TestAWriteUnderAnOldVersionIsAConflict(t *testing.T) {
	_, c, _ := open(t, t.TempDir())
	ctx := t.Context()
	mine := configMap("a")
	if err := c.Create(ctx, mine); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, configMap("a")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the second object of a name: %v", err)
	}
	theirs := mine.DeepCopy()
	theirs.Data["n"] = "2"
	if err := c.Update(ctx, theirs); err != nil {
		t.Fatal(err)
	}
	mine.Data["n"] = "3"
	if err := c.Update(ctx, mine); !apierrors.IsConflict(err) {
		t.Errorf("an update of what has changed: %v", err)
	}
	before := mine.DeepCopy()
	before.Data["n"] = "1"
	if err := c.Patch(ctx, mine, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
		t.Errorf("a patch of what has changed: %v", err)
	}
	found := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(mine), found); err != nil || found.Data["n"] != "2" {
		t.Errorf("read %v, %v; want 2", found.Data, err)
	}
}

func TestObjectsAreReadFromTheirFilesAgain(t *testing.T) {
	dir := t.TempDir()
	_, c, _ := open(t, dir)
	ctx := t.Context()
	for _, o := range []client.Object{configMap("kept"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "key"}}} {
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	// A process that is killed during a write leaves such a file.
	if err := os.WriteFile(filepath.Join(dir, "exp", "configmaps", "half.json.new"), []byte(`{"kind":`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, again, _ := open(t, dir)
	list, secrets := &corev1.ConfigMapList{}, &corev1.SecretList{}
	if err := again.List(ctx, list); err != nil || len(list.Items) != 1 || list.Items[0].Name != "kept" {
		t.Errorf("read again: %v, %v", list.Items, err)
	}
	if err := again.List(ctx, secrets); err != nil || len(secrets.Items) != 0 {
		t.Errorf("a secret outlived its process: %v, %v", secrets.Items, err)
	}
	kept := &list.Items[0]
	if err := again.Delete(ctx, kept); err != nil {
		t.Fatal(err)
	}
	third, err := Read(dir, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := third.List(kindOf("", "v1", "configmaps"), "", nil); len(left) != 0 {
		t.Errorf("a deleted object is there again: %v", left)
	}
	if _, err := third.Create(Experiments, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{}}}); err == nil {
		t.Error("a store that only reads took an object")
	}
}

func TestFinalizersHoldAnObjectAndOwnersTakeTheirsAlong(t *testing.T) {
	_, c, _ := open(t, t.TempDir())
	ctx := t.Context()
	owner := configMap("owner", "assay.dev/test")
	if err := c.Create(ctx, owner); err != nil {
		t.Fatal(err)
	}
	owned := configMap("owned")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	if err := c.Create(ctx, owned); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(ctx, owner); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil || owner.DeletionTimestamp.IsZero() {
		t.Fatalf("an object with a finalizer after its deletion: %v, %v", owner.DeletionTimestamp, err)
	}
	owner.Finalizers = nil
	if err := c.Update(ctx, owner); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{owner, owned} {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("%s after the deletion: %v", o.GetName(), err)
		}
	}
}

func TestAWatchSeesEveryChangeInOrder(t *testing.T) {
	_, c, cfg := open(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.Create(ctx, configMap("before")); err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.MatchingLabels{"of": "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	a := configMap("a")
	if err := c.Create(ctx, a); err != nil {
		t.Fatal(err)
	}
	a.Data["n"] = "2"
	if err := c.Update(ctx, a); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(ctx, a); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ADDED", "MODIFIED", "DELETED"} {
		if e := <-w.ResultChan(); string(e.Type) != want || e.Object.(*corev1.ConfigMap).Name != "a" {
			t.Fatalf("got %v of %v, want %s", e.Type, e.Object, want)
		}
	}
	plain, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	seconds := int64(1)
	limited, err := plain.CoreV1().ConfigMaps(Namespace).Watch(ctx, metav1.ListOptions{TimeoutSeconds: &seconds})
	if err != nil {
		t.Fatal(err)
	}
	if e := <-limited.ResultChan(); string(e.Type) != "ADDED" {
		t.Errorf("a watch that names no version begins with %v", e.Type)
	}
	for range limited.ResultChan() { // ends when its time is over
	}
}

// The store once accepted changes of immutable fields, and values beyond the bounds of a field.
func TestChangesAreRefusedAsByAnAPIServer(t *testing.T) {
	s, _, _ := open(t, t.TempDir())
	datasets := kindOf(Trials.Group, Trials.Version, "datasets")
	create := func(k *Kind, spec map[string]any) {
		t.Helper()
		if _, err := s.Create(k, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}, "spec": spec}}); err != nil {
			t.Fatal(err)
		}
	}
	create(Trials, map[string]any{"experiment": "e"})
	create(datasets, map[string]any{
		"recipe": map[string]any{"system": "kv", "name": "rows", "image": "lab/kv:1", "command": []any{"fill"}, "runAsUser": int64(1), "outputPath": "/data"}, "size": "1Gi", "timeout": "10m",
	})
	for name, tc := range map[string]struct {
		kind  *Kind
		value any
		at    []string
		want  string
	}{
		"a trial's spec":         {Trials, "other", []string{"spec", "experiment"}, "spec is immutable"},
		"a trial's label":        {Trials, "b", []string{"metadata", "labels", "a"}, ""},
		"the recipe of a set":    {datasets, "lab/kv:2", []string{"spec", "recipe", "image"}, "recipe is immutable"},
		"a set's size":           {datasets, "2Gi", []string{"spec", "size"}, ""},
		"a set's wrong timeout":  {datasets, "soon", []string{"spec", "timeout"}, "spec.timeout"},
		"a set's missing recipe": {datasets, nil, []string{"spec", "recipe"}, "spec.recipe"},
	} {
		before, err := s.Get(tc.kind, Namespace, "x")
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Change(tc.kind, Namespace, "x", "", false, func(o *unstructured.Unstructured) error {
			return unstructured.SetNestedField(o.Object, tc.value, tc.at...)
		})
		if tc.want == "" && err != nil || tc.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v; want %q", name, err, tc.want)
		}
		if after, err := s.Get(tc.kind, Namespace, "x"); err != nil || tc.want != "" && !same(before, after) {
			t.Errorf("%s: it was refused and is changed, or is gone: %v", name, err)
		}
	}
}

// One machine once accepted another spec for an Experiment with planned trials, so that its trials
// had different specs. A cluster refuses that by a webhook.
func TestAPlannedExperimentStaysAsItIs(t *testing.T) {
	s, _, _ := open(t, t.TempDir())
	experiment := map[string]any{
		"systems": []any{map[string]any{"name": "kv"}}, "topology": map[string]any{"f": int64(1)}, "workload": map[string]any{"name": "rw"},
		"clients": map[string]any{"loop": "Closed"}, "schedule": map[string]any{"measure": "10s"},
	}
	if _, err := s.Create(Experiments, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}, "spec": experiment}}); err != nil {
		t.Fatal(err)
	}
	change := func(status bool, value any, at ...string) error {
		_, err := s.Change(Experiments, Namespace, "x", "", status, func(o *unstructured.Unstructured) error {
			return unstructured.SetNestedField(o.Object, value, at...)
		})
		return err
	}
	if err := change(false, "11s", "spec", "schedule", "measure"); err != nil {
		t.Errorf("before there is a plan: %v", err)
	}
	if err := change(true, int64(7), "status", "seed"); err != nil {
		t.Fatal(err)
	}
	if err := change(false, "12s", "spec", "schedule", "measure"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "its trials are planned") {
		t.Errorf("when there is one: %v", err)
	}
	if err := change(false, true, "spec", "suspend"); err != nil {
		t.Errorf("a suspension: %v", err)
	}
	if err := change(false, "soon", "spec", "schedule", "measure"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.schedule.measure") {
		t.Errorf("a value that no experiment may have: %v", err)
	}
}
