package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/store"
)

// storeName is the name of the store in experiments.
const storeName = "archive"

// bucket is a store of results outside of the cluster. Managers and agents put objects into it. It
// may be slow or down, and it may lie: it may confirm objects that it does not have.
type bucket struct {
	*world

	objects map[string]*content
	binds   bool // a presigned request is valid for one content only

	downUntil  time.Time
	down       *store.Problem
	slowUntil  time.Time
	slowBy     time.Duration
	loseAnswer int       // one in so many answers is lost; 0: none
	damages    time.Time // until then it damages the objects that it takes
	listsLate  time.Time // until then its lists lack recent objects
	// lied are the folders of trials and experiments about which the store gave a false answer.
	lied map[store.Folder]bool
	told int // how many objects it has lied about
}

// content of an object: its description, and its real content.
type content struct {
	described store.Object
	data      []byte
	came      time.Time
}

var _ store.Remote = (*bucket)(nil)

func newBucket(w *world) *bucket {
	return &bucket{world: w, objects: map[string]*content{}, lied: map[store.Folder]bool{}, binds: true}
}

// installation is the file that lists the result stores: the simulated one.
var installation string

// install writes the installation into a folder of its own, and returns what removes it.
func install() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "simulation")
	if err != nil {
		return nil, err
	}
	installation = filepath.Join(dir, "stores.yaml")
	err = os.WriteFile(installation, []byte("stores: [{name: "+storeName+", kind: Simulated}]\n"), 0o600)
	return func() { os.RemoveAll(dir) }, err
}

func newRegistry(b *bucket) *store.Registry {
	open := func([]byte, string) (store.Remote, error) { return b, nil }
	r, err := store.Load(installation, filepath.Dir(installation), map[string]store.Open{"Simulated": open})
	if err != nil {
		panic(err)
	}
	return r
}

// call is one request of a manager. The request or its answer may be lost.
func (b *bucket) call(verb, key string, do func() error) error {
	m := b.running.of
	b.wait(b.between(time.Millisecond, 15*time.Millisecond))
	point := verb == "put"
	if point {
		m.point("before put", key)
	}
	if err := b.refuses(); err != nil {
		b.wait(b.between(0, 4*time.Second))
		return err
	}
	err := do()
	if point {
		b.trace("%s puts %s: %s", m.name, key, said(err))
		m.point("after put", key)
	}
	if b.oneIn(b.loseAnswer) {
		return &store.Problem{Reason: v1alpha1.ReasonStoreUnreachable, Text: "the store does not answer"}
	}
	return err
}

// refuses says why the store fails now. If the store is slow, it waits first.
func (b *bucket) refuses() error {
	if b.now.Before(b.downUntil) {
		return b.down
	}
	if b.now.Before(b.slowUntil) {
		b.wait(b.between(0, b.slowBy))
	}
	return nil
}

// take stores an object, or a damaged version of it. It reports whether it stored the object as
// given.
func (b *bucket) take(o store.Object, data []byte) bool {
	damaged := b.now.Before(b.damages) && len(data) > 0
	if damaged {
		data = bytes.Clone(data)
		data[len(data)/2] ^= 1
	}
	b.objects[o.Key] = &content{o, data, b.now}
	return !damaged
}

// lies notes that the store does not have an object that it confirms.
func (b *bucket) lies(key string) {
	b.told++
	b.lied[folderOf(key)] = true
}

// folderOf a key: the folder of its trial, or of its experiment.
func folderOf(key string) store.Folder {
	parts := strings.Split(key, "/")
	n := 4 // v1/NAMESPACE/EXPERIMENT/UID
	if len(parts) > 6 && parts[4] == "trials" {
		n = 6
	}
	return store.Folder(strings.Join(parts[:min(n, len(parts)-1)], "/") + "/")
}

// Put confirms the stored object, like package s3.
func (b *bucket) Put(_ context.Context, o store.Object, from io.ReadSeeker) error {
	data, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	return b.call("put", o.Key, func() error {
		if !b.take(o, data) {
			return store.Corrupted(o.Key, nil)
		}
		return nil
	})
}

