package netem

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// inNewNetwork moves the test to a network namespace of its own, with loopback up. Its thread is
// never unlocked, so it ends with the test.
func inNewNetwork(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("a new network namespace needs root: %v", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		t.Fatalf("set loopback up: %v", err)
	}
}

func open(t *testing.T) *Silence {
	t.Helper()
	s, err := OpenSilence(7443)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func tables(t *testing.T) []string {
	t.Helper()
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	list, err := conn.ListTables()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, table := range list {
		names = append(names, table.Name)
	}
	return names
}

func TestSilenceCanBeRepeated(t *testing.T) {
	inNewNetwork(t)
	s := open(t)
	expect := func(step string, wantTable, wantArmed bool) {
		t.Helper()
		armed, err := s.Armed()
		if got := slices.Contains(tables(t), tableName); got != wantTable || armed != wantArmed || err != nil {
			t.Errorf("after %s: table %v, armed %v (%v); want %v and %v", step, got, armed, err, wantTable, wantArmed)
		}
	}
	steps := []struct {
		name         string
		do           func() error
		table, armed bool
	}{
		{"a check", s.Check, false, false},
		{"a removal of nothing", s.Remove, false, false},
		{"the preparation", s.Prepare, true, false},
		{"a second preparation", s.Prepare, true, false},
		{"arming", s.Arm, true, true},
		{"a preparation of what is armed", s.Prepare, true, true},
		{"a check of what is armed", s.Check, true, true},
		{"disarming", s.Disarm, true, false},
		{"disarming again", s.Disarm, true, false},
		{"arming again", s.Arm, true, true},
		{"the removal", s.Remove, false, false},
		{"a second removal", s.Remove, false, false},
		{"disarming of nothing", s.Disarm, false, false},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		expect(step.name, step.table, step.armed)
	}
	if err := s.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := s.Arm(); err != nil {
		t.Fatal(err)
	}
	// Another process takes over, as the next incarnation of an agent does.
	next := open(t)
	if armed, err := next.Armed(); !armed || err != nil {
		t.Errorf("the next incarnation reads %v (%v), want that the silence is armed", armed, err)
	}
	if err := next.Remove(); err != nil {
		t.Error(err)
	}
	expect("a removal by the next incarnation", false, false)
}

func TestArmingIsQuick(t *testing.T) {
	inNewNetwork(t)
	s := open(t)
	var took []time.Duration
	for range 50 {
		if err := s.Prepare(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := s.Arm(); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		if err := s.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(took)
	t.Logf("arming took: median %v, 90%% %v, worst %v", took[25], took[45], took[49])
	if took[25] > 50*time.Millisecond {
		t.Errorf("arming took %v in half of the cases", took[25])
	}
}

// A planned silence begins on its own. The last packet that passes is sent before its instant, and
// no later one passes.
func TestAPlannedSilenceBeginsAtItsInstant(t *testing.T) {
	inNewNetwork(t)
	s := open(t)
	peer := beyond(t)
	if err := s.Prepare(); err != nil {
		t.Fatal(err)
	}
	sender, err := net.Dial("udp", peer+":9")
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	if _, err := sender.Write([]byte("x")); err != nil {
		t.Fatalf("a packet before any silence: %v", err)
	}
	instant := time.Now().Add(50 * time.Millisecond)
	if err := s.ArmAt(instant); err != nil {
		t.Fatal(err)
	}
	var lastPassed, firstDropped time.Time
	for deadline := instant.Add(5 * time.Second); firstDropped.IsZero(); time.Sleep(20 * time.Microsecond) {
		before := time.Now()
		_, err := sender.Write([]byte("x")) // EPERM: dropped on its way out
		after := time.Now()
		switch {
		case err == nil:
			lastPassed = before
		case errors.Is(err, syscall.EPERM):
			firstDropped = after
		default:
			t.Fatal(err)
		}
		if after.After(deadline) {
			t.Fatal("the silence never began")
		}
	}
	if lastPassed.After(instant) || firstDropped.Before(instant) {
		t.Errorf("a packet passed %v after the instant, or one was dropped %v before it", lastPassed.Sub(instant), instant.Sub(firstDropped))
	}
	t.Logf("the last packet passed %v before the instant, the first was dropped %v after it", instant.Sub(lastPassed), firstDropped.Sub(instant))
	if err := s.Disarm(); err != nil {
		t.Fatal(err)
	}
	if _, err := sender.Write([]byte("x")); err != nil {
		t.Errorf("a packet after the silence: %v", err)
	}
	// An instant in the past means now.
	if err := s.ArmAt(time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := sender.Write([]byte("x")); !errors.Is(err, syscall.EPERM) {
		t.Errorf("a packet in a silence that was to begin an hour ago: %v, want EPERM", err)
	}
}

// beyond makes a device and returns an address that would be reached through it.
func beyond(t *testing.T) string {
	t.Helper()
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "here"}, PeerName: "there"}
	if err := netlink.LinkAdd(link); err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 9, 8, 1), Mask: net.CIDRMask(24, 32)}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"here", "there"} {
		end, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(end)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return "10.9.8.2"
}

