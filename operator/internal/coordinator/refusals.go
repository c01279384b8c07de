package coordinator

import (
	"net"
	"sync"
	"time"
)

const (
	// refusedBurst is how many tokens of an address may be refused before it must wait, and
	// refusedEvery how long it waits for one more: each refusal costs the API server a TokenReview,
	// of which real agents need one each minute.
	refusedBurst = 5
	refusedEvery = 10 * time.Second
	// refusedAddresses bounds how many addresses are remembered.
	refusedAddresses = 4096
)

// refusals bound the TokenReviews that an address can cause with tokens that are not accepted.
type refusals struct {
	mu sync.Mutex
	// until is when all refusals of an address are forgotten: each adds refusedEvery.
	until map[string]time.Time
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// allow reports whether a token of the address may be looked at.
func (r *refusals) allow(address string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until[hostOf(address)].Sub(now) <= (refusedBurst-1)*refusedEvery
}

// note that a token of the address was refused.
func (r *refusals) note(address string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until == nil {
		r.until = map[string]time.Time{}
	}
	if len(r.until) >= refusedAddresses {
		for host, until := range r.until {
			if !until.After(now) {
				delete(r.until, host)
			}
		}
	}
	if len(r.until) >= refusedAddresses {
		clear(r.until) // so many addresses have no pods behind them; who is refused again is noted again
	}
	host := hostOf(address)
	until := r.until[host]
	if until.Before(now) {
		until = now
	}
	r.until[host] = until.Add(refusedEvery)
}
