package agent_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// These tests take place in a network of their own. The test runs itself again in a new network
// namespace, the hub, where coordinator and peer are. The pod has another one. A veth pair joins
// them.
//
//	hub 10.99.0.1  veth ---------- veth  10.99.0.2 pod
const (
	hubIP      = "10.99.0.1"
	podIP      = "10.99.0.2"
	beatPort   = 7000
	beatPause  = 5 * time.Millisecond
	insideName = "ASSAY_TEST_IN_HUB"
)

func init() {
	roles["enter"] = enterNetwork
	roles["beat"] = playBeat
	roles["hold"] = func() { time.Sleep(time.Hour) }
}

// tooLate is the prefix of an error of a test in the hub that looked too late or too early.
const tooLate = "looked at the wrong time: "

// inVM reports whether this is the machine of hack/vm. Its time passes only by its own
// instructions, so an action there is late only because of a defect.
func inVM() bool { return os.Getenv("ASSAY_VM") != "" }

// within returns the bound of an instant: vm in the VM, else shared. On a machine that others
// share, only a defect exceeds shared.
func within(shared, vm time.Duration) time.Duration {
	if inVM() {
		return vm
	}
	return shared
}

// inHub runs the rest of the test in a new network namespace, and returns false in the process
// outside. The outer test passes if the inner one passed, is skipped with the reason of the inner
// one, and fails otherwise. A test that looked at the wrong time runs up to three times: a machine
// that others share may stand still for a whole fault.
func inHub(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideName) != "" {
		return true
	}
	t.Parallel() // it waits, most of the time
	for attempt := 1; ; attempt++ {
		cmd := exec.Command(self(t), "-test.run="+onlyThis(t.Name()), "-test.v", "-test.count=1")
		cmd.Env = append(os.Environ(), insideName+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		output, err := cmd.CombinedOutput()
		if errors.Is(err, os.ErrPermission) {
			t.Skip("a new network namespace needs root")
		}
		t.Logf("in the hub:\n%s", output)
		outcome, why := outcomeOf(output, t.Name())
		switch {
		case err != nil && attempt < 3 && !inVM() && bytes.Contains(output, []byte(tooLate)):
			continue
		case err != nil:
			t.Errorf("in the hub: %v", err)
		case outcome == "SKIP":
			t.Skip(why)
		case outcome != "PASS":
			t.Error("in the hub nothing of this name ran")
		}
		return false
	}
}

// onlyThis is the flag -run for one test or part.
func onlyThis(name string) string { return "^" + strings.ReplaceAll(name, "/", "$/^") + "$" }

// outcomeOf reads the outcome of a test from the output of go test -v: PASS, FAIL, SKIP with the
// reason, or "" if it did not run.
func outcomeOf(output []byte, name string) (outcome, why string) {
	lines := strings.Split(string(output), "\n")
	for i, line := range lines {
		verdict, found := strings.CutPrefix(strings.TrimSpace(line), "--- ")
		outcome, of, _ := strings.Cut(verdict, ": ")
		if of, _, _ = strings.Cut(of, " ("); !found || of != name {
			continue
		}
		if outcome == "SKIP" && i+1 < len(lines) {
			_, why, _ = strings.Cut(lines[i+1], ": ")
		}
		return outcome, why
	}
	return "", ""
}

func TestOutcomeOf(t *testing.T) {
	for name, tc := range map[string]struct{ output, outcome, why string }{
		"passed":         {"=== RUN   TestX\n--- PASS: TestX (0.00s)\nPASS\n", "PASS", ""},
		"failed":         {"--- FAIL: TestX (1.00s)\n", "FAIL", ""},
		"skipped":        {"--- SKIP: TestX (0.00s)\n    mesh_test.go:175: this kernel has no EDT: no fq\nPASS\n", "SKIP", "this kernel has no EDT: no fq"},
		"another passed": {"--- PASS: TestXY (0.00s)\n    --- PASS: TestXY/TestX (0.00s)\n", "", ""},
		"nothing ran":    {"testing: warning: no tests to run\nPASS\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if outcome, why := outcomeOf([]byte(tc.output), "TestX"); outcome != tc.outcome || why != tc.why {
				t.Errorf("outcomeOf = %q, %q; want %q, %q", outcome, why, tc.outcome, tc.why)
			}
		})
	}
	if got := onlyThis("TestX/EDT"); got != "^TestX$/^EDT$" {
		t.Errorf("onlyThis = %q", got)
	}
}

