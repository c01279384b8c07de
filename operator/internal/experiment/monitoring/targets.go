package monitoring

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// Pods are the pods of a trial that a PodMonitor of Assay selects.
type Pods struct {
	Namespace, Trial string
	// Count of these pods. Prometheus also knows a pod that serves nothing yet.
	Count int
	// Until is how long to wait for them.
	Until time.Time
}

// ScrapedPods is how many of a trial's pods are scraped.
func ScrapedPods(system *v1alpha1.SystemSpec, l *placement.Layout) int {
	n := 0
	for _, p := range scraped(system) {
		if p.name == v1alpha1.PodTypeClient {
			n += len(l.Clients)
		} else {
			n += len(l.Group(p.component))
		}
	}
	return n
}

// Scrapes waits until Prometheus has scraped every pod, or tried to. It returns false if that does
// not happen in time.
func (s *Server) Scrapes(ctx context.Context, namespaceLabel string, p Pods) bool {
	ctx, cancel := context.WithDeadline(ctx, p.Until)
	defer cancel()
	query := fmt.Sprintf("count(up{%s=%q, %s=%q})", namespaceLabel, p.Namespace, labelTrial, p.Trial)
	err := s.retry(ctx, func(ctx context.Context) (bool, error) {
		answer, _, _, err := s.api.Query(ctx, query, s.now())
		v, ok := answer.(model.Vector)
		return err == nil && ok && len(v) == 1 && int(v[0].Value) >= p.Count, err
	})
	return err == nil
}
