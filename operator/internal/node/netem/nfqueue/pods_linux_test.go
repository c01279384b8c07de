package nfqueue

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/node/netem/nettest"
	"golang.org/x/sys/unix"
)

// shaper opens a shaper in the pod.
func shaper(t testing.TB, p *nettest.Pod) *Shaper {
	t.Helper()
	var s *Shaper
	p.Do(func() (err error) {
		s, err = Open(slog.New(slog.NewTextHandler(testLog{t}, nil)))
		return err
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

type testLog struct{ t testing.TB }

func (l testLog) Write(line []byte) (int, error) {
	l.t.Logf("%s", line)
	return len(line), nil
}

// pair makes two pods with many addresses each, so that one pod can be many peers.
func pair(t testing.TB) (a, b *nettest.Pod) {
	t.Helper()
	return nettest.Pair(t, 10)
}

func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func dialUDP(t testing.TB, p *nettest.Pod, from netip.Addr, to net.Addr) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	p.Do(func() (err error) {
		c, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), to.(*net.UDPAddr))
		return err
	})
	t.Cleanup(func() { c.Close() })
	return c
}

// arrives is how long an expected packet may take on a busy machine.
const arrives = time.Minute

// udpTook sends one packet one way. It must arrive.
func udpTook(t testing.TB, sender, receiver *nettest.Pod, from, to netip.Addr) time.Duration {
	t.Helper()
	return udpTookWithin(t, sender, receiver, from, to, arrives)
}

// udpLost sends one packet one way. It must not arrive. If it does, udpLost returns how long it
// took.
func udpLost(t testing.TB, sender, receiver *nettest.Pod, from, to netip.Addr) time.Duration {
	t.Helper()
	return udpTookWithin(t, sender, receiver, from, to, 200*time.Millisecond)
}

// udpTookWithin sends one packet one way. It returns 0 if the packet did not arrive in that time.
func udpTookWithin(t testing.TB, sender, receiver *nettest.Pod, from, to netip.Addr, within time.Duration) time.Duration {
	t.Helper()
	listener := receiver.ListenUDP(to)
	defer listener.Close()
	conn := dialUDP(t, sender, from, listener.LocalAddr())
	defer conn.Close()
	began := time.Now()
	if _, err := conn.Write([]byte("x")); err != nil {
		return 0
	}
	_ = listener.SetReadDeadline(began.Add(within))
	if _, err := listener.Read(make([]byte, 1)); err != nil {
		return 0
	}
	return time.Since(began)
}

// tcp connects the two pods; the receiver's end is second.
func tcp(t testing.TB, sender, receiver *nettest.Pod, from, to netip.Addr) (net.Conn, net.Conn) {
	t.Helper()
	var listener net.Listener
	receiver.Do(func() (err error) {
		listener, err = net.Listen("tcp", netip.AddrPortFrom(to, 0).String())
		return err
	})
	defer listener.Close()
	var client net.Conn
	sender.Do(func() (err error) {
		dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), Timeout: 10 * time.Second}
		client, err = dialer.DialContext(context.Background(), "tcp", listener.Addr().String())
		return err
	})
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// spread of measured durations, sorted.
type spread []time.Duration

func (s spread) at(quantile float64) time.Duration {
	slices.Sort(s)
	return s[min(int(float64(len(s))*quantile), len(s)-1)]
}

func (s spread) String() string {
	return fmt.Sprintf("min %v, p50 %v, p99 %v, max %v of %d", s.at(0), s.at(0.5), s.at(0.99), s.at(1), len(s))
}

// ruleset is the whole content of the pod's packet filter, without the generation number.
func ruleset(t testing.TB, p *nettest.Pod) string {
	t.Helper()
	var out []byte
	p.Do(func() error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, kind := range []int{unix.NFT_MSG_GETTABLE, unix.NFT_MSG_GETCHAIN, unix.NFT_MSG_GETSET, unix.NFT_MSG_GETRULE} {
			request := make([]byte, headerLength)
			putHeader(request, len(request), unix.NFNL_SUBSYS_NFTABLES<<8|kind, unix.NLM_F_DUMP, 1, 0)
			if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
				return err
			}
			for done := false; !done; {
				buffer := make([]byte, 64<<10)
				n, _, err := unix.Recvfrom(fd, buffer, 0)
				if err != nil {
					return err
				}
				for buffer = buffer[:n]; len(buffer) >= headerLength; {
					length := int(uint32(buffer[0]) | uint32(buffer[1])<<8 | uint32(buffer[2])<<16)
					if done = buffer[4] == unix.NLMSG_DONE && buffer[5] == 0; !done {
						out = append(out, buffer[headerLength:length]...)
					}
					buffer = buffer[min(len(buffer), (length+3)&^3):]
				}
			}
		}
		queues, err := os.ReadFile("/proc/thread-self/net/netfilter/nfnetlink_queue")
		out = append(out, queues...)
		return err
	})
	return string(out)
}
