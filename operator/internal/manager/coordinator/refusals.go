package coordinator

import (
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// refusedBurst is how many tokens for one pod from one address may be refused before others
	// must wait. refusedEvery is how long they wait for one more. Each refusal costs the API server
	// a TokenReview; real agents need one each minute.
	refusedBurst = 5
	refusedEvery = 10 * time.Second
	// refusedSenders bounds how many senders are remembered.
	refusedSenders = 4096
)

// sender is whom refusals are counted for. Pods may share an address, where a gateway or a mesh
// stands between them and the manager. Requests in the name of one pod do not delay others.
type sender struct {
	network netip.Prefix
	claimed types.UID
}

// senderOf takes an IPv6 address for its whole /64, any address of which a machine may choose.
func senderOf(address string, claimed types.UID) sender {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return sender{claimed: claimed}
	}
	host, bits := parsed.Addr().Unmap(), 64
	if host.Is4() {
		bits = 32
	}
	network, _ := host.WithZone("").Prefix(bits) // both lengths are possible
	return sender{network, claimed}
}

// refusals bound the TokenReviews that a sender can cause with tokens that are not accepted.
type refusals struct {
	mu sync.Mutex
	// until is when all refusals of a sender are forgotten: each adds refusedEvery.
	until map[sender]time.Time
}

// allow reports whether a token of the address for a pod may be looked at.
func (r *refusals) allow(address string, claimed types.UID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until[senderOf(address, claimed)].Sub(now) <= (refusedBurst-1)*refusedEvery
}

// note that a token of the address for a pod was refused.
func (r *refusals) note(address string, claimed types.UID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until == nil {
		r.until = map[sender]time.Time{}
	}
	if len(r.until) >= refusedSenders {
		for s, until := range r.until {
			if !until.After(now) {
				delete(r.until, s)
			}
		}
	}
	if len(r.until) >= refusedSenders {
		clear(r.until) // so many senders have no pods behind them; who is refused again is noted again
	}
	s := senderOf(address, claimed)
	until := r.until[s]
	if until.Before(now) {
		until = now
	}
	r.until[s] = until.Add(refusedEvery)
}
