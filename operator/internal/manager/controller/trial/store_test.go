package trial

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
	"assay.dev/assay/operator/internal/manager/coordinator"
)

// The store once acknowledged a file that can never be read. The manager then read it again and
// again while the trial held its pools.
func TestTheStoreRejectsWhatCannotBeRead(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	store := &storage.Store{Client: p.env.Client, Reader: p.env.Client}
	pod := p.agents.registered[p.layout().Clients[0].Name]
	var rejected *coordinator.RejectedError
	if err := store.StoreResults(t.Context(), pod, []byte("no gzip"), func() {}); !errors.As(err, &rejected) {
		t.Fatalf("the error is %v, want that it is rejected", err)
	}
	p.measured(10, 0)
	cm := &corev1.ConfigMap{}
	if err := p.env.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: p.layout().ClientResultConfigMap(0)}, cm); err != nil {
		t.Fatal(err)
	}
	sent := cm.BinaryData[storage.ClientKey]
	if err := store.StoreResults(t.Context(), pod, sent, func() {}); err != nil {
		t.Errorf("the same again is not taken: %v", err)
	}
	other := p.agents.registered[p.layout().Clients[1].Name]
	other.Index = pod.Index
	if err := p.env.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: p.layout().ClientResultConfigMap(1)}, cm); err != nil {
		t.Fatal(err)
	}
	if err := store.StoreResults(t.Context(), other, cm.BinaryData[storage.ClientKey], func() {}); !errors.As(err, &rejected) {
		t.Errorf("other results of the same client are taken: %v", err)
	}
}

// A quota of ConfigMaps once held a trial and its pools forever, no matter whether the trial had
// run.
func TestATrialWhoseResultsCannotBeStoredEnds(t *testing.T) {
	for name, fails := range map[string]bool{"one that ran": false, "one that failed": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, nil)
			p.released()
			attempts := map[time.Time]int{}
			p.r.Client = interceptor.NewClient(p.env.Client, interceptor.Funcs{
				Create: func(ctx context.Context, real client.WithWatch, o client.Object, options ...client.CreateOption) error {
					if o.GetLabels()[v1alpha1.LabelResults] != "" {
						attempts[p.clock.Now()]++
						return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, o.GetName(), errors.New("exceeded quota"))
					}
					return real.Create(ctx, o, options...)
				},
			})
			if fails {
				p.clientEnds(time.Second, 1)
			} else {
				p.measured(10, 0)
			}
			p.settle(false)
			if c := p.condition(v1alpha1.TrialComplete); c.Status == metav1.ConditionTrue {
				t.Fatal("it is not tried again")
			}
			for range 4 {
				p.clock.Step(engine.ResultsGrace + engine.StoreGrace)
				p.settle(false)
			}
			reason := v1alpha1.ReasonResultsNotStored
			if fails {
				reason = v1alpha1.ReasonClientFailed
			}
			p.withoutResults = true
			p.wantEnd(v1alpha1.ReasonInvalid, reason)
			if c := p.condition(v1alpha1.TrialCollected); c.Reason != v1alpha1.ReasonResultsNotStored || !strings.Contains(c.Message, "exceeded quota") {
				t.Errorf("Collected is %s %s: %s", c.Status, c.Reason, c.Message)
			}
			// Each attempt writes to the status, and that write must not cause the next attempt.
			// The clock's steps leave one attempt to a trial that failed.
			least := 2
			if fails {
				least = 1
			}
			if len(attempts) < least || slices.Max(slices.Collect(maps.Values(attempts))) > 1 {
				t.Errorf("it was tried at these instants, so often: %v", attempts)
			}
			if digest := p.trial().Status.ResultsDigest; digest != "" {
				t.Errorf("the status has digest %s of results that are not there", digest)
			}
		})
	}
}
