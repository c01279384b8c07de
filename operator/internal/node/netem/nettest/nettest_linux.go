// Package nettest gives tests network namespaces that are linked like pods, and ways to send
// packets between them. It is for tests only.
package nettest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Device is the name of the interface in every pod.
const Device = "eth0"

// InVM reports whether the test runs in the machine of hack/vm, where no part of the kernel may be
// missing.
func InVM() bool { return os.Getenv("ASSAY_VM") != "" }

// Need skips the test when the present kernel lacks a part. In the machine of hack/vm it fails the
// test.
func Need(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case InVM():
		t.Fatal(err)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPERM):
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}

// Pod is a network namespace of its own, like that of a pod, with a thread in it.
type Pod struct {
	t      testing.TB
	number int
	work   chan func()
}

func newPod(t testing.TB, number int) *Pod {
	t.Helper()
	p := &Pod{t: t, number: number, work: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends here
		err := unix.Unshare(unix.CLONE_NEWNET)
		ready <- err
		if err != nil {
			return
		}
		for f := range p.work {
			f()
		}
	}()
	if err := <-ready; err != nil {
		t.Skipf("a new network namespace needs root: %v", err)
	}
	t.Cleanup(func() { close(p.work) })
	p.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		return errors.Join(err, netlink.LinkSetUp(lo))
	})
	return p
}

// Do runs f on the thread in the pod's namespace.
func (p *Pod) Do(f func() error) {
	p.t.Helper()
	if err := p.Try(f); err != nil {
		p.t.Fatal(err)
	}
}

// Try does the same as Do, but returns the error.
func (p *Pod) Try(f func() error) error {
	done := make(chan error)
	p.work <- func() { done <- f() }
	return <-done
}

// IPv4 and IPv6 are a pod's addresses, numbered from 1.
func (p *Pod) IPv4(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(77 + p.number), byte(i >> 8), byte(i)})
}

// IPv6 is like IPv4.
func (p *Pod) IPv6(i int) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf("fd77::%x:%x", p.number+1, i))
}

// Pair makes two pods with a veth link between them, and waits until packets pass. Each has the
// given number of addresses in both families.
func Pair(t testing.TB, addresses int) (a, b *Pod) {
	t.Helper()
	pods := []*Pod{newPod(t, 0), newPod(t, 1)}
	var thread int
	pods[1].Do(func() error { thread = unix.Gettid(); return nil })
	pods[0].Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: Device, TxQLen: 1000}, PeerName: Device, PeerNamespace: netlink.NsPid(thread),
		})
	})
	for _, p := range pods {
		p.Do(func() error { return p.setUp(addresses) })
	}
	for _, to := range []netip.Addr{pods[1].IPv4(1), pods[1].IPv6(1)} {
		for end := time.Now().Add(time.Minute); Took(pods[0], pods[1], to, 200*time.Millisecond) == 0; {
			if time.Now().After(end) {
				t.Fatalf("no packet passes to %s within a minute", to)
			}
		}
	}
	return pods[0], pods[1]
}

func (p *Pod) setUp(addresses int) error {
	link, err := netlink.LinkByName(Device)
	if err != nil {
		return err
	}
	for i := 1; i <= addresses; i++ {
		for _, a := range []netip.Addr{p.IPv4(i), p.IPv6(i)} {
			bits := 8
			if a.Is6() {
				bits = 64
			}
			one := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}, Flags: unix.IFA_F_NODAD}
			if err := netlink.AddrAdd(link, one); err != nil {
				return err
			}
		}
	}
	return netlink.LinkSetUp(link)
}

// ListenUDP opens a socket with a large receive buffer on one of the pod's addresses.
func (p *Pod) ListenUDP(at netip.Addr) *net.UDPConn {
	p.t.Helper()
	var c *net.UDPConn
	p.Do(func() (err error) {
		c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 0)))
		return err
	})
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 256<<20) })
	}
	p.t.Cleanup(func() { c.Close() })
	return c
}

// DialUDP opens a socket that sends to the address.
func (p *Pod) DialUDP(to net.Addr) *net.UDPConn {
	p.t.Helper()
	var c *net.UDPConn
	p.Do(func() (err error) {
		c, err = net.DialUDP("udp", nil, to.(*net.UDPAddr))
		return err
	})
	p.t.Cleanup(func() { c.Close() })
	return c
}

// Took sends one packet and returns its time on the way; 0 if it did not arrive within the limit.
func Took(from, to *Pod, address netip.Addr, limit time.Duration) time.Duration {
	from.t.Helper()
	listener := to.ListenUDP(address)
	defer listener.Close()
	conn := from.DialUDP(listener.LocalAddr())
	defer conn.Close()
	began := time.Now()
	if _, err := conn.Write([]byte("x")); err != nil {
		return 0
	}
	_ = listener.SetReadDeadline(began.Add(limit))
	if _, err := listener.Read(make([]byte, 1)); err != nil {
		return 0
	}
	return time.Since(began)
}

// TCP connects the pods; the first connection is from's end.
func TCP(from, to *Pod, address netip.Addr) (net.Conn, net.Conn) {
	from.t.Helper()
	var listener net.Listener
	to.Do(func() (err error) {
		listener, err = net.Listen("tcp", netip.AddrPortFrom(address, 0).String())
		return err
	})
	defer listener.Close()
	var client net.Conn
	from.Do(func() (err error) {
		client, err = net.DialTimeout("tcp", listener.Addr().String(), 20*time.Second)
		return err
	})
	server, err := listener.Accept()
	if err != nil {
		from.t.Fatal(err)
	}
	from.t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// Qdiscs is the kernel's description of the interface's qdiscs, classes and filters, without
// counters, and its gso_max_segs.
func (p *Pod) Qdiscs() string {
	p.t.Helper()
	var out strings.Builder
	p.Do(func() error {
		link, err := netlink.LinkByName(Device)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "gso_max_segs %d\n", link.Attrs().GSOMaxSegs)
		qdiscs, err := netlink.QdiscList(link)
		if err != nil {
			return err
		}
		for _, q := range qdiscs {
			q.Attrs().Statistics = nil
			if h, is := q.(*netlink.Htb); is {
				h.DirectPkts, h.DirectQlen = 0, nil
			}
			fmt.Fprintf(&out, "%s %+v\n", q.Type(), q)
			classes, err := netlink.ClassList(link, q.Attrs().Handle)
			if err != nil {
				return err
			}
			for _, c := range classes {
				c.Attrs().Statistics = nil
				fmt.Fprintf(&out, "  %s %+v\n", c.Type(), c)
			}
			filters, err := netlink.FilterList(link, q.Attrs().Handle)
			if err != nil {
				return err
			}
			for _, f := range filters {
				fmt.Fprintf(&out, "  %s %s\n", f.Type(), f.Attrs())
			}
		}
		return nil
	})
	return out.String()
}
