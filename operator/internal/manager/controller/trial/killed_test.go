package trial

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
	"assay.dev/assay/operator/internal/manager/coordinator"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// takeOver is how long no manager leads after one was killed: until the lease expires and another
// manager gets it.
const takeOver = 17 * time.Second

var errKilled = errors.New("this manager was killed")

// mortal is the client through which a manager writes. The manager is killed right after one of its
// writes. The API server has that write; the manager does nothing more, and does not even read the
// answer.
type mortal struct {
	left   int // writes until it is killed
	writes int
	last   string // the last write
	killed bool
}

// client wraps the manager's client. It counts the calls that change an object, and refuses every
// call once the manager is killed.
func (m *mortal) client(real client.WithWatch) client.WithWatch {
	alive := func(write bool, what string, do func() error) error {
		if m.killed {
			return errKilled
		}
		err := do()
		if !write || err != nil {
			return err
		}
		m.writes++
		if m.last = what; m.writes == m.left {
			m.killed = true
			return errKilled
		}
		return nil
	}
	what := func(verb string, o client.Object) string { return fmt.Sprintf("%s %T %s", verb, o, o.GetName()) }
	return interceptor.NewClient(real, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return alive(false, "", func() error { return c.Get(ctx, k, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return alive(false, "", func() error { return c.List(ctx, l, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return alive(true, what("create", o), func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return alive(true, what("delete", o), func() error { return c.Delete(ctx, o, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			return alive(true, what("delete all", o), func() error { return c.DeleteAllOf(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return alive(true, what("update", o), func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return alive(true, what("patch", o), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return alive(true, fmt.Sprintf("apply %T", o), func() error { return c.Apply(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return alive(true, what("update "+sub+" of", o), func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return alive(true, what("patch "+sub+" of", o), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// killedRun is a whole trial with a fault. Its agents do in time what they hear of in time.
type killedRun struct {
	*play
	m     *mortal              // the leading manager writes through it
	heard map[string]time.Time // when each agent received the run
	steps int
}

// manager makes a manager that has just begun to lead, and has not heard from any agent. It is
// killed after the given number of writes. 0: never.
func (k *killedRun) manager(after int) {
	k.m = &mortal{left: after}
	k.newReconciler()
	c := k.m.client(k.env.Client)
	k.r.Client, k.r.Reader = c, c
	k.admits.Client, k.admits.Reader = c, c
	clear(k.agents.directives)
	clear(k.agents.registered)
}

// toTheEnd plays the trial to its end. It reports whether the manager was killed in it, and after
// which write.
func (k *killedRun) toTheEnd(point int) (killed bool, after string) {
	k.t.Helper()
	k.manager(point)
	began := k.clock.Now()
	for ; ; k.steps++ {
		if k.steps > 600 || k.clock.Since(began) > 20*time.Minute {
			k.t.Fatalf("after %d steps and %v the trial hangs:\n%s", k.steps, k.clock.Since(began), k.conditions())
		}
		result, err := k.r.Reconcile(k.t.Context(), ctrl.Request{NamespacedName: k.key})
		if !k.m.killed && err == nil && !isTrue(k.trial(), v1alpha1.TrialAdmitted) {
			_, err = k.admits.Reconcile(k.t.Context(), ctrl.Request{})
		}
		if !k.m.killed && err != nil {
			k.t.Fatalf("reconcile: %v", err)
		}
		if !k.m.killed {
			k.world()
		}
		if k.m.killed {
			killed, after = true, k.m.last
			k.clock.Step(takeOver)
			k.manager(0)
			continue
		}
		if c := k.condition(v1alpha1.TrialComplete); c.Status == metav1.ConditionTrue {
			return killed, after
		}
		k.clock.Step(min(max(result.RequeueAfter, 10*time.Millisecond), time.Second))
	}
}

// world plays everything outside the manager: pods come up, agents obey, and clients end.
func (k *killedRun) world() {
	k.t.Helper()
	if len(k.agents.reports) == 0 && k.applied() {
		k.schedule()
	}
	k.agents.obey()
	trial := k.trial()
	zero := time.Unix(0, trial.Status.ZeroUnixNanos)
	for name, d := range k.agents.directives {
		r := k.agents.reports[name]
		if d.Run == nil || r == nil {
			continue
		}
		if k.heard[name].IsZero() {
			k.heard[name] = k.clock.Now()
		}
		for i := range r.Actions { // an agent that hears of an action too late is late
			if late := k.heard[name].Sub(zero) - r.Actions[i].Planned; late > 0 {
				r.Actions[i].Started, r.Actions[i].Confirmed = r.Actions[i].Planned+late, r.Actions[i].Planned+late+time.Millisecond
			}
		}
	}
	if trial.Status.ZeroUnixNanos != 0 && !isTrue(trial, v1alpha1.TrialCollected) && k.clock.Since(zero) > 30*time.Second {
		k.clientsSend(zero)
	}
}

// applied reports whether the owners of all pods exist, so that their controllers make pods.
func (k *killedRun) applied() bool {
	sets, jobs := &appsv1.StatefulSetList{}, &batchv1.JobList{}
	for _, list := range []client.ObjectList{sets, jobs} {
		if err := k.env.Client.List(k.t.Context(), list, client.InNamespace(k.ns)); err != nil {
			k.t.Fatal(err)
		}
	}
	replicas := int32(0)
	for _, s := range sets.Items {
		replicas += *s.Spec.Replicas
	}
	return int(replicas) == len(k.layout().Replicas()) && len(jobs.Items) > 0
}

// clientsSend makes released clients end in time, and send their results until a manager has taken
// them.
func (k *killedRun) clientsSend(zero time.Time) {
	k.t.Helper()
	for _, c := range k.layout().Clients {
		r := k.agents.reports[c.Name]
		pod, known := k.agents.registered[c.Name]
		if r == nil || k.heard[c.Name].IsZero() || r.Sent || !known || k.m.killed {
			continue
		}
		r.Over = true
		r.Client = &protocol.ClientRun{Released: max(-k.trial().Spec.Schedule.WarmUp.OrZero(), k.heard[c.Name].Sub(zero)), Ended: 23 * time.Second}
		err := k.store().StoreResults(k.t.Context(), pod, k.clientResults(c, 10, 0), func() {})
		if err != nil && !errors.Is(err, errKilled) {
			k.t.Fatalf("store the results of %s: %v", c.Name, err)
		}
		r.Sent = err == nil
	}
}

func (k *killedRun) store() coordinator.Store {
	return &storage.Store{Client: k.r.Client, Reader: k.r.Reader}
}

var killEvery = flag.Int("kill-every", 5, "kill the manager after each so-many-th of its writes, and after none")

// A manager may be killed after any of its writes. No trial is lost, repeated, or left hanging by
// that.
//
// The manager makes some 52 writes. With all of them the test takes four minutes:
//
//	go test ./operator/internal/manager/controller/trial -run KilledAfterAnyWrite -args -kill-every=1
func TestAManagerKilledAfterAnyWrite(t *testing.T) {
	points, valid := 0, 0
	reasons := map[string]int{}
	for point := 1; point < 200; point += *killEvery {
		killed := false
		ok := t.Run(fmt.Sprint(point), func(t *testing.T) {
			k := &killedRun{play: newPlay(t, nil), heard: map[string]time.Time{}}
			var after string
			killed, after = k.toTheEnd(point)
			if !killed {
				after = "none"
			}
			trial := k.trial()
			outcome, reason := k.condition(v1alpha1.TrialComplete).Reason, k.condition(v1alpha1.TrialValid).Reason
			t.Logf("killed after %s: %s %s: %s", after, outcome, reason, k.condition(v1alpha1.TrialValid).Message)
			r := k.wantEnd(outcome, reason)
			switch {
			case outcome == v1alpha1.ReasonSucceeded:
				valid++
				k.wantRightNumbers(r)
			case reason == "" || r.Reason != reason || !killed:
				t.Errorf("the results say %q, the trial %q", r.Reason, reason)
			}
			reasons[reason]++
			if trial.Status.ResultsConfigMap == "" || r.Name != trial.Name {
				t.Errorf("the results of %s are those of %q", trial.Name, r.Name)
			}
			k.wantOneResult()
		})
		if !ok || !killed {
			break
		}
		points++
	}
	t.Logf("killed at %d points of a trial: %d trials valid, reasons %v", points, valid, reasons)
	if least := 40 / *killEvery; points < least {
		t.Errorf("the manager was killed at %d points, want %d at least: it writes 40 times and more", points, least)
	}
}

// wantRightNumbers checks the numbers of a trial that counts. The test knows all of them.
func (k *killedRun) wantRightNumbers(r results.Trial) {
	k.t.Helper()
	if s := r.Summary; s.Committed != 20 || s.MeanMillis < 4.99 || s.MeanMillis > 5.01 {
		k.t.Errorf("%d committed, mean %v ms; want 20 of 5 ms", s.Committed, s.MeanMillis)
	}
	if len(r.Faults) != 1 || r.Faults[0].Error != "" || r.Faults[0].ConfirmedMillis < r.Faults[0].PlannedMillis || r.Faults[0].ConfirmedMillis > r.Faults[0].PlannedMillis+20 {
		k.t.Errorf("faults %+v, want one in time", r.Faults)
	}
	if zero := k.trial().Status.ZeroUnixNanos; r.ZeroUnixNanos != zero {
		k.t.Errorf("t = 0 is %d in the results and %d in the trial", r.ZeroUnixNanos, zero)
	}
}

// wantOneResult checks that the measurements are kept exactly once.
func (k *killedRun) wantOneResult() {
	k.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := k.env.Client.List(k.t.Context(), list, client.InNamespace(k.ns), client.HasLabels{v1alpha1.LabelResults}); err != nil {
		k.t.Fatal(err)
	}
	if len(list.Items) != 1 {
		k.t.Errorf("%d ConfigMaps of results, want one", len(list.Items))
	}
}
