package edt

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
)

// inNewNetwork moves the test to a network namespace of its own. Its thread is never unlocked, so
// it ends with the test.
func inNewNetwork(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("a new network namespace needs root: %v", err)
	}
}

// pods are two network namespaces with a veth pair: "eth0" in each. The test's thread is in the
// first namespace, whose device is shaped.
type pods struct {
	t           *testing.T
	first       netns.NsHandle
	second      netns.NsHandle
	link        netlink.Link // the first's eth0
	four, six   netip.Addr   // the second's addresses
	four2, six2 netip.Addr   // further addresses of the second
}

func newPods(t *testing.T) *pods {
	t.Helper()
	inNewNetwork(t)
	p := &pods{
		t: t, four: netip.MustParseAddr("198.51.100.2"), four2: netip.MustParseAddr("198.51.100.3"),
		six: netip.MustParseAddr("2001:db8::2"), six2: netip.MustParseAddr("2001:db8::3"),
	}
	var err error
	if p.first, err = netns.Get(); err != nil {
		t.Fatal(err)
	}
	if p.second, err = netns.New(); err != nil {
		t.Fatal(err)
	}
	if err := netns.Set(p.first); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.first.Close(); p.second.Close() })
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(p.second)}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	up := func(addresses ...string) {
		t.Helper()
		device, err := netlink.LinkByName("eth0")
		if err == nil {
			err = netlink.LinkSetUp(device)
		}
		for _, a := range addresses {
			address, parseErr := netlink.ParseAddr(a)
			if parseErr != nil {
				t.Fatal(parseErr)
			}
			address.Flags = unix.IFA_F_NODAD
			err = errors.Join(err, netlink.AddrAdd(device, address))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	up("198.51.100.1/24", "2001:db8::1/64")
	p.inSecond(func() { up(p.four.String()+"/24", p.four2.String()+"/24", p.six.String()+"/64", p.six2.String()+"/64") })
	if p.link, err = netlink.LinkByName("eth0"); err != nil {
		t.Fatal(err)
	}
	// One packet each way resolves the neighbours, and shows that the devices are up.
	for _, address := range []netip.Addr{p.four, p.four2, p.six, p.six2} {
		r := p.listen(address)
		r.receive(p.dial(address), 1, 0)
		r.conn.Close()
	}
	return p
}

// inSecond calls f in the second namespace. Sockets that f opens stay there.
func (p *pods) inSecond(f func()) {
	p.t.Helper()
	if err := netns.Set(p.second); err != nil {
		p.t.Fatal(err)
	}
	defer func() {
		if err := netns.Set(p.first); err != nil {
			p.t.Fatal(err)
		}
	}()
	f()
}

// shaper opens a shaper for the first pod. It skips the test on kernels without fq.
func (p *pods) shaper() *Shaper {
	p.t.Helper()
	s := p.open()
	err := s.Apply(nil)
	if errors.Is(err, ErrNoFQ) && os.Getenv("ASSAY_VM") == "" {
		p.t.Skip("the kernel has no fq qdisc")
	}
	if err := errors.Join(err, s.Remove()); err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *pods) open() *Shaper {
	p.t.Helper()
	s, err := Open("eth0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { s.Close() })
	return s
}

// receiver is a UDP socket of the second pod.
type receiver struct {
	t    *testing.T
	conn *net.UDPConn
}

func (p *pods) listen(address netip.Addr) *receiver {
	p.t.Helper()
	r := &receiver{t: p.t}
	p.inSecond(func() {
		var err error
		if r.conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 5000))); err != nil {
			p.t.Fatal(err)
		}
	})
	raw, err := r.conn.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20) })
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { r.conn.Close() })
	return r
}

// dial returns a socket of the first pod that sends to the receiver at the address.
func (p *pods) dial(address netip.Addr) *net.UDPConn {
	p.t.Helper()
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 5000)))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	return conn
}

// send sends numbered packets at an interval, and returns when each was sent.
func send(t *testing.T, conn *net.UDPConn, first, n int, every time.Duration) []time.Time {
	t.Helper()
	var sent []time.Time
	for i := range n {
		if i > 0 && every > 0 {
			time.Sleep(every)
		}
		sent = append(sent, time.Now())
		if _, err := conn.Write([]byte{byte((first + i) >> 8), byte(first + i)}); err != nil {
			t.Fatal(err)
		}
	}
	return sent
}

// arrival is a packet that arrived.
type arrival struct {
	number int
	at     time.Time
}

// taking starts to receive n packets. It returns a function that waits for them and returns them.
func (r *receiver) taking(n int) func() []arrival {
	r.t.Helper()
	var list []arrival
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 2000)
		for range n {
			if err = r.conn.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
				return
			}
			if _, err = r.conn.Read(buffer); err != nil {
				return
			}
			list = append(list, arrival{int(buffer[0])<<8 | int(buffer[1]), time.Now()})
		}
	}()
	return func() []arrival {
		r.t.Helper()
		<-done
		if err != nil {
			r.t.Fatalf("after %d of %d packets: %v", len(list), n, err)
		}
		return list
	}
}

// receive sends packets, receives them all, and returns how long each was on its way. They have to
// arrive in order.
func (r *receiver) receive(from *net.UDPConn, n int, every time.Duration) []time.Duration {
	r.t.Helper()
	taken := r.taking(n)
	sent := send(r.t, from, 0, n, every)
	var took []time.Duration
	for i, a := range taken() {
		if a.number != i {
			r.t.Fatalf("packet %d came in the place of %d", a.number, i)
		}
		took = append(took, a.at.Sub(sent[i]))
	}
	return took
}

func out(peers map[netip.Addr]shaping.Link) shaping.Table {
	var table shaping.Table
	for address, link := range peers {
		table = append(table, shaping.Peer{Address: address, Out: link})
	}
	return table
}

// transfer sends size bytes by TCP to the address and checks their arrival. It returns the
// connection's data from the sender's kernel.
func (p *pods) transfer(to netip.Addr, size int, within time.Duration) *unix.TCPInfo {
	p.t.Helper()
	sender, receiver := p.connect(to)
	deadline := time.Now().Add(within)
	if err := errors.Join(sender.SetDeadline(deadline), receiver.SetDeadline(deadline)); err != nil {
		p.t.Fatal(err)
	}
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(i % 251)
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := sender.Write(want)
		wrote <- errors.Join(err, sender.CloseWrite())
	}()
	got, err := io.ReadAll(receiver)
	if err := errors.Join(<-wrote, err); err != nil {
		p.t.Fatalf("transfer of %d bytes: %v, after %d", size, err, len(got))
	}
	if !bytes.Equal(got, want) {
		p.t.Fatalf("other bytes arrived than were sent: %d of %d", len(got), size)
	}
	var info *unix.TCPInfo
	raw, err := sender.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return info
}

// connect returns both ends of a TCP connection from the first pod to the second.
func (p *pods) connect(to netip.Addr) (sender, receiver *net.TCPConn) {
	p.t.Helper()
	var listener *net.TCPListener
	var err error
	p.inSecond(func() { listener, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(to, 0))) })
	if err != nil {
		p.t.Fatal(err)
	}
	defer listener.Close()
	if sender, err = net.DialTCP("tcp", nil, listener.Addr().(*net.TCPAddr)); err != nil {
		p.t.Fatal(err)
	}
	if err := listener.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
		p.t.Fatal(err)
	}
	if receiver, err = listener.AcceptTCP(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { sender.Close(); receiver.Close() })
	return sender, receiver
}
