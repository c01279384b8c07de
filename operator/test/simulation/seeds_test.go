package simulation

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/go-logr/logr"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/controller/admission"
	"assay.dev/assay/operator/internal/testkit/builders"
)

var (
	intoFolder = flag.String("objects", "", "a folder to write the experiment, its System and its trials of the first seed to")

	errNoResults = errors.New("there are none")
)

// patience is how long after the last disturbance all experiments must have ended.
const patience = 12 * time.Hour

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	debug.SetGCPercent(400) // a history has little live data, and makes much garbage
	remove, err := install()
	if err != nil {
		panic(err)
	}
	status := m.Run()
	remove()
	os.Exit(status)
}

// history is the outcome of a seed.
type history struct {
	seed       uint64
	hash       uint64
	virtual    time.Duration
	trials     int
	reconciles int
	outcomes   map[string]int
	disturbed  []string
	violations []string
	lines      []string
}

// play runs the history of a seed.
func play(seed uint64, keep bool, threats ...string) history {
	h, _ := playWorld(seed, keep, threats...)
	return h
}

// playWorld also returns the world at the end of the history.
func playWorld(seed uint64, keep bool, threats ...string) (history, *world) {
	w := newWorld(seed, keep)
	w.drawStore(seed)
	// Not drawn, so that all other histories stay the same as before sets of nodes existed.
	w.onSets = seed%9 == 6 || seed%9 == 8
	w.prepare(threats)
	w.play()
	h := history{
		seed: seed, hash: w.hash, virtual: w.now.Sub(began), reconciles: w.reconciles, outcomes: map[string]int{}, violations: w.violations, lines: w.lines,
	}
	for _, d := range w.disturbed {
		h.disturbed = append(h.disturbed, d.what)
	}
	for _, t := range w.eachTrial() {
		h.trials++
		h.outcomes[outcomeOf(t)]++
	}
	return h, w
}

// play runs until all experiments have ended, or should have, and checks the end.
func (w *world) play() {
	ended := func() bool { return w.ends == len(w.experiments) && w.allStored() }
	for w.now.Sub(began) < 48*time.Hour {
		if w.run(w.now.Add(time.Hour), ended); ended() {
			break
		}
		if w.now.Sub(maxTime(w.troubled, began.Add(time.Hour))) > patience {
			break
		}
	}
	// Give objects time that are being deleted. No trial may begin again.
	w.run(w.now.Add(30*time.Minute), func() bool { return false })
	w.end()
	w.settled()
}

