package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/protocol"
)

// drop is the links that one action loses.
type drop struct {
	out, in []netip.Addr
	dropped uint64 // of all drops, when this one began
}

// drops are those in force. Several may overlap; each ends for itself.
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

// begin puts a drop in force at an instant. It returns when it began to do so and when the kernel
// had taken it.
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

// end ends a drop at an instant, and tells how many packets were dropped since it began, by it or
// by another one at the same time.
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

// adopt goes on with the drops that an agent before this one has recorded; the kernel has kept
// them. Drops that are over have lost the packets in counted.
func (d *drops) adopt(inForce map[string]drop, counted uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, lost := range inForce {
		lost.dropped = counted
		d.inForce[id] = lost
	}
}

// set makes the kernel lose what all drops in force lose together, and proves it by reading back.
// The caller holds d.mu.
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

// dropLinks begins to lose packets.
func (f *faultScheduler) dropLinks(ctx context.Context, _ protocol.Run, action timeline.Action, instant int64) (record protocol.ActionRecord, err error) {
	lost, err := dropOf(action, f.directive().Network)
	if err != nil {
		return record, err
	}
	began, taken, err := f.drops.begin(ctx, instant, action.ID, lost)
	return recordAt(action, instant, began, taken), err
}

// heal ends a drop.
func (f *faultScheduler) heal(ctx context.Context, _ protocol.Run, action timeline.Action, instant int64) (record protocol.ActionRecord, err error) {
	began, taken, packets, err := f.drops.end(ctx, instant, action.Ends)
	record = recordAt(action, instant, began, taken)
	record.Packets = packets
	return record, err
}

// adoptDrops finds the present drops in the records of the agent before this one. One that it
// carried out without a record is carried out again.
func (f *faultScheduler) adoptDrops(run protocol.Run) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	lost, counted := map[string]drop{}, uint64(0)
	for _, action := range run.Actions {
		if record, recorded := f.recordedLocked(action.ID); action.Kind == timeline.Cut && recorded && record.Error == "" && !record.Skipped {
			one, err := dropOf(action, f.directiveLocked().Network)
			if err != nil {
				return err
			}
			lost[action.ID] = one
		}
	}
	for _, action := range run.Actions {
		if record, recorded := f.recordedLocked(action.ID); action.Kind == timeline.Heal && recorded {
			delete(lost, action.Ends)
			counted += record.Packets
		}
	}
	f.drops.adopt(lost, counted)
	return nil
}

// dropOf finds the addresses of the pods that an action names.
func dropOf(action timeline.Action, n *protocol.Network) (lost drop, err error) {
	peers := map[string]netip.Addr{}
	if n != nil {
		for _, peer := range n.Peers {
			peers[peer.Name] = peer.Address
		}
	}
	for names, into := range map[*[]string]*[]netip.Addr{&action.Out: &lost.out, &action.In: &lost.in} {
		for _, name := range *names {
			address, known := peers[name]
			if !known {
				return lost, fmt.Errorf("%s: the directive's network names no pod %q", action.ID, name)
			}
			*into = append(*into, address)
		}
	}
	return lost, nil
}

// recordAt gives instants of CLOCK_MONOTONIC as times of the run: against the instant that was
// planned for, on the clock that does not jump. A new estimate of the coordinator's clock between
// plan and record is no lateness; how far the estimate may be off is reported by itself
// (Report.ClockError).
func recordAt(action timeline.Action, instant, started, confirmed int64) protocol.ActionRecord {
	return protocol.ActionRecord{Started: action.At + time.Duration(started-instant), Confirmed: action.At + time.Duration(confirmed-instant)}
}
