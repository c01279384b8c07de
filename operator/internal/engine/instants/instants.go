// Package instants translates instants of another clock into instants of this process's clock.
//
// A manager that takes over counts waits from instants that another process wrote: an earlier
// manager, or the API server. If its own clock is hours behind, such an instant lies in its future,
// and each wait would take hours longer. But an event happens before it is written. So it happened
// no later than when this process first read of it.
package instants

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// kept is how long an instant in the future is remembered. All waits are shorter.
const kept = 7 * 24 * time.Hour

// Seen remembers when this process first asked for each instant that lay in its future. The zero
// value is ready for use.
type Seen struct {
	mu    sync.Mutex
	first map[instant]time.Time
}

// instant of an object. Two objects may have the same instant, from different clocks.
type instant struct {
	of types.UID
	at int64
}

// Date returns when an event of an object happened, by the clock that shows now. That is at, or the
// time of the first call for this event if at was later. The clock must not step.
func (s *Seen) Date(of types.UID, at, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := instant{of, at.UnixNano()}
	if first, known := s.first[key]; known {
		return first
	}
	if !at.After(now) {
		return at
	}
	if s.first == nil {
		s.first = map[instant]time.Time{}
	}
	maps.DeleteFunc(s.first, func(_ instant, first time.Time) bool { return now.Sub(first) > kept })
	s.first[key] = now
	return now
}
