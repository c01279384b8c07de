package trial

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/manager/controller/trial/objects"
)

// Seed 377 of the simulation found this: a manager that took over with a clock hours behind counted
// from instants that lay in its future. So each wait took hours longer, and the trial held its
// pools.
func TestNoWaitIsLongerForAClockThatIsBehind(t *testing.T) {
	complete := func(p *play) bool { return isTrue(p.trial(), v1alpha1.TrialComplete) }
	judged := func(p *play) bool {
		return meta.IsStatusConditionFalse(p.trial().Status.Conditions, v1alpha1.TrialValid)
	}
	for name, tc := range map[string]struct {
		begins func(t *testing.T) *play
		breaks func(p *play) // what the manager that takes over cannot do
		limit  time.Duration
		ended  func(p *play) bool
		// early: how much sooner the wait ends than the limit, since the trial needs that time.
		early time.Duration
	}{
		"pods that never run": {
			begins: func(t *testing.T) *play { p := newPlay(t, nil); p.settle(false); return p },
			limit:  engine.DeployTimeout, ended: judged,
		},
		"machines that are never idle": {
			begins: func(t *testing.T) *play {
				p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) { s.Disturbances.IdleWait = "20s" })
				p.settle(true)
				p.schedule()
				p.busyMachine(1.2)
				p.settle(true)
				return p
			},
			limit: 20 * time.Second, ended: func(p *play) bool { return p.trial().Status.ZeroUnixNanos != 0 },
		},
		"clients that are never over": {
			begins: func(t *testing.T) *play { p := newPlay(t, nil); p.released(); return p },
			limit:  40*time.Second + engine.ResultsGrace, ended: judged, early: 15 * time.Second,
		},
		"a check that never ends": {
			begins: func(t *testing.T) *play { p := checked(t); p.released(); p.measured(100, 0); p.settle(false); return p },
			limit:  time.Minute, ended: func(p *play) bool { return p.trial().Status.Checks != nil }, early: 45 * time.Second,
		},
		"results that are not to be had": {
			begins: func(t *testing.T) *play {
				p := newPlay(t, nil)
				p.released()
				p.measured(10, 0)
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: p.layout().ClientResultConfigMap(0)}}
				if err := p.env.Client.Delete(t.Context(), cm); err != nil {
					t.Fatal(err)
				}
				p.settle(false)
				return p
			},
			limit: 40*time.Second + engine.ResultsGrace + engine.StoreGrace, ended: judged, early: time.Minute,
		},
		"processes that never end": {
			begins: func(t *testing.T) *play {
				p := newPlay(t, nil)
				p.released()
				p.measured(100, 0)
				p.settle(false)
				return p
			},
			limit: 30 * time.Second, ended: complete, early: 26 * time.Second,
		},
		"files that cannot be kept": {
			begins: func(t *testing.T) *play {
				p := newPlay(t, func(s *v1alpha1.SystemSpec) { s.Replicas.Collect = []string{"stats.json"} })
				p.released()
				p.measured(100, 0)
				filesAreDenied(p)
				for _, r := range p.agents.reports {
					r.Finished = true
				}
				p.settle(false)
				for _, r := range p.layout().Servers {
					p.send(r.Name, "packed by "+r.Name)
				}
				p.settle(false)
				return p
			},
			breaks: filesAreDenied,
			limit:  engine.CollectGrace + engine.StoreGrace, ended: complete, early: time.Minute,
		},
		"a Secret that cannot be deleted": {
			begins: func(t *testing.T) *play {
				p := newPlay(t, nil)
				p.released()
				p.measured(100, 0)
				p.secretsForbidden()
				p.settle(true)
				return p
			},
			breaks: (*play).secretsForbidden,
			limit:  engine.StoreGrace, ended: complete,
		},
		"pods that are kept for inspection": {
			begins: func(t *testing.T) *play { p := failed(t, "30m"); p.settle(false); return p },
			limit:  30 * time.Minute, ended: complete,
		},
		"a deleted trial whose Secret cannot be deleted": {
			begins: func(t *testing.T) *play {
				p := newPlay(t, nil)
				p.deployed()
				if err := p.env.Client.Delete(t.Context(), p.trial()); err != nil {
					t.Fatal(err)
				}
				return p
			},
			breaks: (*play).secretsForbidden,
			limit:  engine.StoreGrace,
			ended:  func(p *play) bool { return p.env.Client.Get(p.t.Context(), p.key, &v1alpha1.Trial{}) != nil },
		},
		"a pod on a node that does not answer": {
			begins: func(t *testing.T) *play { p := newPlay(t, nil); p.deployed(); p.stuckPod(); return p },
			limit:  objects.DeadNodeGrace,
			ended: func(p *play) bool {
				left, err := p.r.deleteAll(p.t.Context(), p.key)
				if err != nil {
					p.t.Fatal(err)
				}
				return left == ""
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.begins(t)
			p.newReconciler()
			p.clock.SetTime(p.clock.Now().Add(-3 * time.Hour))
			if tc.breaks != nil {
				tc.breaks(p)
			}
			p.lookTwice()
			if tc.ended(p) {
				t.Fatal("it does not wait at all")
			}
			p.clock.Step(tc.limit - tc.early - 2*time.Second)
			p.lookTwice()
			if tc.ended(p) {
				t.Errorf("it ended within %v", tc.limit-tc.early)
			}
			p.clock.Step(tc.early + 5*time.Second)
			p.lookTwice()
			if !tc.ended(p) {
				t.Errorf("it has not ended after %v: %s", tc.limit, p.conditions())
			}
		})
	}
}

// lookTwice reconciles until the manager acts on what it wrote. The trial may be gone then.
func (p *play) lookTwice() {
	p.t.Helper()
	for range 10 {
		if _, err := p.r.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: p.key}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// filesAreDenied makes a webhook deny the files of a trial's pods.
func filesAreDenied(p *play) {
	p.r.Client = interceptor.NewClient(p.env.Client, interceptor.Funcs{
		Create: func(ctx context.Context, real client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if o.GetLabels()[v1alpha1.LabelResults] == v1alpha1.ResultsFiles {
				return apierrors.NewInternalError(errors.New(`failed calling webhook "policy.example": connection refused`))
			}
			return real.Create(ctx, o, options...)
		},
	})
}

// stuckPod makes a pod of the trial that is in deletion, on a node that is gone.
func (p *play) stuckPod() {
	p.t.Helper()
	grace := int64(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "stuck", Labels: map[string]string{v1alpha1.LabelTrial: p.key.Name}},
		Spec:       corev1.PodSpec{NodeName: "gone-" + p.ns, Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: &grace},
	}
	if err := p.env.Client.Create(p.t.Context(), pod); err != nil {
		p.t.Fatal(err)
	}
	if err := p.env.Client.Delete(p.t.Context(), pod); err != nil {
		p.t.Fatal(err)
	}
}
