package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/store"
)

func put(t *testing.T, s store.Store, key string, content []byte) {
	t.Helper()
	if err := s.Put(t.Context(), store.Describe(key, content), bytes.NewReader(content)); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

func read(ctx context.Context, s store.Store, key string) (store.Object, []byte, error) {
	return store.ReadAll(ctx, s, key, 64<<20)
}

// large returns content in which no two parts are equal.
func large(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i>>16) ^ byte(i)
	}
	return b
}

func wantProblem(t *testing.T, name string, err error, reason string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, want %s", name, reason)
	} else if got, _ := store.Explain(err); got != reason {
		t.Errorf("%s: %s (%v), want %s", name, got, err, reason)
	}
}

func newCluster(t *testing.T) (func(trial string) *store.Cluster, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	return func(name string) *store.Cluster {
		return &store.Cluster{Client: c, Reader: c, Trial: &v1alpha1.Trial{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid-of-" + "x"}, Spec: v1alpha1.TrialSpec{Experiment: "e"},
		}}
	}, c
}

func TestKeptInTheCluster(t *testing.T) {
	of, c := newCluster(t)
	s := of("e-1")
	sizes := map[string]int{"p/empty": 0, "p/one": 1, "p/a part": store.PartLimit, "p/two parts": store.PartLimit + 1, "q/three": 2*store.PartLimit + 5}
	for key, size := range sizes {
		put(t, s, key, large(size))
	}
	put(t, of("e-2"), "p/of another trial", []byte("x"))
	got, err := s.List(t.Context(), "p/")
	if err != nil {
		t.Fatal(err)
	}
	want := []store.Object{store.Describe("p/a part", large(store.PartLimit)), store.Describe("p/empty", nil), store.Describe("p/one", large(1)),
		store.Describe("p/two parts", large(store.PartLimit+1))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for key, size := range sizes {
		if o, content, err := read(t.Context(), s, key); err != nil || !bytes.Equal(content, large(size)) || o.Size != int64(size) {
			t.Errorf("%s: %+v, %v", key, o, err)
		}
	}
	if _, _, err := s.Get(t.Context(), "p/of another trial"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an object of another trial: %v", err)
	}
	all := &corev1.ConfigMapList{}
	if err := errors.Join(s.Clear(t.Context()), c.List(t.Context(), all)); err != nil {
		t.Fatal(err)
	}
	if len(all.Items) != 1 || all.Items[0].Labels[v1alpha1.LabelTrial] != "e-2" || all.Items[0].Labels[v1alpha1.LabelResults] != v1alpha1.ResultsKept {
		t.Errorf("left are %+v, want what is of the other trial", all.Items)
	}
}

// An object exists once all of its parts exist, and is replaced part by part.
func TestPartsOfAnObject(t *testing.T) {
	of, c := newCluster(t)
	s := of("e-1")
	content := large(2*store.PartLimit + 5)
	o := store.Describe("k", content)
	part := func(i int) error {
		return s.PutPart(t.Context(), o, i, content[i*store.PartLimit:min(len(content), (i+1)*store.PartLimit)])
	}
	if err := errors.Join(part(0), part(2), part(0)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.List(t.Context(), ""); len(got) != 0 || err != nil {
		t.Errorf("without its middle it is %+v (%v)", got, err)
	}
	if _, _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("without its middle: %v", err)
	}
	for name, err := range map[string]error{
		"too short": s.PutPart(t.Context(), o, 1, content[:5]), "too many": s.PutPart(t.Context(), o, 3, nil), "before the first": s.PutPart(t.Context(), o, -1, nil),
	} {
		if err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if err := part(1); err != nil {
		t.Fatal(err)
	}
	if _, got, err := read(t.Context(), s, "k"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	m := &corev1.ConfigMap{}
	list := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	*m = list.Items[1]
	m.BinaryData["part"][7]++
	if err := c.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	_, _, err := read(t.Context(), s, "k")
	wantProblem(t, "changed by somebody", err, v1alpha1.ReasonStoreCorrupted)
}

// Logs that wait for a store must not fill etcd.
func TestNoRoomInTheCluster(t *testing.T) {
	of, _ := newCluster(t)
	big := store.Object{Key: "v1/ns/e/u/trials/t/pods/p/c.stdout.gz", Size: 40 << 20, SHA256: "x"}
	part := large(store.PartLimit)
	if err := of("e-0").PutPart(t.Context(), big, 0, part); err != nil {
		t.Fatal(err)
	}
	if err := of("e-0").PutPart(t.Context(), big, 0, part); err != nil {
		t.Errorf("again: %v", err)
	}
	second := store.Object{Key: "v1/ns/e/u/trials/t/pods/p/c.stderr.gz", Size: 10 << 20, SHA256: "x"}
	wantProblem(t, "more of a trial", of("e-0").PutPart(t.Context(), second, 0, part), v1alpha1.ReasonStoreFull)
	for _, name := range []string{"e-1", "e-2", "e-3"} {
		if err := of(name).PutPart(t.Context(), big, 0, part); err != nil {
			t.Fatal(err)
		}
	}
	wantProblem(t, "more of a namespace", of("e-6").PutPart(t.Context(), big, 0, part), v1alpha1.ReasonStoreFull)
}

// With the store down and a namespace full of logs, the results of a trial found no room. It held
// its pools until the store answered, or lost a client and was repeated.
func TestResultsFindRoomWhereLogsDoNot(t *testing.T) {
	of, _ := newCluster(t)
	part := large(store.PartLimit)
	const folder = "v1/ns/e/u/trials/t/"
	keep := func(trial, key string, size int64) error {
		return of(trial).PutPart(t.Context(), store.Object{Key: folder + key, Size: size, SHA256: "x"}, 0, part)
	}
	for _, trial := range []string{"e-0", "e-1", "e-2", "e-3"} {
		if err := keep(trial, "pods/p/c.stdout.gz", 48<<20); err != nil {
			t.Fatal(err)
		}
	}
	wantProblem(t, "a log", keep("e-9", "pods/p/c.stdout.gz", 1<<20), v1alpha1.ReasonStoreFull)
	for name, trial := range map[string]string{"a trial that has kept nothing": "e-9", "one that has kept as many logs as it may": "e-0"} {
		for _, key := range []string{"trial.json", "pods/p/result.json.gz", "pods/q/result.json.gz"} {
			if err := keep(trial, key, 32<<20); err != nil {
				t.Errorf("%s: %s is refused: %v", name, key, err)
			}
		}
	}
	// An object that only looks like a result is not kept.
	for _, key := range []string{"pods/p/trial.json.gz", "pods/p/not-result.json.gz", "pods/p/q/result.json.gz", "x/trial.json", "pods/p/../../trial.json"} {
		wantProblem(t, key, keep("e-9", key, 1<<20), v1alpha1.ReasonStoreFull)
	}
	wantProblem(t, "a client's results that are none for their size", keep("e-9", "pods/r/result.json.gz", 33<<20), v1alpha1.ReasonStoreFull)
	if store.IsResult(store.Object{Key: "v1/pods/trials/u/trials/t/pods/p/c.stdout.gz"}) || !store.IsResult(store.Object{Key: "v1/pods/trials/u/trials/t/pods/p/result.json.gz"}) {
		t.Error("names of namespaces and experiments mislead")
	}
	// Nothing may fill etcd.
	wantProblem(t, "more results than etcd holds", keep("e-9", "trial.json", 1<<30), v1alpha1.ReasonStoreFull)
}

// The number of waiting bytes decides whether further trials begin.
func TestWhatWaitsIsCounted(t *testing.T) {
	of, _ := newCluster(t)
	for _, trial := range []string{"e-0", "e-1"} {
		put(t, of(trial), "p/two parts", large(store.PartLimit+1))
	}
	if n, err := of("e-2").Waiting(t.Context()); n != 2*(store.PartLimit+1) || err != nil {
		t.Errorf("%d bytes wait (%v), want those of both trials", n, err)
	}
}

// The trial lists the results that found no room. The list stays short, however many there are.
func TestLeftOut(t *testing.T) {
	of, c := newCluster(t)
	s := of("e-0")
	s.Trial.UID = ""
	if err := c.Create(t.Context(), s.Trial); err != nil {
		t.Fatal(err)
	}
	if got := store.LeftOut(s.Trial); len(got) != 0 {
		t.Errorf("at first %q", got)
	}
	for _, pod := range []string{"p-1", "p-0", "p-1"} {
		stale := &store.Cluster{Client: c, Reader: c, Trial: s.Trial} // as several agents that come at once see it
		if err := stale.LeaveOut(t.Context(), store.Object{Key: "v1/ns/e/u/trials/e-0/pods/" + pod + "/c.stdout.gz"}); err != nil {
			t.Fatal(err)
		}
	}
	trial := &v1alpha1.Trial{}
	get := func() []string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(s.Trial), trial); err != nil {
			t.Fatal(err)
		}
		return store.LeftOut(trial)
	}
	if diff := cmp.Diff([]string{"p-0/c.stdout.gz", "p-1/c.stdout.gz"}, get()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 100 {
		if err := s.LeaveOut(t.Context(), store.Object{Key: fmt.Sprintf("v1/ns/e/u/trials/e-0/pods/r-%d/c.stdout.gz", i)}); err != nil {
			t.Fatal(err)
		}
	}
	size := 0
	for _, text := range trial.Annotations {
		size += len(text)
	}
	if got := get(); len(got) > 40 || got[len(got)-1] != store.AndMore || size > 4096 {
		t.Errorf("%d names, the last %q, %d bytes of annotations", len(got), got[len(got)-1], size)
	}
}
