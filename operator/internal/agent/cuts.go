package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/timeline"
)

// cut is the links that one action loses.
type cut struct {
	out, in []netip.Addr
	dropped uint64 // of all cuts, when this one began
}

// cuts are those in force. Several may overlap; each ends for itself.
type cuts struct {
	mu      sync.Mutex
	cut     *netem.Cut
	inForce map[string]cut // by the ID of the action
}

func (c *cuts) prepare() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut.Prepare()
}

func (c *cuts) remove() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.inForce)
	return c.cut.Remove()
}

// begin puts a cut in force at an instant. It returns when it began to do so and when the kernel
// had taken it.
func (c *cuts) begin(ctx context.Context, at int64, id string, lost cut) (began, taken int64, err error) {
	c.mu.Lock()
	before, err := c.packets()
	c.mu.Unlock()
	if err != nil {
		return 0, 0, err
	}
	lost.dropped = before
	if err := launcher.SleepUntil(ctx, at); err != nil {
		return 0, 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inForce[id] = lost
	return c.set()
}

// end ends a cut at an instant, and tells how many packets were dropped since it began, by it or by
// another one at the same time.
func (c *cuts) end(ctx context.Context, at int64, id string) (began, taken int64, packets uint64, err error) {
	if err := launcher.SleepUntil(ctx, at); err != nil {
		return 0, 0, 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	lost := c.inForce[id]
	delete(c.inForce, id)
	if began, taken, err = c.set(); err != nil {
		return began, taken, 0, err
	}
	dropped, err := c.packets()
	return began, taken, dropped - min(lost.dropped, dropped), err
}

// adopt goes on with the cuts that an agent before this one has recorded; the kernel has kept them.
// Packets that were dropped in cuts that are over count for those.
func (c *cuts) adopt(inForce map[string]cut, counted uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, lost := range inForce {
		lost.dropped = counted
		c.inForce[id] = lost
	}
}

// set makes the kernel lose what all cuts in force lose together, and proves it by reading back.
// The caller holds c.mu.
func (c *cuts) set() (began, taken int64, err error) {
	var out, in []netip.Addr
	for _, lost := range c.inForce {
		out, in = append(out, lost.out...), append(in, lost.in...)
	}
	out, in = inOrder(out), inOrder(in)
	began = launcher.Monotonic()
	if err := c.cut.Set(in, out); err != nil {
		return 0, 0, err
	}
	taken = launcher.Monotonic()
	hasIn, hasOut, err := c.cut.Cut()
	if err != nil {
		return 0, 0, fmt.Errorf("read the cut back: %w", err)
	}
	if !slices.Equal(inOrder(hasOut), out) || !slices.Equal(inOrder(hasIn), in) {
		return 0, 0, fmt.Errorf("packets to %v and from %v should be lost, but those to %v and from %v are", out, in, hasOut, hasIn)
	}
	return began, taken, nil
}

// packets that were dropped so far, in both directions. The caller holds c.mu.
func (c *cuts) packets() (uint64, error) {
	in, out, err := c.cut.Packets()
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

// cutLinks begins to lose packets.
func (a *Agent) cutLinks(ctx context.Context, action timeline.Action, instant int64) (record protocol.ActionRecord, err error) {
	lost, err := cutOf(action, a.directive().Network)
	if err != nil {
		return record, err
	}
	began, taken, err := a.cuts.begin(ctx, instant, action.ID, lost)
	return recordAt(action, instant, began, taken), err
}

// heal ends a cut.
func (a *Agent) heal(ctx context.Context, action timeline.Action, instant int64) (record protocol.ActionRecord, err error) {
	began, taken, packets, err := a.cuts.end(ctx, instant, action.Ends)
	record = recordAt(action, instant, began, taken)
	record.Packets = packets
	return record, err
}

// adoptCuts finds out what is cut, from what an agent before this one has recorded. One that it
// carried out without a record is carried out again.
func (a *Agent) adoptCuts(run protocol.Run) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	lost, counted := map[string]cut{}, uint64(0)
	for _, action := range run.Actions {
		if record, recorded := a.recordedLocked(action.ID); action.Kind == timeline.Cut && recorded && record.Error == "" && !record.Skipped {
			one, err := cutOf(action, a.directiveLocked().Network)
			if err != nil {
				return err
			}
			lost[action.ID] = one
		}
	}
	for _, action := range run.Actions {
		if record, recorded := a.recordedLocked(action.ID); action.Kind == timeline.Heal && recorded {
			delete(lost, action.Ends)
			counted += record.Packets
		}
	}
	a.cuts.adopt(lost, counted)
	return nil
}

// cutOf finds the addresses of the pods that an action names.
func cutOf(action timeline.Action, n *protocol.Network) (lost cut, err error) {
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
