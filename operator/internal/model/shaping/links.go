// Package shaping describes the wanted network between two pods, as data. A Link has the delay,
// loss and rate of one direction. A Table has all links of one pod. A Backend applies a table at
// the sender or at the receiver. The package is pure.
package shaping

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Bounds of a link.
const (
	// MaxDelay is the longest delay of a link, with jitter.
	MaxDelay = 10 * time.Second
	// DefaultRate is the rate of a link without one, in bits per second. No socket and no pod is
	// charged for delayed packets, so only rate x delay bounds the packets in flight.
	DefaultRate = 1_000_000_000
	// MaxBacklog is how long a packet may wait for its link's rate before it is dropped.
	MaxBacklog = 50 * time.Millisecond
	// MaxPeers is the most peers in one table.
	MaxPeers = 32_768
)

// Link is one direction between two pods.
type Link struct {
	// Delay added to every packet. From 0 to MaxDelay.
	Delay time.Duration `json:"delay,omitempty"`
	// Jitter is the greatest difference between a packet's delay and Delay, in both directions,
	// uniformly distributed. From 0 to Delay. Packets keep their order, as on one path.
	Jitter time.Duration `json:"jitter,omitempty"`
	// Loss is the probability that a packet is lost. From 0 to 1.
	Loss float64 `json:"loss,omitempty"`
	// Rate in bits per second; 0: DefaultRate.
	Rate uint64 `json:"rate,omitempty"`
}

// Peer is another pod, with the two directions between it and this pod. A backend that shapes
// packets leaving the pod (Egress) uses Out. A backend that shapes arriving packets (Ingress) uses
// In. All pods of a mesh must use backends of the same side, or a link would be delayed twice or
// not at all.
type Peer struct {
	// Address of the peer. An IPv4-mapped IPv6 address is the IPv4 address.
	Address netip.Addr `json:"address"`
	Out     Link       `json:"out"`
	In      Link       `json:"in"`
}

// Table has all links of one pod, one Peer for each address. Packets from and to other addresses
// are never changed.
type Table []Peer

// Validate returns all mistakes in the table.
func (t Table) Validate() error {
	var wrong []error
	if len(t) > MaxPeers {
		wrong = append(wrong, fmt.Errorf("%d peers; at most %d", len(t), MaxPeers))
	}
	seen := map[netip.Addr]bool{}
	for _, peer := range t {
		address := peer.Address.Unmap()
		switch {
		case !address.IsValid():
			wrong = append(wrong, errors.New("a peer has no address"))
		case address.IsLoopback(), address.IsUnspecified(), address.IsMulticast():
			wrong = append(wrong, fmt.Errorf("peer %s: not an address of another pod", address))
		case seen[address]:
			wrong = append(wrong, fmt.Errorf("peer %s: listed twice", address))
		}
		seen[address] = true
		for _, direction := range []struct {
			name string
			link Link
		}{{"out", peer.Out}, {"in", peer.In}} {
			if err := direction.link.Validate(); err != nil {
				wrong = append(wrong, fmt.Errorf("peer %s: %s: %w", address, direction.name, err))
			}
		}
	}
	return errors.Join(wrong...)
}

// Validate returns the mistake in the link.
func (l Link) Validate() error {
	switch {
	case l.Delay < 0 || l.Delay > MaxDelay:
		return fmt.Errorf("delay %v: must be from 0s to %v", l.Delay, MaxDelay)
	case l.Jitter < 0 || l.Jitter > l.Delay || l.Delay+l.Jitter > MaxDelay:
		return fmt.Errorf("jitter %v: must be from 0s to the delay (%v), and both together at most %v", l.Jitter, l.Delay, MaxDelay)
	case !(l.Loss >= 0 && l.Loss <= 1): // this also rejects NaN
		return fmt.Errorf("loss %v: must be from 0 to 1", l.Loss)
	default:
		return nil
	}
}

// RateOrDefault returns the rate, or DefaultRate if there is none.
func (l Link) RateOrDefault() uint64 { return cmp.Or(l.Rate, DefaultRate) }

// Normalized returns a copy in order of address, with addresses unmapped and rates filled in. Two
// tables with the same meaning become equal.
func (t Table) Normalized() Table {
	out := slices.Clone(t)
	for i := range out {
		out[i].Address = out[i].Address.Unmap()
		out[i].Out.Rate, out[i].In.Rate = out[i].Out.RateOrDefault(), out[i].In.RateOrDefault()
	}
	slices.SortFunc(out, func(a, b Peer) int { return a.Address.Compare(b.Address) })
	return out
}

// Longest returns the longest delay of any packet, with jitter and backlog. After it, a packet that
// is sent now has arrived.
func (t Table) Longest() time.Duration {
	var longest time.Duration
	for _, peer := range t {
		longest = max(longest, peer.Out.Delay+peer.Out.Jitter, peer.In.Delay+peer.In.Jitter)
	}
	return longest + MaxBacklog
}
