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
	// retryFirst and retryLast bound the wait before a failed store is asked again. The wait
	// doubles after each failure.
	retryFirst = 2 * time.Second
	retryLast  = time.Minute
	// retryAlone is the wait after a failure that does not concern the whole store.
	retryAlone = 20 * time.Second
)

// Gates let one worker at a time ask a store that has failed. The workers of all other trials wait.
// The controllers of this package share the gates.
type Gates struct {
	Clock clock.PassiveClock

	mu     sync.Mutex
	stores map[string]*gate
}

type gate struct {
	failures int
	next     time.Time // no worker asks before this
	asked    bool      // a worker is asking, which takes long with a store that hangs
}

// closed returns how long to wait before the store may be asked; 0: ask now. A worker that may ask
// keeps the others waiting until it calls done.
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

// done records the outcome, and returns how long to wait after a failure. A failure that does not
// concern the whole store lets other workers ask.
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

// wait returns the wait after so many failures in a row.
func wait(failures int) time.Duration {
	return min(retryFirst<<min(failures-1, 10), retryLast)
}
