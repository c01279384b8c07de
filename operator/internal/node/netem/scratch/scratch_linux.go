// Package scratch tries out a shaper on a pair of devices, in the network namespace of the calling
// thread. It makes the pair and removes it again. It changes no other device, and no packet leaves
// the pair.
package scratch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
)

// The pair, and addresses of TEST-NET-1 (RFC 5737), which no network uses. Frames go to a hardware
// address that no device has.
const (
	device = "assaytry0"
	other  = "assaytry1"
	own    = "192.0.2.1/29"
)

var (
	delayed = netip.MustParseAddr("192.0.2.2")
	plain   = netip.MustParseAddr("192.0.2.3")
	nobody  = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x01}
)

const (
	within = 5 * time.Second // for the whole attempt
	delay  = 20 * time.Millisecond
	// late is by how much the best of several packets may be late: far more than on an idle
	// machine, and far less than the delay.
	late = 15 * time.Millisecond
	// tries are enough for a second or two in which the machine does other work. A shaper that
	// works needs one or two.
	tries = 40
	size  = 1000                   // in bytes: distinguishes our packets from others
	again = 200 * time.Microsecond // between two readings of a counter
	lost  = 500 * time.Millisecond // after this time a packet counts as lost
)

// Try opens a shaper for one device and lets it delay packets to one address. The counters of the
// other device must show these packets late by the delay, and packets to another address on time.
// It needs CAP_NET_ADMIN and the shaper's own capabilities. It takes some 100 ms, at most 5 s.
func Try(ctx context.Context, open func(device string) (netem.Shaper, error)) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer handle.Close()
	pair, err := create(handle)
	if err != nil {
		return err
	}
	defer func() {
		if gone := handle.LinkDel(pair); gone != nil {
			err = errors.Join(err, fmt.Errorf("delete %s: %w", device, gone))
		}
	}()
	s, err := open(device)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Apply(shaping.Table{{Address: delayed, Out: shaping.Link{Delay: delay}}}); err != nil {
		return err
	}
	for _, to := range []struct {
		address netip.Addr
		late    time.Duration
	}{{plain, 0}, {delayed, delay}} {
		if err := measure(ctx, handle, to.address, to.late); err != nil {
			return err
		}
	}
	return s.Remove()
}

// create makes the pair. First it removes the pair of a process that was killed.
func create(handle *netlink.Handle) (netlink.Link, error) {
	if left, err := handle.LinkByName(device); err == nil {
		if err := handle.LinkDel(left); err != nil {
			return nil, fmt.Errorf("delete %s: %w", device, err)
		}
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: device}, PeerName: other}
	if err := handle.LinkAdd(pair); err != nil {
		return nil, fmt.Errorf("create a pair of veth devices: %w", err)
	}
	if err := setUp(handle, pair); err != nil {
		return nil, errors.Join(fmt.Errorf("set up the pair of veth devices: %w", err), handle.LinkDel(pair))
	}
	return pair, nil
}

func setUp(handle *netlink.Handle, pair netlink.Link) error {
	end, err := handle.LinkByName(other)
	if err != nil {
		return err
	}
	for _, link := range []netlink.Link{pair, end} {
		// Without a link-local address the kernel sends no packets of its own. An error means that
		// there is no IPv6 here, which has the same effect.
		_ = handle.LinkSetIP6AddrGenMode(link, 1)
		if err := handle.LinkSetUp(link); err != nil {
			return err
		}
	}
	address, err := netlink.ParseAddr(own)
	if err != nil {
		return err
	}
	if err := handle.AddrAdd(pair, address); err != nil {
		return err
	}
	for _, a := range []netip.Addr{delayed, plain} {
		neighbour := &netlink.Neigh{LinkIndex: pair.Attrs().Index, State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: nobody}
		if err := handle.NeighAdd(neighbour); err != nil {
			return err
		}
	}
	return nil
}

// measure sends packets to the address until one arrives as late as wanted. No packet may be
// earlier.
func measure(ctx context.Context, handle *netlink.Handle, to netip.Addr, want time.Duration) error {
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9)))
	if err != nil {
		return fmt.Errorf("send a packet by %s: %w", device, err)
	}
	defer conn.Close()
	best := time.Duration(0)
	for range tries {
		took, err := pass(ctx, handle, conn)
		switch {
		case err != nil:
			return err
		case took < want:
			return fmt.Errorf("a packet that is to be delayed by %v passed after %v", want, took)
		case took <= want+late:
			return nil
		case best == 0 || took < best:
			best = took
		}
	}
	return fmt.Errorf("the best of %d packets that are to be delayed by %v passed after %v", tries, want, best)
}

// pass sends one packet and returns how long it took to the other end: an upper bound.
func pass(ctx context.Context, handle *netlink.Handle, conn *net.UDPConn) (time.Duration, error) {
	before, err := arrived(handle)
	if err != nil {
		return 0, err
	}
	sent := time.Now()
	if _, err := conn.Write(make([]byte, size)); err != nil {
		return 0, fmt.Errorf("send a packet by %s: %w", device, err)
	}
	ticker := time.NewTicker(again)
	defer ticker.Stop()
	for {
		now, err := arrived(handle)
		took := time.Since(sent)
		switch {
		case err != nil:
			return 0, err
		case now-before >= size:
			return took, nil
		case took > lost:
			return 0, fmt.Errorf("a packet from %s did not arrive at %s within %v", device, other, lost)
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for a packet from %s to %s: %w", device, other, ctx.Err())
		case <-ticker.C:
		}
	}
}

// arrived is how many bytes the other end has received.
func arrived(handle *netlink.Handle) (uint64, error) {
	end, err := handle.LinkByName(other)
	if err != nil {
		return 0, fmt.Errorf("read device %s: %w", other, err)
	}
	if end.Attrs().Statistics == nil {
		return 0, fmt.Errorf("read device %s: the kernel gave no statistics", other)
	}
	return end.Attrs().Statistics.RxBytes, nil
}
