package trial

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/internal/engine/idle"
	"assay.dev/assay/operator/internal/model/timeline"
)

// Slow answers of an API server once shortened the lead, so that clients were released in the
// middle of the warm-up.
func TestTheLeadIsCountedFromTheRelease(t *testing.T) {
	c := newChaosPlay(t, split())
	asked := 0
	c.r.Reader = interceptor.NewClient(c.env.Client, interceptor.Funcs{List: func(ctx context.Context, real client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, ok := list.(*unstructured.UnstructuredList); ok && c.trial().Status.ZeroUnixNanos == 0 {
			asked++
			c.clock.Step(4 * time.Second)
		}
		return real.List(ctx, list, options...)
	}})
	c.released()
	if asked == 0 {
		t.Fatal("Chaos Mesh was not asked before the release")
	}
	status := c.trial().Status
	begins := time.Unix(0, status.ZeroUnixNanos).Add(-timeline.FromSchedule(c.trial().Spec.Schedule).WarmUp)
	if lead, want := begins.Sub(c.clock.Now()), idle.Lead(status.IdleGate); lead != want {
		t.Errorf("the load begins %v after the release; want %v", lead, want)
	}
	if since := c.clock.Since(status.Times.Released.Time); since >= time.Millisecond {
		t.Errorf("the release is dated %v too early", since)
	}
}
