package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/cacheopts"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testcluster"
)

// hall is a place where trials of one test wait, on a real API server with one node.
type hall struct {
	t     testing.TB
	env   *testcluster.Env
	ns    string
	clock *clocktesting.FakeClock
}

func newHall(t testing.TB) *hall {
	t.Helper()
	h := &hall{t: t, env: testcluster.InProcess(t), clock: clocktesting.NewFakeClock(time.Now())}
	h.ns = h.env.Namespace(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	if err := h.env.Client.Create(t.Context(), node); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	h.offer(node.Name)
	return h
}

// offer gives a node resources, and removes the taints of a new node.
func (h *hall) offer(name string) {
	t, node := h.t, &corev1.Node{}
	t.Helper()
	if err := h.env.Client.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		t.Fatal(err)
	}
	node.Spec.Taints = nil
	if err := h.env.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("500")}
	node.Status.Capacity = node.Status.Allocatable
	if err := h.env.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// manager returns a manager that decides. Its client and its reader have changed calls.
func (h *hall) manager(cached, past interceptor.Funcs) *Reconciler {
	return &Reconciler{
		Client: interceptor.NewClient(h.env.Client, cached), Reader: interceptor.NewClient(h.env.Client, past), Clock: h.clock, Recorder: events.NewFakeRecorder(1000),
		Environment: render.Environment{AgentImage: "agent"}, Grants: types.NamespacedName{Namespace: h.ns, Name: GrantsName},
	}
}

// waits makes a waiting trial, with an experiment of its own.
func (h *hall) waits(name string, priority int32) *v1alpha1.Trial {
	h.t.Helper()
	return h.waitsIn(name, priority, "")
}

// waitsIn is waits for one pool.
func (h *hall) waitsIn(name string, priority int32, pool string) *v1alpha1.Trial {
	h.t.Helper()
	exp := builders.Experiment(name).Namespace(h.ns).System("echo").Set(func(s *v1alpha1.ExperimentSpec) {
		s.Priority, s.Placement.Replicas, s.Placement.Clients = priority, pool, pool
	}).Obj()
	system := builders.System("echo").Obj().Spec
	p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"echo": system})
	if len(errs) > 0 {
		h.t.Fatal(errs.ToAggregate())
	}
	raw, err := json.Marshal(system)
	if err != nil {
		h.t.Fatal(err)
	}
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "echo"}, Data: runtime.RawExtension{Raw: raw}}
	spec := p.Points[0].Template
	spec.System.Revision, spec.Seed = revision.Name, 1
	trial := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name, Finalizers: []string{v1alpha1.FinalizerTrial}}, Spec: spec}
	for _, o := range []client.Object{revision, exp, trial} {
		if err := h.env.Client.Create(h.t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			h.t.Fatalf("create %T: %v", o, err)
		}
	}
	h.t.Cleanup(func() { h.drop(name) })
	return trial
}

// drop removes a trial, so that no trial of the next test waits behind it.
func (h *hall) drop(name string) {
	trial := &v1alpha1.Trial{}
	if err := h.env.Client.Get(context.Background(), client.ObjectKey{Namespace: h.ns, Name: name}, trial); err != nil {
		return
	}
	trial.Finalizers = nil
	if err := h.env.Client.Update(context.Background(), trial); err != nil {
		h.t.Errorf("drop the finalizers: %v", err)
	}
	if err := h.env.Client.Delete(context.Background(), trial); client.IgnoreNotFound(err) != nil {
		h.t.Errorf("delete the trial: %v", err)
	}
}

func (h *hall) pass(r *Reconciler) {
	h.t.Helper()
	if _, err := r.Reconcile(h.t.Context(), ctrl.Request{}); err != nil {
		h.t.Fatal(err)
	}
}

// admitted returns the admitted trials of the hall.
func (h *hall) admitted() []string {
	h.t.Helper()
	list := &v1alpha1.TrialList{}
	if err := h.env.Client.List(h.t.Context(), list, client.InNamespace(h.ns)); err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		if isTrue(&list.Items[i], v1alpha1.TrialAdmitted) {
			out = append(out, list.Items[i].Name)
		}
	}
	return out
}

