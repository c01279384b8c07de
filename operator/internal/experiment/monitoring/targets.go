package monitoring

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// Pods are those of a trial that a PodMonitor of ours has scraped.
type Pods struct {
	Namespace, Trial string
	// Count of them; of a pod that serves nothing yet it is known, too, that it is to be scraped.
	Count int
	// Until when they may be waited for.
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

// Scrapes waits until Prometheus has taken a sample of every pod, or attempted to. It is false when
// that did not come to be in time.
func (s *Server) Scrapes(ctx context.Context, namespaceLabel string, p Pods) bool {
	ctx, cancel := context.WithDeadline(ctx, p.Until)
	defer cancel()
	query := fmt.Sprintf("count(up{%s=%q, %s=%q})", namespaceLabel, p.Namespace, labelTrial, p.Trial)
	err := s.retry(ctx, func(ctx context.Context) (bool, error) {
		answer, _, err := s.api.Query(ctx, query, s.now())
		v, ok := answer.(model.Vector)
		return err == nil && ok && len(v) == 1 && int(v[0].Value) >= p.Count, err
	})
	return err == nil
}