// late ends a test in the hub that looked at the wrong time.
func late(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Fatalf(tooLate+format, args...)
}

// enterNetwork turns into another role in the network namespace of another process.
func enterNetwork() {
	runtime.LockOSThread()
	target, err := netns.GetFromPath("/proc/" + os.Getenv("NETWORK_OF") + "/ns/net")
	if err == nil {
		err = netns.Set(target)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "enter the pod's network:", err)
		os.Exit(1)
	}
	os.Setenv(roleVariable, os.Getenv("NEXT_ROLE"))
	fmt.Fprintln(os.Stderr, syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
	os.Exit(1)
}

// playBeat is a server that sends a byte to every connection again and again.
func playBeat() {
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(beatPort))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("listening")
	for {
		conn, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		go func() {
			for {
				if _, err := conn.Write([]byte{'.'}); err != nil {
					return
				}
				time.Sleep(beatPause)
			}
		}()
	}
}

// networkedPod is a pod in a network namespace of its own with one beating replica.
type networkedPod struct {
	*pod
	holder   int
	handle   netns.NsHandle
	original string // ruleset
	capture  *capture
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newNetworkedPod(t *testing.T) (*fakeCoordinator, *networkedPod) {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	must(t, err)
	must(t, netlink.LinkSetUp(lo))
	holder := exec.Command(self(t))
	holder.Env = append(os.Environ(), roleVariable+"=hold")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	must(t, holder.Start())
	t.Cleanup(func() { holder.Process.Kill(); holder.Wait() })
	handle, err := netns.GetFromPid(holder.Process.Pid)
	must(t, err)
	t.Cleanup(func() { handle.Close() })
	join(t, handle)

	c := newFakeCoordinator(t, hubIP+":0")
	p := &networkedPod{pod: newPod(t, c), holder: holder.Process.Pid, handle: handle}
	p.offset = "2s"
	p.somebodyElsesRules()
	p.original = p.ruleset()
	_, port, err := net.SplitHostPort(c.address)
	must(t, err)
	p.capture = startCapture(t, port)
	p.enter("launcher", "NAME=replica")
	p.agentProcess = p.enter("agent")
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: []string{self(t)}, Env: []string{roleVariable + "=beat", insideName + "="}}}
		d.Gates = []protocol.Gate{{Log: "^listening", Container: "replica"}}
		d.Start = true
	})
	c.await("is ready", func(r protocol.Report) bool { return r.Ready && r.ClockError > 0 })
	return c, p
}

// join connects the hub to the pod.
func join(t *testing.T, pod netns.NsHandle) {
	t.Helper()
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "hub0"}, PeerName: "pod0"}))
	inside, err := netlink.NewHandleAt(pod, unix.NETLINK_ROUTE)
	must(t, err)
	defer inside.Close()
	peer, err := netlink.LinkByName("pod0")
	must(t, err)
	must(t, netlink.LinkSetNsFd(peer, int(pod)))
	here, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	must(t, err)
	defer here.Close()
	for _, end := range []struct {
		handle *netlink.Handle
		name   string
		ip     string
	}{{here, "hub0", hubIP}, {inside, "pod0", podIP}, {inside, "lo", ""}} {
		link, err := end.handle.LinkByName(end.name)
		must(t, err)
		if end.ip != "" {
			address, err := netlink.ParseAddr(end.ip + "/24")
			must(t, err)
			must(t, end.handle.AddrAdd(link, address))
		}
		must(t, end.handle.LinkSetUp(link))
	}
}

// enter starts a program in the pod's network.
func (p *networkedPod) enter(role string, env ...string) *exec.Cmd {
	return p.play("enter", append(env, "NEXT_ROLE="+role, "NETWORK_OF="+strconv.Itoa(p.holder))...)
}

func (p *networkedPod) filter() *nftables.Conn {
	p.t.Helper()
	conn, err := nftables.New(nftables.WithNetNSFd(int(p.handle)))
	must(p.t, err)
	return conn
}

// somebodyElsesRules adds rules that must still be there after the agent.
func (p *networkedPod) somebodyElsesRules() {
	p.t.Helper()
	conn := p.filter()
	accept := nftables.ChainPolicyAccept
	table := conn.AddTable(&nftables.Table{Name: "mesh", Family: nftables.TableFamilyINet})
	chain := conn.AddChain(&nftables.Chain{Name: "in", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter, Policy: &accept})
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}})
	must(p.t, conn.Flush())
}