// write writes the stored objects of the experiments at the end, as kubectl would print them.
func (w *world) write(t *testing.T, dir string) {
	t.Helper()
	for _, kind := range []string{"System", "Experiment", "Trial"} {
		for _, o := range w.each(kind) {
			o := o.DeepCopyObject().(client.Object)
			o.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
			text, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, strings.ToLower(kind)+"-"+o.GetName()+".yaml"), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func outcomeOf(t *v1alpha1.Trial) string {
	for _, c := range t.Status.Conditions {
		if c.Type == v1alpha1.TrialValid {
			return c.Reason
		}
	}
	return "none"
}

// prepare draws the properties of the history.
func (w *world) prepare(threats []string) {
	for i := range 2 + w.rng.IntN(2) {
		w.addNode(fmt.Sprintf("x%d", i), "x")
	}
	for i := range 2 {
		w.addNode(fmt.Sprintf("y%d", i), "y")
	}
	w.boot("a")
	w.boot("b")
	for i := range 1 + w.rng.IntN(2) {
		w.after(w.between(0, 20*time.Second), func() { w.apply(fmt.Sprintf("exp%d", i)) })
		w.experiments = append(w.experiments, types.NamespacedName{Namespace: "lab", Name: fmt.Sprintf("exp%d", i)})
	}
	w.threaten(threats)
}

// needed are disturbances that affect only a manager that takes a trial over. The manager that has
// carried the trial so far does not notice them.
var needed = []string{"Secret is deleted", "ConfigMap is deleted", "Secrets cannot be read", "a right is taken away", "fault fails"}

// threaten draws the disturbances of the history. Each history has only a few kinds. So two kinds
// that cause a defect together meet sooner than if each history had all kinds. chosen: the kinds to
// draw from.
func (w *world) threaten(chosen []string) {
	names := slices.Sorted(maps.Keys(kinds))
	w.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+w.rng.IntN(3)]
	if !w.oneIn(3) { // a manager's own knowledge is lost with it
		ends := []string{"manager dies", "manager dies at a write", "manager dies as it answers", "manager is stopped"}
		names = append(names, ends[w.rng.IntN(len(ends))])
	}
	times := w.rng.IntN(7)
	if w.oneIn(4) { // some affect what a manager needs to take over
		names = slices.Clone(needed)
		w.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = append(names[:3], []string{"manager dies", "manager is stopped"}[w.rng.IntN(2)])
		times += 4
	}
	if len(chosen) > 0 {
		names = chosen
	}
	nth := 1 + w.rng.IntN(2) // the run near which most of it happens
	for range times {
		kind := names[w.rng.IntN(len(names))]
		if w.oneIn(3) {
			w.after(w.between(time.Second, 2*time.Minute), func() { w.attempt(kind, 20) })
			continue
		}
		offset := w.between(-time.Second, 17*time.Second)
		if w.oneIn(2) { // at the end of the window, little time is left to notice it
			offset = w.between(11*time.Second, 14*time.Second)
		}
		w.onRelease = append(w.onRelease, func(*v1alpha1.Trial) {
			if w.releases == nth {
				w.after(offset, func() { w.attempt(kind, 3) })
			}
		})
	}
}

// attempt disturbs as soon as there is an object to disturb.
func (w *world) attempt(kind string, times int) {
	if !kinds[kind](w) && times > 1 {
		w.after(w.between(time.Second, 5*time.Second), func() { w.attempt(kind, times-1) })
	}
}

// drawn has the properties of an experiment.
type drawn struct {
	shaped, prepares, collects, faults bool
	batches                            bool // two points
	repetitions                        int32
	at                                 string // when the fault begins
	replicas, clients                  string // their pools
	sets                               bool   // of nodes: x and y, at once
}

// apply makes an experiment with its own System.
func (w *world) apply(name string) {
	d := drawn{shaped: w.oneIn(3), prepares: !w.oneIn(3), collects: w.oneIn(3), faults: !w.oneIn(4), repetitions: 1}
	if d.batches = w.oneIn(2); !d.batches && w.oneIn(3) {
		d.repetitions = 2
	}
	if d.faults {
		d.at = []string{"-500ms", "1s", "3s"}[w.rng.IntN(3)]
	}
	d.replicas, d.clients = "x", []string{"x", "y"}[w.rng.IntN(2)]
	if w.oneIn(4) {
		d.replicas, d.clients = "y", "y"
	}
	if w.onSets && name == "exp0" {
		d.sets, d.repetitions = true, 2
	}
	w.applyDrawn(name, d)
}

func (w *world) applyDrawn(name string, d drawn) {
	system := builders.System(name).Namespace("lab").Count("2*f+1").Set(func(s *v1alpha1.SystemSpec) {
		s.Replicas.ReadyTimeout = "60s"
		if d.prepares {
			s.Prepare = &v1alpha1.PrepareStep{
				Container: v1alpha1.Container{Name: "keys", Image: "example.org/echo:1", Command: []string{"/keys"}}, OutputPath: "/keys", Timeout: "60s",
			}
		}
		if d.collects {
			s.Replicas.Collect = []string{"*.log"}
		}
	}).Obj()
	b := builders.Experiment(name).Namespace("lab").System(name).Repetitions(max(1, d.repetitions))
	if d.batches {
		b.Values("batch", 1, 2)
	}
	if d.faults {
		b.NodeKill("crash", d.at, 2)
	}
	b.Set(func(s *v1alpha1.ExperimentSpec) {
		s.Schedule = v1alpha1.Schedule{WarmUp: "2s", Measure: "10s", CoolDown: "1s", Drain: "3s"}
		s.Clients.Nodes, s.Clients.Count = 2, 4
		for i := range s.Faults {
			s.Faults[i].EveryPoint = true
		}
		s.Placement.Replicas, s.Placement.Clients = cmp.Or(d.replicas, "x"), d.clients
		if d.sets {
			s.Placement.Replicas, s.Placement.Clients = "", ""
			s.Placement.Sets = []v1alpha1.NodeSet{{Name: "ex", Replicas: "x", Clients: "x"}, {Name: "why", Replicas: "y", Clients: "y"}}
		}
		if w.stored {
			s.Results = &v1alpha1.Results{Store: storeName}
		}
		if d.shaped {
			s.Topology.Regions = []v1alpha1.Region{{Name: "east", Replicas: 2}, {Name: "west", Replicas: 1}}
			s.Clients.Regions = []string{"west"}
			milliseconds := v1alpha1.Duration("20ms")
			delay := v1alpha1.LinkEffect{Delay: &milliseconds}
			s.Network.Links = []v1alpha1.RegionLink{{From: "east", To: "west", LinkEffect: delay}, {From: "west", To: "east", LinkEffect: delay}}
			s.Tolerances.LinkDelay, s.Tolerances.LinkLateness = "1ms", "10ms"
		}
	})
	exp := b.Obj()
	for _, err := range []error{w.create(system), w.create(exp)} {
		if err != nil {
			panic(err)
		}
	}
	w.trace("experiment %s: shaped %t, prepares %t, collects %t, faults %t, pools %v", name, d.shaped, d.prepares, d.collects, d.faults, exp.Spec.Placement.Pools())
}

// keptSeeds are seeds that once found a violation, with the kinds of disturbances that each had
// drawn. If the world has changed since, they are other histories with the same kinds of
// disturbances.
var keptSeeds = map[string]struct {
	seed  uint64
	kinds []string
}{
	"deleted results were called unreadable":         {4, []string{"ConfigMap is deleted", "messages are lost", "node is lost"}},
	"a plan that could not be fixed named no right":  {625, nil},
	"a Secret that cannot be deleted held the pools": {12, []string{"Secrets cannot be read", "manager is stopped"}},
	"a trial that waited closed its store to others": {16, nil},
	"results were stored again by a stale cache":     {54, nil},
	"a manifest that was damaged was never replaced": {1053, nil},
	"the store was away at the end":                  {2593, nil},
	"the store was away at the end, too":             {2892, nil},
	"a client that exited before its release blamed": {4030, nil},
	"the same, of another trial":                     {5906, nil},
	"stored results were called changed by a cache":  {3904, nil},
	"the same, while the store was slow":             {8189, nil},
	"a node that was lost in the cool-down counted":  {6061, nil},
	"the same, with a policy against ConfigMaps":     {7509, nil},
	"the same, with managers that died":              {8372, nil},
	"an experiment did not hear of its System":       {6806, nil},
	"two managers stored one trial's results":        {1342, nil},
	"the same, while the store damaged objects":      {5863, nil},
	"the same, with a client that wrote nonsense":    {8667, nil},
	"a grant of an earlier trial of the same name":   {5699, nil},
	"results waited for a clock that stepped back":   {3440, nil},
	"files waited for a clock that was behind":       {377, nil},
}

// Each seed that ever failed is kept.
func TestSeedsThatFailed(t *testing.T) {
	for name, kept := range keptSeeds {
		t.Run(name, func(t *testing.T) {
			if h := play(kept.seed, false, kept.kinds...); len(h.violations) > 0 {
				t.Errorf("disturbed by %q:\n  %s", h.disturbed, strings.Join(h.violations, "\n  "))
			}
		})
	}
}

// A disturbance while a store was down made a history end before the store was back. Then trials
// counted as not stored "hours after the last disturbance".
func TestAHistoryLastsAsLongAsItsDisturbances(t *testing.T) {
	w := newWorld(1, false)
	back := w.now.Add(5 * time.Hour)
	w.disturbStore(back, "the store is down for 5h")
	w.disturb(v1alpha1.CausedByEnvironment, "something else happens")
	if !w.troubled.Equal(back) {
		t.Errorf("disturbed last at %v, and the store is down until %v", w.troubled, back)
	}
}

// The simulation must not treat a deleted trial's grant as that of the next trial with the same
// name.
func TestAGrantIsOfOneTrial(t *testing.T) {
	for uid, wrong := range map[types.UID]bool{"of-a-deleted-trial": false, "": true} {
		w := newWorld(1, false)
		trial := builders.Trial("exp0-0").Obj()
		trial.Namespace, trial.UID = "lab", ""
		if err := w.create(trial); err != nil {
			t.Fatal(err)
		}
		list := fmt.Sprintf(`[{"namespace": "lab", "name": "exp0-0", "uid": %q}]`, cmp.Or(uid, trial.UID))
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: admission.GrantsName}, Data: map[string]string{"trials.json": list}}
		if err := w.create(m); err != nil {
			t.Fatal(err)
		}
		if w.grants(); (len(w.violations) > 0) != wrong {
			t.Errorf("with the grants %s: %q", list, w.violations)
		}
	}
}

// A seed is one history: two runs of it are the same in every line.
func TestOneSeedIsOneHistory(t *testing.T) {
	for seed := range uint64(4) {
		a, b := play(1000+seed, true), play(1000+seed, true)
		if a.hash == b.hash {
			continue
		}
		for i := range min(len(a.lines), len(b.lines)) {
			if a.lines[i] != b.lines[i] {
				t.Errorf("seed %d differs in line %d:\n%s\n%s", 1000+seed, i, a.lines[i], b.lines[i])
				break
			}
		}
	}
}
