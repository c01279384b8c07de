package nfqueue

import (
	"math/rand/v2"
	"net/netip"
	"sync/atomic"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
)

// key is an address in its 16-byte form.
type key [16]byte

func keyOf(address netip.Addr) key { return address.As16() }

// links is a table in force. It is never changed, only replaced, and an index means the same link
// in all later tables.
type links struct {
	index map[key]uint32
	all   []link
}

// link is the present state of one direction.
type link struct {
	address netip.Addr
	asked   shaping.Link // normalized
	delay   int64        // nanoseconds
	jitter  int64        // nanoseconds
	// version changes when the delay or the jitter changes.
	version uint32
	// inForce reports whether the table requests the link. A link that is no longer requested is
	// kept for its packets in flight and for its counters.
	inForce bool
	state   *state
}

// state is the memory of a link, across changes of its values. Only the thread of the loop uses the
// first group.
type state struct {
	free    int64 // when the link has sent all its packets
	last    int64 // when the last packet is due
	version uint32

	packets, bytes, lost, overlimit atomic.Uint64
}

// next returns the table with the requested links. It remembers the links that are no longer
// requested.
func (l *links) next(asked map[netip.Addr]shaping.Link) *links {
	out := &links{index: make(map[key]uint32, len(l.all)+len(asked))}
	for i, old := range l.all {
		want, inForce := asked[old.address]
		changed := old
		changed.inForce = inForce
		if inForce {
			changed.set(want)
			if changed.delay != old.delay || changed.jitter != old.jitter {
				changed.version++
			}
		}
		out.index[keyOf(old.address)] = uint32(i)
		out.all = append(out.all, changed)
	}
	for address, want := range asked {
		if _, known := out.index[keyOf(address)]; known {
			continue
		}
		fresh := link{address: address, inForce: true, state: &state{}}
		fresh.set(want)
		out.index[keyOf(address)] = uint32(len(out.all))
		out.all = append(out.all, fresh)
	}
	return out
}

func (l *link) set(asked shaping.Link) {
	l.asked, l.delay, l.jitter = asked, int64(asked.Delay), int64(asked.Jitter)
}

// losses reports whether any link in force loses packets.
func (l *links) losses() bool {
	for i := range l.all {
		if l.all[i].inForce && l.all[i].asked.Loss > 0 {
			return true
		}
	}
	return false
}

// table returns the table in force, in the form that Read returns.
func (l *links) table() shaping.Table {
	out := shaping.Table{}
	for i := range l.all {
		if l.all[i].inForce {
			out = append(out, shaping.Peer{Address: l.all[i].address, In: l.all[i].asked})
		}
	}
	out = out.Normalized()
	for i := range out {
		out[i].Out = shaping.Link{} // the half of the other side
	}
	return out
}

// pass says when a packet that has arrived is due, or that it is lost. A rate acts like a link
// whose only queue is its backlog:
//
//	start = max(arrival, free); free = start + bytes/rate; due = start + delay ± jitter, not before the packet before it
func (l *link) pass(arrival int64, bytes uint32, random *rand.Rand) (due int64, ok bool) {
	s := l.state
	if l.asked.Loss > 0 && random.Float64() < l.asked.Loss {
		s.lost.Add(1)
		return 0, false
	}
	start := max(arrival, s.free)
	if start-arrival > int64(shaping.MaxBacklog) {
		s.overlimit.Add(1)
		return 0, false
	}
	s.free = start + int64(uint64(bytes)*8e9/l.asked.Rate)
	due = start + l.delay
	if l.jitter > 0 {
		due += random.Int64N(2*l.jitter+1) - l.jitter
	}
	if s.version != l.version { // another path: packets in flight on the old one do not delay those on the new one
		s.version, s.last = l.version, 0
	}
	s.last = max(due, s.last)
	return s.last, true
}

// counters of all links, with the former ones.
func (l *links) counters() map[netip.Addr]netem.Counters {
	out := make(map[netip.Addr]netem.Counters, len(l.all))
	for i := range l.all {
		s := l.all[i].state
		out[l.all[i].address] = netem.Counters{Packets: s.packets.Load(), Bytes: s.bytes.Load(), Lost: s.lost.Load(), Overlimit: s.overlimit.Load()}
	}
	return out
}