func TestLoopbackAndTheAgentsOwnPacketsPassASilence(t *testing.T) {
	inNewNetwork(t)
	// Packets to 192.0.2.0/24 leave by one end of a veth pair. The other end is not used.
	way := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "out0"}, PeerName: "nobody0"}
	if err := netlink.LinkAdd(way); err != nil {
		t.Fatal(err)
	}
	address, err := netlink.ParseAddr("192.0.2.1/24")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(netlink.AddrAdd(way, address), netlink.LinkSetUp(way)); err != nil {
		t.Fatal(err)
	}
	s := open(t)
	if err := errors.Join(s.Prepare(), s.Arm()); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		to      [4]byte
		mark    int
		wantErr error
	}{
		"a packet of the system":            {[4]byte{192, 0, 2, 2}, 0, unix.EPERM}, // the kernel's error for a sender whose packet a rule dropped
		"a packet with another mark":        {[4]byte{192, 0, 2, 2}, 7, unix.EPERM},
		"a packet of the agent":             {[4]byte{192, 0, 2, 2}, Mark, nil},
		"a packet to the pod itself":        {[4]byte{127, 0, 0, 1}, 0, nil},
		"a packet to the pod's own address": {[4]byte{192, 0, 2, 1}, 0, nil},
	}
	for name, tc := range cases {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, tc.mark)
		if err == nil {
			err = unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: 9, Addr: tc.to})
		}
		unix.Close(fd)
		if !errors.Is(err, tc.wantErr) {
			t.Errorf("%s: %v, want %v", name, err, tc.wantErr)
		}
	}
}

func TestOrphansAreDestroyedAndOwnSocketsAreNot(t *testing.T) {
	inNewNetwork(t)
	listener, err := listenHere()
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, server := connectHere(t, listener)
	// One end of a connection is closed while the other is open. Then the connection stays in the
	// kernel without a file, here as FIN_WAIT2.
	client.Close()
	if before := orphans(t); before == 0 {
		t.Fatal("there is no orphan to destroy")
	}
	if err := DestroyOrphans(); err != nil {
		t.Fatal(err)
	}
	if after := orphans(t); after != 0 {
		t.Errorf("%d orphans are left", after)
	}
	server.Close()
	second, other := connectHere(t, listener)
	defer second.Close()
	defer other.Close()
	if err := DestroyOrphans(); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Write([]byte("x")); err != nil {
		t.Errorf("a connection of this process was destroyed: %v", err)
	}
}

// listenHere listens in this thread's namespace: the runtime creates a socket on the calling
// thread.
func listenHere() (net.Listener, error) { return net.Listen("tcp4", "127.0.0.1:0") }

func connectHere(t *testing.T, listener net.Listener) (client, server net.Conn) {
	t.Helper()
	client, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// orphans counts the TCP sockets without a file, in any state.
func orphans(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/net/tcp", os.Getpid(), syscall.Gettid()))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for i, line := range slices.Collect(strings.Lines(string(content))) {
		var slot, local, remote, state, queues, timer, retransmissions string
		var uid, timeout, inode int
		if i == 0 {
			continue
		}
		if _, err := fmt.Sscan(line, &slot, &local, &remote, &state, &queues, &timer, &retransmissions, &uid, &timeout, &inode); err != nil {
			t.Fatal(err)
		}
		if inode == 0 {
			count++
		}
	}
	return count
}
