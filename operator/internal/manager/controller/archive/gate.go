package archive

import (
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/store"
)

const (
	// retryFirst and retryLast bound the wait before a store that failed is asked again; it doubles
	// from failure to failure.
	retryFirst = 2 * time.Second
	retryLast  = time.Minute
	// retryAlone is the wait of what failed for a reason of its own.
	retryAlone = 20 * time.Second
)

// Gates keep a store that failed from being asked again for each of many trials: one asks, the
// others wait. They are shared by the controllers of this package.
type Gates struct {
	Clock clock.PassiveClock

	mu     sync.Mutex
	stores map[string]*gate
}

type gate struct {
	failures int
	next     time.Time // before which no worker asks
	asked    bool      // a worker is asking, which takes long with a store that hangs
}

// closed says how long to wait before the store may be asked; 0: now. Anyone who is let through
// keeps the others out until it has told how it went.
func (g *Gates) closed(name string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stores[name]
	if s == nil || s.failures == 0 {
		return 0
	}
	if left := s.next.Sub(g.Clock.Now()); left > 0 {
		return left
	}
	if s.asked {
		return wait(s.failures)
	}
	s.asked = true
	return 0
}

// done tells how it went, and after a failure how long to wait. A failure that is not the whole
// store's keeps no other worker from it.
func (g *Gates) done(name string, err error) time.Duration {
	var problem *store.Problem
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.stores[name]; s != nil {
		s.asked = false
	}
	switch {
	case err == nil:
		delete(g.stores, name)
		return 0
	case !errors.As(err, &problem) || problem.Reason == v1alpha1.ReasonStoreCorrupted || problem.Reason == v1alpha1.ReasonStoreNotConfigured:
		return retryAlone
	}
	if g.stores == nil {
		g.stores = map[string]*gate{}
	}
	s := g.stores[name]
	if s == nil {
		s = &gate{}
		g.stores[name] = s
	}
	s.failures++
	now := g.Clock.Now()
	s.next = now.Add(wait(s.failures))
	return s.next.Sub(now)
}

// wait after so many failures in a row.
func wait(failures int) time.Duration {
	return min(retryFirst<<min(failures-1, 10), retryLast)
}