// Each manager once read all trials and locked only its own. A manager that was stopped in the
// middle, and woke up while another led, admitted a second trial to the same pool. No check
// noticed.
func TestTwoManagersAdmitOneTrialToAPool(t *testing.T) {
	type stops struct{ cached interceptor.Funcs }
	for name, tc := range map[string]struct {
		// stop stops the first manager at some point, and lets the successor work.
		stop func(successor func()) stops
		want []string
	}{
		"not at all": {func(successor func()) stops { successor(); return stops{} }, []string{"first", "second"}[1:]},
		"when it has read a cache that is behind": {func(successor func()) stops {
			var behind *v1alpha1.TrialList
			return stops{interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				trials, ok := list.(*v1alpha1.TrialList)
				if ok && behind != nil {
					behind.DeepCopyInto(trials)
					return nil
				}
				if err := c.List(ctx, list, opts...); err != nil || !ok {
					return err
				}
				behind = trials.DeepCopy()
				successor()
				return nil
			}}}
		}, []string{"second"}},
		"before it writes the grants": {func(successor func()) stops {
			return stops{interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				successor()
				return c.Create(ctx, o, opts...)
			}}}
		}, []string{"second"}},
		"before it writes the status": {func(successor func()) stops {
			once := false
			return stops{interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if !once {
					once = true
					successor()
				}
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			}}}
		}, []string{"first"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t)
			h.waits("first", 0)
			deposed := h.manager(tc.stop(func() {
				h.waits("second", 1) // the successor would start it before the first
				h.pass(h.manager(interceptor.Funcs{}, interceptor.Funcs{}))
			}).cached, interceptor.Funcs{})
			h.pass(deposed)
			if diff := cmp.Diff(tc.want, h.admitted()); diff != "" {
				t.Errorf("trials on the pool after the deposed manager woke up (-want +got):\n%s", diff)
			}
			h.pass(deposed)
			h.pass(h.manager(interceptor.Funcs{}, interceptor.Funcs{}))
			if diff := cmp.Diff(tc.want, h.admitted()); diff != "" {
				t.Errorf("trials on the pool after another look of both (-want +got):\n%s", diff)
			}
		})
	}
}

// A manager dies between the grant and the status. Its successor admits the trial. A trial that was
// deleted meanwhile holds nothing.
func TestASuccessorCarriesGrantsOut(t *testing.T) {
	for name, deleted := range map[string]bool{"it waits still": false, "it was deleted": true} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t)
			h.waits("first", 0)
			dies := h.manager(interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
				return fmt.Errorf("the manager is gone")
			}}, interceptor.Funcs{})
			if _, err := dies.Reconcile(t.Context(), ctrl.Request{}); err == nil {
				t.Fatal("the manager did not die")
			}
			h.waits("second", 1)
			want := "first"
			if deleted {
				h.drop("first")
				want = "second"
			}
			h.pass(h.manager(interceptor.Funcs{}, interceptor.Funcs{}))
			if diff := cmp.Diff([]string{want}, h.admitted()); diff != "" {
				t.Errorf("admitted (-want +got):\n%s", diff)
			}
		})
	}
}

// An older manager, which wrote no grants, admitted trials. They hold their pools, although the
// cache has not seen them.
func TestGrantsAreMadeOfTrialsThatRun(t *testing.T) {
	h := newHall(t)
	runs := h.waits("runs", 0)
	meta.SetStatusCondition(&runs.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialAdmitted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAdmitted})
	h.waits("waits", 1)
	behind := &v1alpha1.TrialList{}
	if err := h.env.Client.List(t.Context(), behind, client.InNamespace(h.ns)); err != nil {
		t.Fatal(err)
	}
	if err := h.env.Client.Status().Update(t.Context(), runs); err != nil {
		t.Fatal(err)
	}
	h.pass(h.manager(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if trials, ok := list.(*v1alpha1.TrialList); ok {
			behind.DeepCopyInto(trials)
			return nil
		}
		return c.List(ctx, list, opts...)
	}}, interceptor.Funcs{}))
	if diff := cmp.Diff([]string{"runs"}, h.admitted()); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
}

