package accuracy

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/netem/nettest"
)

const (
	sink = "sink0" // a device that drops its packets, so that only the way out is measured
	// The best of some rounds counts, since the kernel sometimes does other work.
	rounds  = 10
	packets = 2000
)

func destination(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 200, byte(i >> 8), byte(i)}) }

// TestTheCostDoesNotDependOnTheNumberOfPeers counts instructions: in the machine of hack/vm, only
// they make time pass. The costs of a packet include sending it on after its delay.
func TestTheCostDoesNotDependOnTheNumberOfPeers(t *testing.T) {
	inVirtualTime(t)
	a, _ := nettest.Pair(t, 1)
	a.Do(addSink)
	_ = cost(t, a, 1, "") // work that is done once
	t.Log("| backend | peers | a packet costs | of this the shaper |")
	for _, backend := range []shaping.Backend{shaping.EDT, shaping.Netem} {
		var least, most time.Duration
		for _, peers := range []int{1, 10, 100, 1000} {
			plain, shaped := cost(t, a, peers, ""), cost(t, a, peers, backend)
			t.Logf("| %s | %d | %.2f us | +%.2f us |", backend, peers, micro(plain), micro(shaped-plain))
			if added := shaped - plain; peers == 1 {
				least, most = added, added
			} else {
				least, most = min(least, added), max(most, added)
			}
		}
		if backend == shaping.EDT && float64(most) > 1.1*float64(least) {
			t.Errorf("%s adds from %.2f to %.2f us to a packet: more than 10 %% apart", backend, micro(least), micro(most))
		}
	}
}

func micro(d time.Duration) float64 { return d.Seconds() * 1e6 }

// cost of one packet when packets go round a number of destinations. All destinations are shaped,
// or there is no shaper.
func cost(t *testing.T, p *nettest.Pod, peers int, backend shaping.Backend) time.Duration {
	t.Helper()
	if backend != "" {
		var s netem.Shaper
		p.Do(func() (err error) {
			s, err = open(backend, sink)
			return err
		})
		defer s.Close()
		var table shaping.Table
		for i := range peers {
			table = append(table, shaping.Peer{Address: destination(i + 1), Out: shaping.Link{Delay: ms}})
		}
		if err := s.Apply(table); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Remove(); err != nil {
				t.Error(err)
			}
		}()
	}
	var best time.Duration
	p.Do(func() (err error) {
		best, err = send(peers)
		return err
	})
	return best / packets
}

func addSink() error {
	if err := netlink.LinkAdd(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: sink}}); err != nil {
		return err
	}
	link, err := netlink.LinkByName(sink)
	if err != nil {
		return err
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 200, 255, 254), Mask: net.CIDRMask(16, 32)}}
	if err := netlink.AddrAdd(link, address); err != nil {
		return fmt.Errorf("add an address to %s: %w", sink, err)
	}
	return netlink.LinkSetUp(link)
}

// send sends rounds of packets, past Go's scheduler, and returns the time of the quickest round.
// The scheduler gives the processor away for some milliseconds when a system call seems to take
// long.
func send(peers int) (time.Duration, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	to := make([]unix.RawSockaddrInet4, peers)
	for i := range to {
		to[i] = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: 9 << 8, Addr: destination(i + 1).As4()}
	}
	payload := make([]byte, length)
	var all []time.Duration
	for range 1 + rounds { // the first round fills caches
		began := time.Now()
		for i := range packets {
			_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&payload[0])), length, 0,
				uintptr(unsafe.Pointer(&to[i%peers])), unix.SizeofSockaddrInet4)
			if errno != 0 {
				return 0, errno
			}
		}
		all = append(all, time.Since(began))
	}
	return slices.Min(all[1:]), nil
}
