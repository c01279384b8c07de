package netem

import (
	"net/netip"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
)

// Shaper shapes the links of the network namespace that it was opened in. Its methods are not safe
// for concurrent use.
//
// As far as the backend allows, its effects are in the namespace and not in the process. If the
// first Shaper's process dies, a second Shaper adopts the existing shaping by Apply, and removes it
// by Remove.
type Shaper interface {
	// Backend returns the kind of this backend.
	Backend() shaping.Backend
	// Apply makes the namespace hold exactly this table. Equal links stay as they are. It changes
	// other links in place, so that packets in flight keep their time. When it returns, every later
	// packet is shaped as requested. After an error, Remove can clean the namespace.
	Apply(shaping.Table) error
	// Read reads the table in force back from the kernel, Normalized, with only the half of each
	// Peer that the backend's side uses. It is nil if no link is shaped.
	Read() (shaping.Table, error)
	// Counters of each link since it was first applied, by address.
	Counters() (map[netip.Addr]Counters, error)
	// Health reports drops and delays that no table requested.
	Health() (Health, error)
	// Remove restores the state before the first Apply, and proves it by reading back. It waits for
	// packets in flight for the longest delay.
	Remove() error
	// Close releases the files of the process. If the backend acts in the process, that ends the
	// shaping: packets of peers are then dropped.
	Close() error
}

// Counters of one link.
type Counters struct {
	// Packets and Bytes that were delayed and sent on. A super-packet (GSO) counts once.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	// Lost packets, by the link's own loss.
	Lost uint64 `json:"lost"`
	// Overlimit packets were dropped because they would have waited longer than MaxBacklog for the
	// rate.
	Overlimit uint64 `json:"overlimit"`
}

// Health reports drops and delays that no table requested. In a trial that counts, Dropped is zero
// and Late is small.
type Health struct {
	// Dropped packets without a request: a queue was full, or a timestamp was beyond the horizon.
	Dropped uint64 `json:"dropped"`
	// DroppedWhy names the counters that are not zero.
	DroppedWhy string `json:"droppedWhy,omitempty"`
	// LateP99 is the 99th percentile of how late the shaper released packets, and Late the maximum.
	// Both are zero if the kernel releases the packets, since it does not report that.
	LateP99 time.Duration `json:"lateP99"`
	Late    time.Duration `json:"late"`
}