// Each look at each waiting trial once listed all trials and, if there was no room, all pods of the
// cluster at once.
func TestAPassReadsLittle(t *testing.T) {
	h := newHall(t)
	for i := range 20 {
		h.waits(fmt.Sprintf("trial-%02d", i), 0)
	}
	var lists []string
	r := h.manager(interceptor.Funcs{}, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		o := client.ListOptions{}
		o.ApplyOptions(opts)
		if o.Namespace == "" {
			lists = append(lists, strings.TrimPrefix(fmt.Sprintf("%T", list), "*"))
			if o.Limit == 0 || o.Limit > pageSize {
				t.Errorf("%T of the whole cluster are listed %d at a time; want %d at most", list, o.Limit, pageSize)
			}
		}
		return c.List(ctx, list, opts...)
	}})
	h.pass(r)
	slices.Sort(lists)
	if diff := cmp.Diff([]string{"v1.NodeList", "v1.PodList", "v1alpha1.TrialList"}, lists); diff != "" {
		t.Errorf("lists of the first pass, which makes the grants (-want +got):\n%s", diff)
	}
	if got := h.admitted(); len(got) != 1 {
		t.Errorf("admitted %v, want one", got)
	}
	lists = nil
	h.pass(r)
	if len(lists) > 0 {
		t.Errorf("a pass in which nobody may start lists %v", lists)
	}
	h.drop(h.admitted()[0])
	h.pass(r)
	slices.Sort(lists)
	if diff := cmp.Diff([]string{"v1.NodeList", "v1.PodList"}, lists); diff != "" {
		t.Errorf("lists of a pass in which one starts (-want +got):\n%s", diff)
	}
}

// counting counts the trials of a namespace that a cache gives.
type counting struct {
	client.Client

	of   string
	gave int
}

func (c *counting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	if trials, is := list.(*v1alpha1.TrialList); is {
		for i := range trials.Items {
			if trials.Items[i].Namespace == c.of {
				c.gave++
			}
		}
	}
	return err
}

// Each pass once copied all trials, although most had ended. It reads the trials that wait or run.
// It reads finished trials only of an experiment whose next trial is about to be made.
func TestAPassReadsTheTrialsThatMatter(t *testing.T) {
	h := newHall(t)
	cached := &counting{of: h.ns}
	h.env.Start(t, cache.Options{}, func(mgr ctrl.Manager) error {
		cached.Client = mgr.GetClient()
		return cacheopts.IndexTrials(t.Context(), mgr.GetFieldIndexer(), Indexes)
	})
	for i := range 5 {
		h.complete(h.waits(fmt.Sprintf("done-%d", i), 0))
	}
	h.complete(h.waits("first", 1))
	h.accept("first")
	h.waits("second", 0)
	read := 0
	r := h.manager(interceptor.Funcs{}, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*v1alpha1.Trial); is {
			read++
		}
		return c.Get(ctx, key, o, opts...)
	}})
	r.Client, r.Indexed = cached, true
	h.seen(cached, "second", v1alpha1.TrialAdmitted, metav1.ConditionUnknown)

	h.pass(r)
	if got := h.admitted(); len(got) > 0 || cached.gave != 2 {
		t.Errorf("admitted %v, after a look at %d trials; want none, as the next trial of the first experiment comes soon, and 2", got, cached.gave)
	}
	h.seen(cached, "second", v1alpha1.TrialAdmitted, metav1.ConditionFalse)
	h.clock.Step(time.Minute)
	h.pass(r)
	if diff := cmp.Diff([]string{"second"}, h.admitted()); diff != "" {
		t.Errorf("admitted when no trial of the first experiment came (-want +got):\n%s", diff)
	}

	// The grant of a finished trial is dropped without a read past the cache.
	h.seen(cached, "second", v1alpha1.TrialAdmitted, metav1.ConditionTrue)
	second := &v1alpha1.Trial{}
	if err := h.env.Client.Get(t.Context(), client.ObjectKey{Namespace: h.ns, Name: "second"}, second); err != nil {
		t.Fatal(err)
	}
	h.complete(second)
	h.seen(cached, "second", v1alpha1.TrialComplete, metav1.ConditionTrue)
	h.waits("third", 0)
	h.seen(cached, "third", v1alpha1.TrialAdmitted, metav1.ConditionUnknown)
	h.pass(r)
	if diff := cmp.Diff([]string{"second", "third"}, h.admitted()); diff != "" || read != 0 {
		t.Errorf("admitted, after %d reads of trials past the cache (-want +got):\n%s", read, diff)
	}
}