// ruleset is the whole content of the pod's packet filter, as text.
func (p *networkedPod) ruleset() string {
	p.t.Helper()
	conn := p.filter()
	var text strings.Builder
	tables, err := conn.ListTables()
	must(p.t, err)
	for _, table := range tables {
		fmt.Fprintf(&text, "table %d %s flags %d\n", table.Family, table.Name, table.Flags)
		chains, err := conn.ListChainsOfTableFamily(table.Family)
		must(p.t, err)
		for _, chain := range chains {
			if chain.Table.Name != table.Name {
				continue
			}
			fmt.Fprintf(&text, "chain %s\n", chain.Name)
			rules, err := conn.GetRules(table, chain)
			must(p.t, err)
			for _, rule := range rules {
				for _, e := range rule.Exprs {
					fmt.Fprintf(&text, "%T %+v\n", e, e)
				}
			}
		}
	}
	return text.String()
}

// peer is a connection to the replica.
type peer struct {
	conn net.Conn
	mu   sync.Mutex
	last time.Time // of the last beat
	err  error     // that ended it
}

func dialPeer(t *testing.T) *peer {
	t.Helper()
	deadline := time.Now().Add(patience)
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(podIP, strconv.Itoa(beatPort)), time.Second)
	for err != nil && time.Now().Before(deadline) { // a replica that has just been started may not listen yet
		time.Sleep(5 * time.Millisecond)
		conn, err = net.DialTimeout("tcp", net.JoinHostPort(podIP, strconv.Itoa(beatPort)), time.Second)
	}
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	p := &peer{conn: conn}
	go func() {
		buffer := make([]byte, 64)
		for {
			_, err := conn.Read(buffer)
			p.mu.Lock()
			if p.err = err; err == nil {
				p.last = time.Now()
			}
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *peer) look() (last time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, p.err
}

func (p *peer) awaitBeat(t *testing.T, after time.Time) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		if last, _ := p.look(); last.After(after) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no beat in %v", patience)
		}
		time.Sleep(time.Millisecond)
	}
}

// capture sees every packet that leaves the pod, except ARP, IPv6 neighbour discovery and packets
// to the coordinator.
type capture struct {
	mu      sync.Mutex
	packets []packet
}

type packet struct {
	at    time.Time // by the kernel
	flags string
}

func startCapture(t *testing.T, coordinatorPort string) *capture {
	t.Helper()
	port, err := strconv.Atoi(coordinatorPort)
	must(t, err)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0x0008) // ETH_P_IP, in network order
	must(t, err)
	must(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
	must(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}))
	c := &capture{}
	done := make(chan struct{})
	stopped := make(chan struct{})
	t.Cleanup(func() { close(done); <-stopped; unix.Close(fd) })
	go func() {
		defer close(stopped)
		data, control := make([]byte, 2048), make([]byte, 128)
		for {
			select {
			case <-done:
				return
			default:
			}
			n, controls, _, _, err := unix.Recvmsg(fd, data, control, 0)
			if err != nil {
				continue
			}
			c.add(data[:n], control[:controls], port)
		}
	}()
	return c
}

// add keeps a packet from the pod: IPv4 and TCP headers give its source and flags.
func (c *capture) add(data, control []byte, coordinatorPort int) {
	if len(data) < 40 || net.IP(data[12:16]).String() != podIP {
		return
	}
	p := packet{flags: fmt.Sprintf("protocol %d", data[9])}
	if header := int(data[0]&15) * 4; data[9] == unix.IPPROTO_TCP && len(data) >= header+14 {
		if int(binary.BigEndian.Uint16(data[header+2:])) == coordinatorPort {
			return
		}
		p.flags = "TCP"
		for bit, name := range []string{"FIN", "SYN", "RST"} {
			if data[header+13]&(1<<bit) != 0 {
				p.flags += " " + name
			}
		}
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return
	}
	for _, m := range messages {
		if m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			p.at = time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.packets = append(c.packets, p)
}

// between lists the packets that left the pod in a stretch of time.
func (c *capture) between(from, to time.Time) []packet {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []packet
	for _, p := range c.packets {
		if p.at.After(from) && p.at.Before(to) {
			found = append(found, p)
		}
	}
	return found
}

func isTimeout(err error) bool {
	var timed net.Error
	return errors.As(err, &timed) && timed.Timeout()
}

// hubResets is the count of reset connections where the peer is.
func hubResets(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("/proc/thread-self/net/snmp")
	must(t, err)
	var rows [][]string
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == "Tcp:" {
			rows = append(rows, fields)
		}
	}
	return rows[1][slices.Index(rows[0], "EstabResets")]
}

