package trial

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// A trial once tried forever to make objects that could not be made. It held its pools meanwhile,
// and only the manager's log knew why.
func TestWhatCannotBeMadeIsReportedAndHasADeadline(t *testing.T) {
	for name, tc := range map[string]struct {
		obstacle func(p *play) client.Object
		words    string
	}{
		"a quota of objects": {words: "exceeded quota: small", obstacle: func(p *play) client.Object {
			hard := corev1.ResourceList{"count/services": resource.MustParse("0")}
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
			if err := p.env.Client.Create(t.Context(), quota); err != nil {
				t.Fatal(err)
			}
			quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: hard}
			if err := p.env.Client.Status().Update(t.Context(), quota); err != nil { // no controller counts usage here
				t.Fatal(err)
			}
			return quota
		}},
		"an object of another": {words: "exists and belongs to something else: delete it", obstacle: func(p *play) client.Object {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: p.layout().Service()}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
			if err := p.env.Client.Create(t.Context(), service); err != nil {
				t.Fatal(err)
			}
			return service
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayIn(t, &testenv.Get(t).Env, nil, nil) // this API server enforces quotas
			obstacle := tc.obstacle(p)
			p.settle(false)
			c := p.condition(v1alpha1.TrialDeployed)
			if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonPodsPending || !strings.Contains(c.Message, tc.words) {
				t.Fatalf("Deployed is %s %s: %s; want %q in it", c.Status, c.Reason, c.Message, tc.words)
			}
			if after := p.reconcile().RequeueAfter; after <= 0 || after > 10*time.Second {
				t.Errorf("it is tried again after %v", after)
			}
			p.clock.Step(engine.DeployTimeout + time.Second)
			p.settle(false)
			p.wantEnd(v1alpha1.ReasonFailed, v1alpha1.ReasonDeadlineExceeded)
			if c := p.condition(v1alpha1.TrialValid); !strings.Contains(c.Message, tc.words) {
				t.Errorf("the reason is %s", c.Message)
			}
			if err := p.env.Client.Delete(t.Context(), obstacle); err != nil {
				t.Fatal(err)
			}
			p.key = p.newTrial("trial-1")
			p.deployed()
			p.settle(true)
			if c := p.condition(v1alpha1.TrialDeployed); c.Status != metav1.ConditionTrue {
				t.Errorf("the next trial is not deployed: %s", c.Message)
			}
		})
	}
}

// A temporary error costs no trial.
func TestObjectsAreTriedAgain(t *testing.T) {
	p := newPlay(t, nil)
	down := true
	p.r.Client = p.refusing(func(string) error {
		if down {
			return apierrors.NewInternalError(errors.New("no route to host"))
		}
		return nil
	})
	p.settle(false)
	if c := p.condition(v1alpha1.TrialDeployed); !strings.Contains(c.Message, "no route to host") {
		t.Fatalf("Deployed says %s", c.Message)
	}
	down = false
	p.released()
	p.measured(100, 0)
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
}

// If every attempt to make an object would be refused, the first refusal ends the trial.
func TestObjectsThatAreRefusedForGood(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		reason string
	}{
		"invalid": {apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, "x", nil), v1alpha1.ReasonRenderFailed},
		"denied by a webhook": {apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "statefulsets"}, "x",
			errors.New(`admission webhook "policy" denied the request: no`)), v1alpha1.ReasonPodsForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, nil)
			p.r.Client = p.refusing(func(kind string) error {
				if kind == "StatefulSet" {
					return tc.err
				}
				return nil
			})
			p.settle(false)
			p.wantEnd(v1alpha1.ReasonFailed, tc.reason)
			if c := p.condition(v1alpha1.TrialValid); !strings.Contains(c.Message, tc.err.Error()) {
				t.Errorf("the reason is %s", c.Message)
			}
		})
	}
}

// A pod that its machine cannot run does not come up later: there is nothing to wait for.
func TestAPodThatItsMachineCannotRun(t *testing.T) {
	p := newPlay(t, nil)
	p.settle(false)
	p.schedule()
	name := p.layout().Servers[0].Name
	delete(p.agents.reports, name)
	var pod corev1.Pod
	if err := p.env.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: name}, &pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, engine.PodNotRunnable, "container c: no such program"
	if err := p.env.Client.Status().Update(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonFailed, v1alpha1.ReasonPodsForbidden)
	if c := p.condition(v1alpha1.TrialValid); !strings.Contains(c.Message, name+" cannot run on its machine: container c: no such program") {
		t.Errorf("the reason is %s", c.Message)
	}
}

// The last object that a trial makes before its run also had no deadline once.
func TestAddressesThatCannotBeWritten(t *testing.T) {
	p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) { s.Faults = []v1alpha1.Fault{podKill(killAt)} })
	double := chaosDouble{Client: p.env.Client, objects: map[string]*unstructured.Unstructured{}}
	p.r.Reader = double
	p.r.Client = addressless{double}
	p.deployed()
	p.settle(true)
	const words = "exceeded quota: small"
	if c := p.condition(v1alpha1.TrialRunning); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, words) {
		t.Fatalf("Running is %s: %s", c.Status, c.Message)
	}
	p.clock.Step(engine.BarrierTimeout + time.Second)
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonFailed, v1alpha1.ReasonDeadlineExceeded)
	if c := p.condition(v1alpha1.TrialValid); !strings.Contains(c.Message, words) {
		t.Errorf("the reason is %s", c.Message)
	}
}

// addressless refuses the ConfigMap of the addresses that a trial is released with.
type addressless struct{ client.Client }

func (c addressless) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if strings.HasSuffix(o.GetName(), "-addresses") {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, o.GetName(), errors.New("exceeded quota: small"))
	}
	return c.Client.Create(ctx, o, options...)
}

// The results of a failed trial are written before it is cleaned up. If that was impossible,
// nothing once reported it.
func TestResultsOfAFailureThatCannotBeWritten(t *testing.T) {
	p := newPlay(t, nil)
	full := true
	p.r.Client = p.refusing(func(kind string) error {
		if kind == "ConfigMap" && full {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("exceeded quota: small"))
		}
		return nil
	})
	p.settle(false)
	p.clock.Step(engine.DeployTimeout + time.Second)
	p.reconcile()
	if result := p.reconcile(); result.RequeueAfter <= 0 || result.RequeueAfter > engine.RetryPoll {
		t.Errorf("it is looked at again after %v, want %v at most", result.RequeueAfter, engine.RetryPoll)
	}
	if c := p.condition(v1alpha1.TrialCleanedUp); !strings.Contains(c.Message, "store the trial's results: ") || !strings.Contains(c.Message, "exceeded quota: small") {
		t.Errorf("CleanedUp says %q", c.Message)
	}
	full = false
	p.clock.Step(engine.RetryPoll)
	p.settle(false)
	p.wantEnd(v1alpha1.ReasonFailed, v1alpha1.ReasonDeadlineExceeded)
}

// refusing returns an API server that makes no object if the function why returns an error for its
// kind.
func (p *play) refusing(why func(kind string) error) client.Client {
	return interceptor.NewClient(p.env.Client, interceptor.Funcs{Create: func(ctx context.Context, real client.WithWatch, o client.Object, options ...client.CreateOption) error {
		kind, err := real.GroupVersionKindFor(o)
		if err != nil {
			return err
		}
		if err := why(kind.Kind); err != nil {
			return err
		}
		return real.Create(ctx, o, options...)
	}})
}