// BenchmarkAPass makes passes in which one trial waits behind another, beside 5,000 finished ones.
func BenchmarkAPass(b *testing.B) {
	h := newHall(b)
	var cached client.Client
	h.env.Start(b, cache.Options{}, func(mgr ctrl.Manager) error {
		cached = mgr.GetClient()
		return cacheopts.IndexTrials(b.Context(), mgr.GetFieldIndexer(), Indexes)
	})
	done := h.waits("done", 0)
	for i := range 5000 {
		one := done.DeepCopy()
		one.Name, one.ResourceVersion, one.UID, one.Finalizers = fmt.Sprintf("done-%d", i), "", "", nil
		if err := h.env.Client.Create(b.Context(), one); err != nil {
			b.Fatal(err)
		}
		h.complete(one)
	}
	h.complete(done)
	h.waits("first", 1)
	h.waits("second", 0)
	h.seen(cached, "second", v1alpha1.TrialAdmitted, metav1.ConditionUnknown)
	for _, indexed := range []bool{false, true} {
		b.Run(fmt.Sprintf("indexed=%t", indexed), func(b *testing.B) {
			r := h.manager(interceptor.Funcs{}, interceptor.Funcs{})
			r.Client, r.Indexed = cached, indexed
			h.pass(r)
			h.seen(cached, "first", v1alpha1.TrialAdmitted, metav1.ConditionTrue)
			h.pass(r)
			h.seen(cached, "second", v1alpha1.TrialAdmitted, metav1.ConditionFalse)
			b.ReportAllocs()
			for b.Loop() {
				h.pass(r)
			}
		})
	}
}

// complete ends a trial.
func (h *hall) complete(trial *v1alpha1.Trial) {
	h.t.Helper()
	meta.SetStatusCondition(&trial.Status.Conditions, metav1.Condition{
		Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded, LastTransitionTime: metav1.NewTime(h.clock.Now()),
	})
	if err := h.env.Client.Status().Update(h.t.Context(), trial); err != nil {
		h.t.Fatal(err)
	}
}

// accept accepts the experiment of a name.
func (h *hall) accept(name string) {
	h.t.Helper()
	exp := &v1alpha1.Experiment{}
	if err := h.env.Client.Get(h.t.Context(), client.ObjectKey{Namespace: h.ns, Name: name}, exp); err != nil {
		h.t.Fatal(err)
	}
	meta.SetStatusCondition(&exp.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ExperimentAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonValid, LastTransitionTime: metav1.NewTime(h.clock.Now()),
	})
	if err := h.env.Client.Status().Update(h.t.Context(), exp); err != nil {
		h.t.Fatal(err)
	}
}

// seen waits until a cache has a trial with a condition; Unknown: without it.
func (h *hall) seen(c client.Client, name, condition string, status metav1.ConditionStatus) {
	h.t.Helper()
	for by := time.Now().Add(20 * time.Second); time.Now().Before(by); time.Sleep(10 * time.Millisecond) {
		trial := &v1alpha1.Trial{}
		if err := c.Get(h.t.Context(), client.ObjectKey{Namespace: h.ns, Name: name}, trial); err != nil {
			continue
		}
		if is := meta.FindStatusCondition(trial.Status.Conditions, condition); is == nil && status == metav1.ConditionUnknown || is != nil && is.Status == status {
			return
		}
	}
	h.t.Fatalf("the cache never showed trial %s as %s %s", name, condition, status)
}