// crash is a fault of a pod: a kill and a revival.
func crash(killAt, reviveAt time.Duration) []timeline.Action {
	return []timeline.Action{
		{ID: "crash/kill/replica", Fault: "crash", Kind: timeline.Kill, At: killAt},
		{ID: "crash/revive/replica", Fault: "crash", Kind: timeline.Revive, At: reviveAt, Ends: "crash/kill/replica"},
	}
}

func TestAKilledPodFallsSilentAtItsInstantAndComesBack(t *testing.T) {
	if !inHub(t) {
		return
	}
	c, p := newNetworkedPod(t)
	witness := dialPeer(t)
	witness.awaitBeat(t, time.Now())
	before := hubResets(t)
	run := runSoon(c, 500*time.Millisecond, crash(200*time.Millisecond, 2*time.Second)...)
	zero := time.Unix(0, run.ZeroUnixNanos)
	killAt, reviveAt := zero.Add(200*time.Millisecond), zero.Add(2*time.Second)

	killed := c.await("has killed", func(r protocol.Report) bool { return len(r.Actions) >= 1 })
	record := killed.Actions[0]
	if record.Error != "" || record.Confirmed < record.Planned-alarmEarly || record.Confirmed < record.Started {
		t.Fatalf("the record is %+v; want silence at about the instant and death after both", record)
	}
	if (record.Started - record.Planned).Abs() > within(500*time.Millisecond, 10*time.Millisecond) {
		late(t, "the record is %+v; want silence at about the instant", record)
	}
	if since := time.Since(killAt); since > 1200*time.Millisecond {
		late(t, "a fault takes 1.8 s, and the kill was known %v after its instant", since)
	}
	if killed.Containers[0].State != protocol.StateHeld || !killed.Containers[0].Expected {
		t.Errorf("the container is %+v, want it Held as expected", killed.Containers[0])
	}
	t.Logf("silence %v before the instant, last process reaped %v after it", record.Planned-record.Started, record.Confirmed-record.Planned)
	off := killed.ClockOffset + 2*time.Second
	lastBeat, _ := witness.look()
	early := killAt.Sub(lastBeat)
	t.Logf("the peer's last beat came %v before the instant", early)

	// The peer gets no message: neither an end of its connection, nor a refusal of a new one.
	conn, dialErr := net.DialTimeout("tcp", witness.conn.RemoteAddr().String(), 300*time.Millisecond)
	_, writeErr := witness.conn.Write([]byte("hello?"))
	time.Sleep(time.Until(reviveAt.Add(-50 * time.Millisecond)))
	_, lookErr := witness.look()
	after := hubResets(t)
	if left := time.Until(reviveAt); left < 0 {
		late(t, "the last look at the silent pod was %v after its end", -left)
	}
	if !isTimeout(dialErr) {
		t.Errorf("a new connection to the silent pod: %v, %v; want a timeout", conn, dialErr)
	}
	if writeErr != nil {
		t.Errorf("writing to the silent pod: %v, want the kernel to keep trying", writeErr)
	}
	if lookErr != nil {
		t.Errorf("the peer's connection to the silent pod ended: %v", lookErr)
	}
	if after != before {
		t.Errorf("connections were reset where the peer is: %s before, %s after", before, after)
	}
	silent := zero.Add(record.Started)
	if len(p.capture.between(time.Time{}, silent)) == 0 {
		t.Error("no packet of the pod was seen before the kill; the capture proves nothing")
	}
	// The pod's clock is known only within its error.
	for _, packet := range p.capture.between(silent.Add(3*time.Millisecond+killed.ClockError), reviveAt.Add(-20*time.Millisecond-killed.ClockError)) {
		t.Errorf("a packet (%s) left the silent pod %v after the silence began, by clocks that are %v apart at most", packet.flags, packet.at.Sub(silent), killed.ClockError)
	}
	if off.Abs() > within(500*time.Millisecond, 10*time.Millisecond) || early.Abs() > within(500*time.Millisecond, 50*time.Millisecond) {
		late(t, "the offset of the pod's clock is reported as %v, want about -2s; the peer's last beat came %v before the instant of the kill, by the coordinator's clock",
			killed.ClockOffset, early)
	}

	back := c.await("has revived", func(r protocol.Report) bool { return len(r.Actions) == 2 && r.Ready })
	revival := back.Actions[1]
	if revival.Error != "" || revival.Started < revival.Planned || revival.Confirmed < revival.Started || back.Containers[0].Starts != 2 {
		t.Errorf("the revival's record is %+v with %d starts", revival, back.Containers[0].Starts)
	}
	t.Logf("revived %v after the instant, running %v after it", revival.Started-revival.Planned, revival.Confirmed-revival.Planned)
	dialPeer(t).awaitBeat(t, time.Now())
	// The peer's later packets on the old connection get a reset, as from a machine that was
	// started again. They do not get the FIN of the killed process.
	deadline := time.Now().Add(patience)
	for {
		if _, err := witness.look(); errors.Is(err, syscall.ECONNRESET) {
			break
		} else if err != nil || time.Now().After(deadline) {
			t.Errorf("after the revival the peer's old connection ended with %v, want a reset", err)
			break
		}
		time.Sleep(time.Millisecond)
	}

	c.direct(func(d *protocol.Directive) { d.Finish = true })
	end := c.await("is finished", func(r protocol.Report) bool { return r.Finished })
	if end.Failure != "" {
		t.Errorf("the agent failed: %s", end.Failure)
	}
	if got := p.ruleset(); got != p.original {
		t.Errorf("the packet filter is\n%s\nand was\n%s", got, p.original)
	}
}

