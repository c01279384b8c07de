package store_test

import (
	"bytes"
	"errors"
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

// An object is there when all of its parts are, and is replaced part by part.
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
	big := store.Object{Key: "big", Size: 40 << 20, SHA256: "x"}
	part := large(store.PartLimit)
	if err := of("e-0").PutPart(t.Context(), big, 0, part); err != nil {
		t.Fatal(err)
	}
	if err := of("e-0").PutPart(t.Context(), big, 0, part); err != nil {
		t.Errorf("again: %v", err)
	}
	second := store.Object{Key: "second", Size: 10 << 20, SHA256: "x"}
	wantProblem(t, "more of a trial", of("e-0").PutPart(t.Context(), second, 0, part), v1alpha1.ReasonStoreFull)
	for _, name := range []string{"e-1", "e-2", "e-3", "e-4", "e-5"} {
		if err := of(name).PutPart(t.Context(), big, 0, part); err != nil {
			t.Fatal(err)
		}
	}
	wantProblem(t, "more of a namespace", of("e-6").PutPart(t.Context(), big, 0, part), v1alpha1.ReasonStoreFull)
}
