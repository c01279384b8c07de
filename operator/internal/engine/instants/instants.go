// Package instants dates, by the clock of this process, what another clock has dated.
//
// A manager that takes over counts waits from instants that another process wrote: a manager
// before it, or the API server. Where its own clock is hours behind, such an instant lies in its
// future, and each wait would take hours longer. But nothing is dated before it happens, so that it
// happened at the latest when this process read of it.
package instants

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// kept is for how long an instant in the future is remembered. All waits are shorter.
const kept = 7 * 24 * time.Hour

// Seen remembers when this process first asked for each instant that lay in its future. The zero
// value is ready for use.
type Seen struct {
	mu    sync.Mutex
	first map[instant]time.Time
}

// instant of an object. Two objects may have the same, of different clocks.
type instant struct {
	of types.UID
	at int64
}

// Date is when something happened to an object, by the clock that shows now: at the instant at, or
// when this was first asked, if that was earlier. That clock must not step.
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
