package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/netem"
)

// drop is the links that one action loses.
type drop struct {
	out, in []netip.Addr
	dropped uint64 // of all drops, when this one began
}

// drops are those in force. Several may overlap, and each ends on its own.
type drops struct {
	mu      sync.Mutex
	filter  *netem.Cut
	inForce map[string]drop // by the ID of the action
}

func (d *drops) prepare() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.filter.Prepare()
}

func (d *drops) remove() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.inForce)
	return d.filter.Remove()
}

// begin puts a drop in force at an instant. It returns when it began to do so, and when the kernel
// had applied the drop.
func (d *drops) begin(ctx context.Context, at int64, id string, lost drop) (began, taken int64, err error) {
	d.mu.Lock()
	before, err := d.packets()
	d.mu.Unlock()
	if err != nil {
		return 0, 0, err
	}
	lost.dropped = before
	if err := launcher.SleepUntil(ctx, at); err != nil {
		return 0, 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inForce[id] = lost
	return d.set()
}

// end ends a drop at an instant. It also returns how many packets were dropped since it began, by
// this drop or by another one at the same time.
func (d *drops) end(ctx context.Context, at int64, id string) (began, taken int64, packets uint64, err error) {
	if err := launcher.SleepUntil(ctx, at); err != nil {
		return 0, 0, 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	lost := d.inForce[id]
	delete(d.inForce, id)
	if began, taken, err = d.set(); err != nil {
		return began, taken, 0, err
	}
	dropped, err := d.packets()
	return began, taken, dropped - min(lost.dropped, dropped), err
}

// adopt takes over the drops that an agent before this one has recorded, which the kernel has kept.
// counted is how many packets finished drops have dropped.
func (d *drops) adopt(inForce map[string]drop, counted uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, lost := range inForce {
		lost.dropped = counted
		d.inForce[id] = lost
	}
}

// set makes the kernel drop the packets of all drops in force, and proves it by reading back. The
// caller holds d.mu.
func (d *drops) set() (began, taken int64, err error) {
	var out, in []netip.Addr
	for _, lost := range d.inForce {
		out, in = append(out, lost.out...), append(in, lost.in...)
	}
	out, in = inOrder(out), inOrder(in)
	began = launcher.Monotonic()
	if err := d.filter.Set(in, out); err != nil {
		return 0, 0, err
	}
	taken = launcher.Monotonic()
	hasIn, hasOut, err := d.filter.Cut()
	if err != nil {
		return 0, 0, fmt.Errorf("read the packet filter back: %w", err)
	}
	if !slices.Equal(inOrder(hasOut), out) || !slices.Equal(inOrder(hasIn), in) {
		return 0, 0, fmt.Errorf("packets to %v and from %v should be lost, but those to %v and from %v are", out, in, hasOut, hasIn)
	}
	return began, taken, nil
}

// packets that were dropped so far, in both directions. The caller holds d.mu.
func (d *drops) packets() (uint64, error) {
	in, out, err := d.filter.Packets()
	return in + out, err
}

// inOrder returns each address once.
func inOrder(addresses []netip.Addr) []netip.Addr {
	out := make([]netip.Addr, 0, len(addresses))
	for _, address := range addresses {
		out = append(out, address.Unmap())
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
