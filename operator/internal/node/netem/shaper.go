package netem

import (
	"net/netip"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
)

// Shaper shapes the links of the network namespace that it was opened in. Its methods are not safe
// for concurrent use.
//
// Its effects are in the namespace, not in the process, as far as the backend allows. A second
// Shaper, opened after the first one's process died, adopts what it finds by Apply and removes it
// by Remove.
type Shaper interface {
	// Backend that this is.
	Backend() shaping.Backend
	// Apply makes the namespace hold exactly this table: links that are the same stay as they are,
	// others are changed in place, so that packets in flight keep their time. It returns when every
	// packet sent from then on is treated as asked. An error leaves a namespace that Remove can
	// clean.
	Apply(shaping.Table) error
	// Read reads back from the kernel what holds, Normalized, with only the half of each Peer that
	// the backend's side uses. Nothing shaped: nil.
	Read() (shaping.Table, error)
	// Counters of each link since it was first applied, by address.
	Counters() (map[netip.Addr]Counters, error)
	// Health tells what the shaper did that it was not asked to.
	Health() (Health, error)
	// Remove restores what was there before the first Apply, and proves it by reading back. It
	// waits for packets in flight for the longest delay.
	Remove() error
	// Close gives up what the process holds. For a backend that acts in the process, it stops
	// shaping: packets of peers are then dropped.
	Close() error
}

// Counters of one link.
type Counters struct {
	// Packets and Bytes that were delayed and sent on. A super-packet (GSO) counts once.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	// Lost by the link's own loss.
	Lost uint64 `json:"lost"`
	// Overlimit packets were dropped because they would have waited longer than MaxBacklog for the
	// rate.
	Overlimit uint64 `json:"overlimit"`
}

// Health is what a shaper did that it was not asked to. In a trial that counts, Dropped is zero and
// Late is small.
type Health struct {
	// Dropped packets that no link asked for: a queue was full, a timestamp lay beyond the horizon.
	Dropped uint64 `json:"dropped"`
	// DroppedWhy names the counters that are not zero.
	DroppedWhy string `json:"droppedWhy,omitempty"`
	// LateP99 is the 99th percentile of how late the shaper released packets, and Late the latest.
	// Zero where the kernel releases them and does not say.
	LateP99 time.Duration `json:"lateP99"`
	Late    time.Duration `json:"late"`
}