// Trials that start together were once read and written one after the other. Each call took a round
// trip, so a pass admitted only a few trials per second.
func TestAPassMakesCallsAtOnce(t *testing.T) {
	const all = 6
	h := newHall(t)
	for i := range all {
		pool := fmt.Sprintf("pool-%d", i)
		testcluster.Node(t, h.env.Client, pool, pool)
		h.offer(pool)
		h.waitsIn(fmt.Sprintf("trial-%d", i), 0, pool)
	}
	reads, writes := newMeeting(all), newMeeting(all)
	r := h.manager(
		interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			writes.await()
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		}},
		interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*appsv1.ControllerRevision); is {
				reads.await()
			}
			return c.Get(ctx, key, o, opts...)
		}},
	)
	r.AtOnce = all
	h.pass(r)
	if n := len(h.admitted()); n != all || reads.most != all || writes.most != all {
		t.Errorf("%d trials of %d are admitted; of snapshots %d were read at once, of trials %d written", n, all, reads.most, writes.most)
	}
	if reads.came != all {
		t.Errorf("%d snapshots were read, of %d trials", reads.came, all)
	}
}

// The System of each trial that could start was once read by a call of its own.
func TestSystemsOfManyTrialsAreReadByOneList(t *testing.T) {
	const all = 10
	h := newHall(t)
	for i := range all {
		pool := fmt.Sprintf("pool-%d", i)
		testcluster.Node(t, h.env.Client, pool, pool)
		h.offer(pool)
		h.waitsIn(fmt.Sprintf("trial-%d", i), 0, pool)
	}
	reads, lists := 0, 0
	r := h.manager(interceptor.Funcs{}, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*appsv1.ControllerRevision); is {
				reads++
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if _, is := l.(*appsv1.ControllerRevisionList); is {
				lists++
			}
			return c.List(ctx, l, opts...)
		},
	})
	r.AtOnce = 2
	h.pass(r)
	if n := len(h.admitted()); n != all || reads != 0 || lists != 1 {
		t.Errorf("%d trials of %d are admitted, after %d reads and %d lists of snapshots", n, all, reads, lists)
	}
}

// meeting counts concurrent callers. Each waits for the others, but not for ever.
type meeting struct {
	mu                sync.Mutex
	want, there, most int
	came              int
	full              chan struct{}
}

func newMeeting(want int) *meeting { return &meeting{want: want, full: make(chan struct{})} }

func (m *meeting) await() {
	m.mu.Lock()
	m.came++
	m.there++
	m.most = max(m.most, m.there)
	if m.there == m.want {
		close(m.full)
	}
	m.mu.Unlock()
	select {
	case <-m.full:
	case <-time.After(10 * time.Second):
	}
	m.mu.Lock()
	m.there--
	m.mu.Unlock()
}

// An error about one trial keeps no other from starting.
func TestAnErrorAboutOneTrialLetsOthersPass(t *testing.T) {
	h := newHall(t)
	h.waits("first", 1)
	h.waits("second", 0)
	h.pass(h.manager(interceptor.Funcs{}, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, ok := o.(*appsv1.ControllerRevision); ok && key.Namespace == h.ns {
			return fmt.Errorf("no answer")
		}
		return c.Get(ctx, key, o, opts...)
	}}))
	if got := h.admitted(); len(got) > 0 {
		t.Errorf("admitted %v without a look at what they need", got)
	}
	trial := &v1alpha1.Trial{}
	for _, name := range []string{"first", "second"} {
		if err := h.env.Client.Get(t.Context(), client.ObjectKey{Namespace: h.ns, Name: name}, trial); err != nil {
			t.Fatal(err)
		}
		if c := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialAdmitted); c == nil || !strings.Contains(c.Message, "no answer") {
			t.Errorf("%s is told %+v", name, c)
		}
	}
}