// Get implements store.Store.
func (b *bucket) Get(_ context.Context, key string) (o store.Object, data io.ReadCloser, err error) {
	err = b.call("get", key, func() error {
		c := b.objects[key]
		if c == nil {
			return fmt.Errorf("%s: %w", key, store.ErrNotFound)
		}
		o, data = c.described, store.Checked(c.described, io.NopCloser(bytes.NewReader(c.data)))
		return nil
	})
	return o, data, err
}

// List implements store.Store.
func (b *bucket) List(_ context.Context, prefix string) (all []store.Object, err error) {
	err = b.call("list", prefix, func() error {
		all = nil
		for _, key := range slices.Sorted(maps.Keys(b.objects)) {
			c := b.objects[key]
			switch {
			case !strings.HasPrefix(key, prefix):
			case b.now.Before(b.listsLate) && b.now.Sub(c.came) < time.Minute:
				b.lies(key)
			default:
				all = append(all, c.described)
			}
		}
		return nil
	})
	return all, err
}

// Confirm implements store.Remote.
func (b *bucket) Confirm(_ context.Context, want store.Object) error {
	return b.call("confirm", want.Key, func() error {
		if c := b.objects[want.Key]; c == nil || store.Describe(want.Key, c.data) != want {
			return store.Corrupted(want.Key, nil)
		}
		return nil
	})
}

// Location implements store.Remote.
func (b *bucket) Location(key string) string { return "sim://results/" + key }

// PresignPut sends no request to a server, like that of S3.
func (b *bucket) PresignPut(_ context.Context, o store.Object, _ time.Duration) (store.Presigned, error) {
	return store.Presigned{Method: "PUT", URL: o.Key}, nil
}

// BindsContent implements store.Remote.
func (b *bucket) BindsContent() bool { return b.binds }

// CA implements store.Remote.
func (b *bucket) CA() string { return "" }

// put is an agent's request with a ticket. It reports whether the store took the object.
func (b *bucket) put(a *agent, o store.Object, data []byte, then func(taken bool)) {
	took := b.between(2*time.Millisecond, 100*time.Millisecond)
	if b.now.Before(b.slowUntil) {
		took += b.between(0, b.slowBy)
	}
	const putLimit = 10 * time.Second // as in the agent
	a.later(min(took, putLimit), func() {
		if took >= putLimit || b.now.Before(b.downUntil) || !a.node.reachable() {
			then(false)
			return
		}
		if !b.take(o, data) {
			b.lies(o.Key) // and confirms the object
		}
		then(!b.oneIn(b.loseAnswer))
	})
}

// manifest of a folder with its real content, whatever the store says.
func (b *bucket) manifest(f store.Folder) *store.Manifest {
	c := b.objects[f.Key(store.ManifestName)]
	m := &store.Manifest{}
	if c == nil || json.Unmarshal(c.data, m) != nil {
		return nil
	}
	return m
}

// drawStore draws whether the history has a store, and the store's failures. Its draws are
// separate, so that histories without a store stay the same as before stores existed.
func (w *world) drawStore(seed uint64) {
	draw := rand.New(rand.NewPCG(seed, 37))
	w.stored = draw.IntN(3) == 0
	if !w.stored {
		return
	}
	w.bucket.binds = draw.IntN(4) > 0
	names := slices.Sorted(maps.Keys(storeKinds))
	for range draw.IntN(4) {
		kind := names[draw.IntN(len(names))]
		d := func(a, b time.Duration) time.Duration { return a + time.Duration(draw.Int64N(int64(b-a))) }
		// Trials end some half a minute after their begin, and are stored after that.
		w.after(d(10*time.Second, 4*time.Minute), func() { w.attemptStore(kind, 20) })
	}
}

func (w *world) attemptStore(kind string, times int) {
	if !storeKinds[kind](w.bucket) && times > 1 {
		w.after(w.between(time.Second, 10*time.Second), func() { w.attemptStore(kind, times-1) })
	}
}

// disturbStore notes a failure of the store until an instant. It excuses no trial that does not
// count.
func (w *world) disturbStore(until time.Time, what string, args ...any) bool {
	w.disturbed = append(w.disturbed, disturbance{at: w.now, what: fmt.Sprintf(what, args...), trials: map[types.UID]bool{}})
	w.troubled = maxTime(w.troubled, until)
	w.trace("DISTURBED "+what, args...)
	return true
}

