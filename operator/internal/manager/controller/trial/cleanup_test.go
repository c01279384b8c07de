package trial

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
)

// The manager cannot list Secrets. Cleanup still deletes a trial's own Secret, and leaves another's
// Secret of the same name.
func TestThePreparedSecretGoesWithItsTrial(t *testing.T) {
	for name, tc := range map[string]struct {
		label string // of the trial; the Secret carries it
		stays bool
	}{
		"the trial's": {label: "trial-0"},
		"another's":   {label: "trial-1", stays: true},
		"unlabelled":  {stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, nil)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: p.ns, Name: p.layout().PreparedSecret(), Labels: map[string]string{v1alpha1.LabelTrial: tc.label},
			}}
			if err := p.env.Client.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			var left string
			for range 2 { // objects in deletion may be there a while longer
				var err error
				if left, err = p.r.deleteAll(t.Context(), p.key); err != nil {
					t.Fatal(err)
				}
			}
			if left != "" {
				t.Errorf("still there: %s", left)
			}
			err := p.env.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)
			if tc.stays && err != nil || !tc.stays && !apierrors.IsNotFound(err) {
				t.Errorf("stays %v: reading it gives %v", tc.stays, err)
			}
		})
	}
}

// secretsForbidden plays an administrator who takes the right to read Secrets away.
func (p *play) secretsForbidden() {
	p.r.Reader = interceptor.NewClient(p.env.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, secret := o.(*corev1.Secret); secret {
				return apierrors.NewForbidden(corev1.Resource("secrets"), key.Name, errors.New("no such right"))
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
}

// The simulation found this error: a trial whose Secret could not be deleted held its pools
// forever, though none of its processes ran any more.
func TestWhatDoesNotRunHoldsNoPools(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	p.measured(100, 0)
	p.secretsForbidden()
	p.settle(true)
	if isTrue(p.trial(), v1alpha1.TrialComplete) {
		t.Fatal("the trial is complete at once, and what failed was not tried again")
	}
	p.clock.Step(engine.StoreGrace)
	p.settle(true)
	if c := p.condition(v1alpha1.TrialCleanedUp); !isTrue(p.trial(), v1alpha1.TrialComplete) || !strings.Contains(c.Message, "no such right") {
		t.Errorf("CleanedUp is %s: %s; the trial is not complete, or does not say what is left", c.Status, c.Message)
	}
}

// The same holds for a trial that is deleted.
func TestADeletedTrialWaitsForNoSecret(t *testing.T) {
	p := newPlay(t, nil)
	p.deployed()
	p.secretsForbidden()
	trial := p.trial()
	if err := p.env.Client.Delete(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	there := func() bool { return p.env.Client.Get(t.Context(), p.key, trial) == nil }
	for range 3 {
		if _, err := p.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: p.key}); err != nil {
			t.Fatal(err)
		}
	}
	if !there() {
		t.Fatal("the trial is gone at once, and what failed was not tried again")
	}
	p.clock.Step(engine.StoreGrace + time.Minute) // the clock of the API server differs
	for range 3 {
		if _, err := p.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: p.key}); err != nil {
			t.Fatal(err)
		}
	}
	if there() {
		t.Error("the trial still waits for its Secret")
	}
}

// A webhook that denied the files of a trial's pods, or that was down, once held the trial's pools
// forever (R3).
func TestFilesThatCannotBeKeptHoldNoPools(t *testing.T) {
	for name, denied := range map[string]error{
		"a webhook that denies":  apierrors.NewBadRequest(`admission webhook "policy.example" denied the request: no binary data`),
		"a webhook that is down": apierrors.NewInternalError(errors.New(`failed calling webhook "policy.example": connection refused`)),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, func(s *v1alpha1.SystemSpec) { s.Replicas.Collect = []string{"stats.json"} })
			p.released()
			p.measured(100, 0)
			p.r.Client = interceptor.NewClient(p.env.Client, interceptor.Funcs{
				Create: func(ctx context.Context, real client.WithWatch, o client.Object, options ...client.CreateOption) error {
					if o.GetLabels()[v1alpha1.LabelResults] == v1alpha1.ResultsFiles {
						return denied
					}
					return real.Create(ctx, o, options...)
				},
			})
			for _, r := range p.agents.reports {
				r.Finished = true
			}
			p.settle(false)
			for _, r := range p.layout().Servers {
				p.send(r.Name, "packed by "+r.Name)
			}
			p.settle(false)
			if isTrue(p.trial(), v1alpha1.TrialComplete) {
				t.Fatal("the trial is complete at once, and what failed was not tried again")
			}
			p.clock.Step(engine.StoreGrace + time.Minute)
			p.settle(false)
			if c := p.condition(v1alpha1.TrialCollected); !isTrue(p.trial(), v1alpha1.TrialComplete) || c.Reason != v1alpha1.ReasonResultsNotStored || !strings.Contains(c.Message, "could not be kept") {
				t.Errorf("Collected is %s %s: %s; the trial holds its pools, or does not say what is missing", c.Status, c.Reason, c.Message)
			}
		})
	}
}
