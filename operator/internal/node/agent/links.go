package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/model/network"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/protocol"
)

// links shapes the pod's links, and knows the wanted state of each link at this instant.
type links struct {
	mu      sync.Mutex
	shaper  netem.Shaper // nil: nothing is shaped
	network protocol.Network
	worse   map[string][]timeline.LinkChange // changes that faults add, by the ID of the action
}

// shape begins to shape, or takes over the shaping of an agent before this one.
func (l *links) shape(shaper netem.Shaper, n protocol.Network, worse map[string][]timeline.LinkChange) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shaper, l.network, l.worse = shaper, n, worse
	return shaper.Apply(l.table())
}

// shaped reports whether this agent shapes.
func (l *links) shaped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shaper != nil
}

// change makes links worse, or better again, and proves it by reading back. It returns the instant
// from which on the change holds.
func (l *links) change(change func(worse map[string][]timeline.LinkChange)) (taken int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shaper == nil {
		return 0, errors.New("the pod's links are not shaped, so that they cannot be changed")
	}
	change(l.worse)
	if err := l.shaper.Apply(l.table()); err != nil {
		return 0, err
	}
	taken = launcher.Monotonic() // reading back takes time, and changes nothing
	if different := l.different(); different != "" {
		return 0, errors.New(different)
	}
	return taken, nil
}

// check reads back the shaping in force, and returns in words how it differs from the wanted one.
func (l *links) check() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shaper == nil {
		return ""
	}
	return l.different()
}

// different does the same as check, for links that are shaped. The caller holds l.mu.
func (l *links) different() string {
	got, err := l.shaper.Read()
	if err != nil {
		return fmt.Sprintf("the links cannot be read back: %v", err)
	}
	return difference(l.table(), got, l.shaper.Backend().Side(), l.network.Peers)
}

func (l *links) health() (health netem.Health, shaped bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shaper == nil {
		return health, false, nil
	}
	health, err = l.shaper.Health()
	return health, true, err
}

// remove restores what was there before the first shape.
func (l *links) remove() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shaper == nil {
		return nil
	}
	if err := l.shaper.Remove(); err != nil {
		return err
	}
	err := l.shaper.Close()
	l.shaper = nil
	return err
}

// table is the wanted shaping. The caller holds l.mu.
func (l *links) table() shaping.Table {
	return tableOf(l.network.Peers, l.shaper.Backend().Side(), l.worse)
}

// tableOf returns the links that one side shapes: those with a requested setting, with the changes
// of faults.
func tableOf(peers []protocol.NetworkPeer, side shaping.Side, worse map[string][]timeline.LinkChange) shaping.Table {
	type link struct {
		peer string
		side shaping.Side
	}
	added := map[link][]shaping.Link{}
	for _, id := range slices.Sorted(maps.Keys(worse)) { // in one order, as sums of fractions depend on it
		for _, change := range worse[id] {
			added[link{change.Peer, change.Side}] = append(added[link{change.Peer, change.Side}], change.Worse)
		}
	}
	table := shaping.Table{}
	for _, peer := range peers {
		asked := half(&shaping.Peer{Out: peer.Out, In: peer.In}, side)
		now := *asked
		for _, more := range added[link{peer.Name, side}] {
			now = network.Add(now, more)
		}
		if now == (shaping.Link{}) {
			continue
		}
		entry := shaping.Peer{Address: peer.Address}
		*half(&entry, side) = now
		table = append(table, entry)
	}
	return table
}

// half returns the half of a peer's link that a backend of that side shapes.
func half(peer *shaping.Peer, side shaping.Side) *shaping.Link {
	if side == shaping.Ingress {
		return &peer.In
	}
	return &peer.Out
}

// maxDifferences that are put into words.
const maxDifferences = 3

// difference says in words how the shaping that was read back differs from the wanted one. It is
// empty when they are equal.
func difference(want, got shaping.Table, side shaping.Side, peers []protocol.NetworkPeer) string {
	names := map[netip.Addr]string{}
	for _, peer := range peers {
		names[peer.Address.Unmap()] = peer.Name
	}
	was := map[netip.Addr]shaping.Link{}
	for _, peer := range got.Normalized() {
		was[peer.Address] = *half(&peer, side)
	}
	var wrong []string
	for _, peer := range want.Normalized() {
		asked := *half(&peer, side)
		held, there := was[peer.Address]
		delete(was, peer.Address)
		name := cmp.Or(names[peer.Address], peer.Address.String())
		switch {
		case !there:
			wrong = append(wrong, fmt.Sprintf("%s is not shaped; asked: %s", directed(name, side), inWords(asked)))
		case !same(asked, held):
			wrong = append(wrong, fmt.Sprintf("%s: asked %s, but %s holds", directed(name, side), inWords(asked), inWords(held)))
		}
	}
	for _, address := range slices.SortedFunc(maps.Keys(was), netip.Addr.Compare) {
		name := cmp.Or(names[address], address.String())
		wrong = append(wrong, fmt.Sprintf("%s is shaped (%s), which nobody asked", directed(name, side), inWords(was[address])))
	}
	if more := len(wrong) - maxDifferences; more > 0 {
		wrong = append(wrong[:maxDifferences], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(wrong, "; ")
}

func directed(peer string, side shaping.Side) string {
	if side == shaping.Ingress {
		return "the link from " + peer
	}
	return "the link to " + peer
}

func inWords(l shaping.Link) string {
	words := "delay " + l.Delay.String()
	if l.Jitter != 0 {
		words += ", jitter " + l.Jitter.String()
	}
	if l.Loss != 0 {
		words += fmt.Sprintf(", loss %.4g%%", 100*l.Loss)
	}
	if rate := l.RateOrDefault(); rate != shaping.DefaultRate {
		words += fmt.Sprintf(", rate %d bit/s", rate)
	}
	return words
}

// Kernels round times to ticks of 64 ns or to microseconds, losses to 32 bits, rates to bytes per
// second.
const (
	sameTime = 2 * time.Microsecond
	sameLoss = 1e-6
	sameRate = 1e-3
)

func same(a, b shaping.Link) bool {
	rateA, rateB := float64(a.RateOrDefault()), float64(b.RateOrDefault())
	return (a.Delay-b.Delay).Abs() <= sameTime && (a.Jitter-b.Jitter).Abs() <= sameTime &&
		max(a.Loss-b.Loss, b.Loss-a.Loss) <= sameLoss && max(rateA-rateB, rateB-rateA) <= sameRate*rateA
}