// storeKinds are the possible failures of a store, by name. Each returns false if it cannot happen
// now.
var storeKinds = map[string]func(b *bucket) bool{
	"store is down": func(b *bucket) bool {
		b.downUntil = b.now.Add(b.between(time.Second, 10*time.Minute))
		if b.oneIn(4) {
			b.downUntil = b.now.Add(b.between(time.Hour, 5*time.Hour))
		}
		b.down = &store.Problem{Reason: v1alpha1.ReasonStoreUnreachable, Text: "the store cannot be reached"}
		return b.disturbStore(b.downUntil, "the store is down for %v", b.downUntil.Sub(b.now))
	},
	"store denies": func(b *bucket) bool {
		b.downUntil = b.now.Add(b.between(time.Second, time.Hour))
		b.down = &store.Problem{Reason: v1alpha1.ReasonStoreDenied, Text: "the store does not know the key"}
		return b.disturbStore(b.downUntil, "the store denies all for %v", b.downUntil.Sub(b.now))
	},
	"store is slow": func(b *bucket) bool {
		b.slowUntil, b.slowBy = b.now.Add(b.between(5*time.Second, 10*time.Minute)), b.between(100*time.Millisecond, 40*time.Second)
		return b.disturbStore(b.slowUntil, "the store takes up to %v more for %v", b.slowBy, b.slowUntil.Sub(b.now))
	},
	"answers of the store are lost": func(b *bucket) bool {
		b.loseAnswer = 2 + b.rng.IntN(5)
		d := b.between(5*time.Second, 5*time.Minute)
		b.after(d, func() { b.loseAnswer = 0 })
		return b.disturbStore(b.now.Add(d), "of one in %d calls of the store the answer is lost, for %v", b.loseAnswer, d)
	},
	"store damages what it takes": func(b *bucket) bool {
		b.damages = b.now.Add(b.between(time.Second, 2*time.Minute))
		return b.disturbStore(b.damages, "the store damages what it takes for %v", b.damages.Sub(b.now))
	},
	"store lists late": func(b *bucket) bool {
		b.listsLate = b.now.Add(b.between(5*time.Second, 5*time.Minute))
		return b.disturbStore(b.listsLate, "the store lists nothing that came in the last minute, for %v", b.listsLate.Sub(b.now))
	},
	"store loses an object": func(b *bucket) bool {
		key := b.anyKey()
		if key == "" {
			return false
		}
		b.lies(key)
		delete(b.objects, key)
		return b.disturbStore(b.now, "the store loses %s", key)
	},
	"an object changes in the store": func(b *bucket) bool {
		key := b.anyKey()
		if key == "" || len(b.objects[key].data) == 0 {
			return false
		}
		b.lies(key)
		c := *b.objects[key]
		c.data = bytes.Clone(c.data)
		c.data[0] ^= 1
		b.objects[key] = &c
		return b.disturbStore(b.now, "object %s changes in the store", key)
	},
}

func (b *bucket) anyKey() string {
	keys := slices.Sorted(maps.Keys(b.objects))
	if len(keys) == 0 {
		return ""
	}
	return keys[b.rng.IntN(len(keys))]
}

// handed is a file of a pod. Its agent was told that the file is safe.
type handed struct {
	object store.Object
	at     time.Time
}

// storing reports whether a trial's results are on the way to a store.
func storing(t *v1alpha1.Trial) bool {
	return t.Spec.ResultsStore != "" && isTrue(t, v1alpha1.TrialComplete) && !isTrue(t, v1alpha1.TrialResultsStored)
}

// allStored reports whether no results are on the way to a store any more. If the store has lied,
// or a manager lacks a right, some results never arrive. Then it waits for a fixed time after the
// last disturbance.
func (w *world) allStored() bool {
	if !w.stored {
		return true
	}
	if w.bucket.told > 0 || w.forbids != nil {
		return w.now.After(w.troubled.Add(15 * time.Minute))
	}
	for _, key := range w.experiments {
		e, _ := w.find("Experiment", key).(*v1alpha1.Experiment)
		if e != nil && over(e) && !meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ExperimentResultsStored) {
			return false
		}
	}
	return !slices.ContainsFunc(w.eachTrial(), storing)
}

