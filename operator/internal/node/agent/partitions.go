package agent

import (
	"context"
	"fmt"
	"net/netip"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

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

// adoptDrops finds the present drops in the records of the agent before this one. It carries out
// again a drop that has no record.
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

// dropOf finds the addresses of the pods in an action.
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
