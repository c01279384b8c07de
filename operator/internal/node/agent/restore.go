package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"assay.dev/assay/operator/internal/node/protocol"
)

// restoreNetwork undoes all changes to the pod's network, also those of an earlier agent. It ends
// drops and isolation first, so that no packet that was held back leaves. Without NET_ADMIN the
// agent cannot have changed anything. It also looks for unknown changes, as far as this kernel can
// list them.
func (p *linkShaper) restoreNetwork() error {
	if allowed := mayShape(); allowed != nil {
		return nil //nolint:nilerr // there is nothing to put back, and no right to look
	}
	p.mu.Lock()
	filtered, shaped := p.journal.Filtered, p.journal.Shaped
	p.mu.Unlock()
	var wrong []error
	for _, remove := range []func() error{p.drops.remove, p.isolation.remove} {
		if err := remove(); err != nil && filtered {
			wrong = append(wrong, err)
		}
	}
	switch {
	case p.links.shaped():
		wrong = append(wrong, p.links.remove())
	case shaped != "" || leftShaped():
		for _, backend := range p.config.Backends {
			if err := p.removeShaping(backend); err != nil && (backend.Name == shaped || shaped == "" && leftShaped()) {
				wrong = append(wrong, err)
			}
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("put the pod's network back: %w", err)
	}
	if shaped != "" || filtered {
		p.record(func(j *journal) { j.Shaped, j.Filtered = "", false })
	}
	return nil
}

// removeShaping removes the shaping of an agent before this one.
func (p *linkShaper) removeShaping(backend Backend) error {
	var peers []protocol.NetworkPeer
	if n := p.directive().Network; n != nil {
		peers = n.Peers
	}
	device, err := deviceTo(peers)
	if err != nil {
		return err
	}
	shaper, err := backend.Open(device)
	if err != nil {
		return err
	}
	return errors.Join(shaper.Remove(), shaper.Close())
}

// The backends are recognised by these: the handle of a root qdisc, and the beginning of a table's
// name.
const (
	shapingHandle = 0xa55a << 16
	shapingTable  = "assay_delay"
)

// leftShaped looks for remains of a backend, without opening one.
func leftShaped() bool {
	links, _ := netlink.LinkList() // an agent without the right to list links cannot have changed them
	for _, link := range links {
		qdiscs, _ := netlink.QdiscList(link)
		if slices.ContainsFunc(qdiscs, func(q netlink.Qdisc) bool { return q.Attrs().Handle == shapingHandle }) {
			return true
		}
	}
	conn, err := nftables.New()
	if err != nil {
		return false
	}
	tables, _ := conn.ListTables()
	return slices.ContainsFunc(tables, func(t *nftables.Table) bool { return strings.HasPrefix(t.Name, shapingTable) })
}