// storedNow checks a trial whose condition says that its results are in the store.
func (w *world) storedNow(t *v1alpha1.Trial) {
	f, err := store.TrialFolder(t)
	if err != nil {
		w.violated("trial %s is stored, and has no folder: %v", t.Name, err)
		return
	}
	if w.bucket.lied[f] {
		return // the store has lied to the manager
	}
	m := w.bucket.manifest(f)
	if m == nil || m.UID != string(t.UID) {
		w.violated("trial %s is stored, and the store has no manifest of it", t.Name)
		return
	}
	listed := map[string]store.Object{}
	for _, o := range m.Objects {
		listed[o.Key] = o
		if c := w.bucket.objects[o.Key]; c == nil || store.Describe(o.Key, c.data) != o {
			w.violated("trial %s is stored, and %s is not what its manifest says", t.Name, o.Key)
		}
	}
	if whole := listed[f.Key("trial.json")]; t.Status.ResultsDigest != "" && whole.SHA256 != t.Status.ResultsDigest {
		w.violated("trial %s is stored, and its results there are not those that were written", t.Name)
	}
	for _, a := range w.factsOf(t.UID).agents {
		for _, h := range a.truth.handed {
			if h.at.Before(w.factsOf(t.UID).completed) && listed[h.object.Key] != h.object {
				w.violated("trial %s is stored, and its manifest lacks %s, which was handed over", t.Name, h.object.Key)
			}
		}
	}
}

// keptIsGone checks that the objects that wait for a store stay in the cluster until the store has
// them, or their trial is deleted.
func (w *world) keptIsGone(m *corev1.ConfigMap) {
	t := w.trialNamed(types.NamespacedName{Namespace: m.Namespace, Name: m.Labels[v1alpha1.LabelTrial]})
	if t == nil || t.DeletionTimestamp != nil || !metav1.IsControlledBy(m, t) {
		return
	}
	f, err := store.TrialFolder(t)
	if err != nil || w.bucket.lied[f] {
		return
	}
	key := m.Annotations["assay.dev/object-key"]
	if have := w.bucket.manifest(f); key != f.Key("trial.json") && (have == nil || have.UID != string(t.UID)) {
		w.violated("%s of trial %s is gone from the cluster, and is not in the store", key, t.Name)
	}
}

// storesSettled checks the conditions that must hold hours after the last disturbance.
func (w *world) storesSettled() {
	if !w.stored || w.forbids != nil {
		return
	}
	lied := false
	for _, t := range w.eachTrial() {
		if t.Spec.ResultsStore == "" || !isTrue(t, v1alpha1.TrialComplete) {
			continue
		}
		f, err := store.TrialFolder(t)
		c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialResultsStored)
		switch {
		case err == nil && w.bucket.lied[f]:
			lied = true
			if c == nil || c.Status != metav1.ConditionTrue && c.Reason != v1alpha1.ReasonStoreCorrupted {
				w.violated("trial %s is not stored, and does not say that its store is wrong: %+v", t.Name, c)
			}
		case c == nil || c.Status != metav1.ConditionTrue:
			w.violated("trial %s is not stored, hours after the last disturbance: %+v", t.Name, c)
		}
	}
	for _, key := range w.experiments {
		e, _ := w.find("Experiment", key).(*v1alpha1.Experiment)
		if e == nil || !over(e) || lied || w.bucket.lied[store.ExperimentFolder(key.Namespace, key.Name, string(e.UID))] {
			continue
		}
		if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ExperimentResultsStored); c == nil || c.Status != metav1.ConditionTrue {
			w.violated("experiment %s is not stored, hours after the last disturbance: %+v", key.Name, c)
		}
	}
	for _, o := range w.each("ConfigMap") {
		t := w.trialNamed(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()[v1alpha1.LabelTrial]})
		if o.GetLabels()[v1alpha1.LabelResults] == v1alpha1.ResultsKept && (t == nil || isTrue(t, v1alpha1.TrialResultsStored)) {
			w.violated("ConfigMap %s waits for the store, and its trial does not", client.ObjectKeyFromObject(o))
		}
	}
}
