package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/netem/edt"
	"assay.dev/assay/operator/internal/node/netem/htb"
	"assay.dev/assay/operator/internal/node/netem/nfqueue"
	"assay.dev/assay/operator/internal/node/protocol"
)

// checkTimeout bounds the check of one backend.
const checkTimeout = 10 * time.Second

// Backends of this release, best first.
func Backends(log *slog.Logger) []Backend {
	return []Backend{
		{shaping.EDT, edt.Check, func(device string) (netem.Shaper, error) { return edt.Open(device) }},
		{shaping.Netem, htb.Check, func(device string) (netem.Shaper, error) { return htb.Open(device) }},
		{shaping.NFQueue, nfqueue.Check, func(string) (netem.Shaper, error) { return nfqueue.Open(log) }},
	}
}

// tryBackends finds out once in the pod's life which backends work here. It does so before a
// process of the system runs, which the attempt could disturb.
func (p *linkShaper) tryBackends(ctx context.Context) {
	p.mu.Lock()
	tried := p.journal.Network != nil && p.journal.Network.Tried
	p.mu.Unlock()
	if tried {
		return
	}
	report := protocol.NetworkReport{Tried: true, Refused: map[shaping.Backend]string{}}
	allowed := mayShape()
	for _, backend := range p.config.Backends {
		err := allowed
		if err == nil {
			err = try(ctx, backend)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			report.Refused[backend.Name] = err.Error()
			continue
		}
		report.Backends = append(report.Backends, backend.Name)
	}
	p.record(func(j *journal) { j.Network = &report })
}

func try(ctx context.Context, backend Backend) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return backend.Check(ctx)
}

// mayShape returns an error that names the right which this process needs to change the pod's
// network.
func mayShape() error {
	if has, err := hasCapability(unix.CAP_NET_ADMIN); err != nil || has {
		return err
	}
	return errors.New("the agent's container lacks the capability NET_ADMIN")
}

// hasCapability reports whether one of the lower 32 capabilities is effective.
func hasCapability(capability uint) (bool, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return false, fmt.Errorf("read the agent's own capabilities: %w", err)
	}
	return sets[0].Effective&(1<<capability) != 0, nil
}

// deviceTo returns the name of the device by which packets to the peers leave the pod.
func deviceTo(peers []protocol.NetworkPeer) (string, error) {
	index := 0
	var first netip.Addr
	for _, peer := range peers {
		routes, err := netlink.RouteGet(peer.Address.AsSlice())
		if err != nil || len(routes) == 0 {
			return "", fmt.Errorf("find the way to %s (%s): %w", peer.Name, peer.Address, err)
		}
		switch {
		case index == 0:
			index, first = routes[0].LinkIndex, peer.Address
		case index != routes[0].LinkIndex:
			return "", fmt.Errorf("packets to %s and to %s leave the pod by different devices; only one can be shaped", first, peer.Address)
		}
	}
	if index == 0 {
		return defaultDevice()
	}
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		return "", fmt.Errorf("find the pod's device: %w", err)
	}
	return link.Attrs().Name, nil
}

// defaultDevice is the first one that is up and not the loopback.
func defaultDevice() (string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return "", fmt.Errorf("list the pod's devices: %w", err)
	}
	for _, link := range links {
		if flags := link.Attrs().RawFlags; flags&unix.IFF_LOOPBACK == 0 && flags&unix.IFF_UP != 0 {
			return link.Attrs().Name, nil
		}
	}
	return "", errors.New("the pod has no device that is up, but for the loopback")
}