func TestARunGoesOnWhileTheCoordinatorIsDead(t *testing.T) {
	if !inHub(t) {
		return
	}
	c, p := newNetworkedPod(t)
	witness := dialPeer(t)
	run := runSoon(c, 400*time.Millisecond, crash(200*time.Millisecond, 600*time.Millisecond)...)
	version := c.directive.Version
	c.await("knows the run", func(r protocol.Report) bool { return r.DirectiveVersion == version })
	c.die()
	zero := time.Unix(0, run.ZeroUnixNanos)
	time.Sleep(time.Until(zero.Add(400 * time.Millisecond)))
	lastBeat, err := witness.look()
	if since := time.Since(zero.Add(600 * time.Millisecond)); since > 0 {
		late(t, "the look at the silent pod was over %v too late", since)
	}
	if err != nil {
		t.Errorf("in the middle of the fault the peer sees the error %v, want silence", err)
	}
	if lastBeat.After(zero.Add(390 * time.Millisecond)) {
		late(t, "in the middle of the fault the peer sees beats until %v, want silence", lastBeat.Sub(zero))
	}
	time.Sleep(time.Until(zero.Add(700 * time.Millisecond)))
	c.mu.Lock()
	c.report = nil
	c.mu.Unlock()
	c.rise()
	report := c.await("hands over both actions", func(r protocol.Report) bool { return len(r.Actions) == 2 })
	var latest time.Duration
	for _, action := range report.Actions {
		after := action.Confirmed - action.Planned
		if action.Error != "" || after < -alarmEarly {
			t.Errorf("without a coordinator: %+v, confirmed %v after its instant", action, after)
		}
		latest = max(latest, after)
	}
	if state := report.Containers[0]; state.State != protocol.StateRunning || state.Starts != 2 {
		t.Errorf("the container is %+v, want it running for the second time", state)
	}
	p.agentProcess.Process.Signal(syscall.SIGTERM)
	if err := p.agentProcess.Wait(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	if got := p.ruleset(); got != p.original {
		t.Errorf("after the agent the packet filter is\n%s\nand was\n%s", got, p.original)
	}
	if latest > within(2*time.Second, 50*time.Millisecond) {
		t.Errorf("without a coordinator an action was confirmed %v after its instant", latest)
	}
}

func TestAnAgentRestartedInTheMiddleOfAFaultRepeatsNothingAndForgetsNothing(t *testing.T) {
	if !inHub(t) {
		return
	}
	c, p := newNetworkedPod(t)
	witness := dialPeer(t)
	run := runSoon(c, 400*time.Millisecond, crash(0, 3*time.Second)...)
	killed := c.await("has killed", func(r protocol.Report) bool { return len(r.Actions) >= 1 })
	if len(killed.Actions) > 1 {
		late(t, "the fault was over before it was seen")
	}
	p.killAgent()
	_, dialErr := net.DialTimeout("tcp", witness.conn.RemoteAddr().String(), 200*time.Millisecond)
	if since := time.Since(time.Unix(0, run.ZeroUnixNanos).Add(3 * time.Second)); since > 0 {
		late(t, "the look at the silent pod was over %v too late", since)
	}
	if !isTimeout(dialErr) {
		t.Errorf("with the agent dead, a connection to the silent pod: %v, want a timeout", dialErr)
	}
	p.agentProcess = p.enter("agent")
	// The new agent must dial and get an answer during the silence.
	report := c.await("comes from the next incarnation", func(r protocol.Report) bool { return r.Incarnation != killed.Incarnation && len(r.Containers) == 1 })
	came := time.Since(time.Unix(0, run.ZeroUnixNanos))
	if came > 2950*time.Millisecond {
		late(t, "the next incarnation came %v after t = 0, too late to show that it can dial while silent", came)
	}
	if len(report.Actions) != 1 || report.Actions[0] != killed.Actions[0] {
		t.Errorf("the next incarnation reports %+v, the one before reported %+v", report.Actions, killed.Actions)
	}
	back := c.await("has revived", func(r protocol.Report) bool { return len(r.Actions) == 2 })
	if back.Actions[1].Error != "" || back.Containers[0].Starts != 2 {
		t.Errorf("the revival is %+v with %d starts, want 2", back.Actions[1], back.Containers[0].Starts)
	}
	dialPeer(t).awaitBeat(t, time.Now())
}

func TestAKillWithoutARevivalEndsWithTheRun(t *testing.T) {
	if !inHub(t) {
		return
	}
	c, p := newNetworkedPod(t)
	runSoon(c, 200*time.Millisecond, crash(0, time.Hour)[:1]...)
	c.await("has killed", func(r protocol.Report) bool { return len(r.Actions) == 1 && r.Actions[0].Error == "" })
	c.direct(func(d *protocol.Directive) { d.Finish = true })
	end := c.await("is finished", func(r protocol.Report) bool { return r.Finished })
	if end.Containers[0].State != protocol.StateHeld || end.Containers[0].Starts != 1 || end.Failure != "" {
		t.Errorf("after the run: %+v, failure %q", end.Containers[0], end.Failure)
	}
	if got := p.ruleset(); got != p.original {
		t.Errorf("the packet filter is\n%s\nand was\n%s", got, p.original)
	}
}

func TestAnAgentThatMayNotFilterPacketsSaysSoWhenAFaultNeedsIt(t *testing.T) {
	if !inHub(t) {
		return
	}
	c, p := newNetworkedPod(t)
	p.agentProcess.Process.Signal(syscall.SIGTERM)
	p.agentProcess.Wait()
	c.mu.Lock()
	c.report = nil
	c.mu.Unlock()
	p.agentProcess = p.enter("powerless")
	c.await("is ready without the right", func(r protocol.Report) bool { return r.Ready && r.Failure == "" })
	runSoon(c, 200*time.Millisecond, crash(0, time.Hour)...)
	report := c.await("fails", func(r protocol.Report) bool { return r.Failure != "" })
	if !strings.Contains(report.Failure, "cannot be isolated") || !strings.Contains(report.Failure, "NET_ADMIN") {
		t.Errorf("the failure is %q, want what is missing", report.Failure)
	}
}

func init() {
	// An agent without NET_ADMIN.
	roles["powerless"] = func() { becomeAgentWithout(func(capability uintptr) bool { return capability == unix.CAP_NET_ADMIN }) }
}

// becomeAgentWithout drops capabilities from the bounding set, so that the next program does not
// get them back.
func becomeAgentWithout(dropped func(capability uintptr) bool) {
	runtime.LockOSThread()
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		if !dropped(capability) {
			continue
		}
		// EINVAL: an older kernel does not know this capability.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			fmt.Fprintln(os.Stderr, "drop a capability:", err)
			os.Exit(1)
		}
	}
	os.Setenv(roleVariable, "agent")
	fmt.Fprintln(os.Stderr, syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
	os.Exit(1)
}
