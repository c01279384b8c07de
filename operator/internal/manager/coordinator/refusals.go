package coordinator

import (
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// refusedBurst is how many tokens for one pod from one address may be refused before further
	// ones must wait. refusedEvery is how long each further token waits. Each refusal costs the API
	// server a TokenReview. Real agents need one each minute.
	refusedBurst = 5
	refusedEvery = 10 * time.Second
	// refusedSenders bounds how many senders are remembered.
	refusedSenders = 4096
)

// sender is the key by which refusals are counted. Pods may share an address if a gateway or a mesh
// stands between them and the manager. Therefore requests that claim one pod must not delay other
// pods.
type sender struct {
	network netip.Prefix
	claimed types.UID
}

// senderOf uses the whole /64 of an IPv6 address, since a machine may choose any address in it.
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

// refusals bounds the TokenReviews that a sender can cause with bad tokens.
type refusals struct {
	mu sync.Mutex
	// until is when all refusals of a sender are forgotten. Each refusal adds refusedEvery.
	until map[sender]time.Time
}

// allow reports whether a token may be reviewed that comes from the address and claims the pod.
func (r *refusals) allow(address string, claimed types.UID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until[senderOf(address, claimed)].Sub(now) <= (refusedBurst-1)*refusedEvery
}

// note records that a token from the address for the pod was refused.
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
		clear(r.until) // so many senders are not pods, and further refusals are noted again
	}
	s := senderOf(address, claimed)
	until := r.until[s]
	if until.Before(now) {
		until = now
	}
	r.until[s] = until.Add(refusedEvery)
}
