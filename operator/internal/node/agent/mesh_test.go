package agent_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/netem/nfqueue"
	"assay.dev/assay/operator/internal/node/protocol"
)

// A mesh is a set of pods, each with a network of its own. The hub routes between them, and has a
// coordinator for each.
//
//	10.98.0.1 hub 10.98.1.1
//	      |           |
//	10.98.0.2   10.98.1.2 ...
//	    r-0         r-1
type meshPod struct {
	*networkedPod
	c       *fakeCoordinator
	name    string
	address netip.Addr
	before  string // queueing disciplines and devices
}

type mesh []*meshPod

var probeKey = []byte("the probes of one trial")

// newMesh makes the pods and waits until their agents have tried the backends. In every pod a beat
// runs.
func newMesh(t *testing.T, count int) mesh {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	must(t, err)
	must(t, netlink.LinkSetUp(lo))
	must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644))
	var m mesh
	for i := range count {
		holder := exec.Command(self(t))
		holder.Env = append(os.Environ(), roleVariable+"=hold")
		holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		must(t, holder.Start())
		t.Cleanup(func() { holder.Process.Kill(); holder.Wait() })
		handle, err := netns.GetFromPid(holder.Process.Pid)
		must(t, err)
		t.Cleanup(func() { handle.Close() })
		hub := fmt.Sprintf("10.98.%d.1", i)
		p := &meshPod{name: fmt.Sprint("r-", i), address: netip.AddrFrom4([4]byte{10, 98, byte(i), 2})}
		route(t, handle, i, hub, p.address.String())
		p.c = newFakeCoordinator(t, hub+":0")
		p.networkedPod = &networkedPod{pod: newPod(t, p.c), holder: holder.Process.Pid, handle: handle}
		p.somebodyElsesRules()
		p.original, p.before = p.ruleset(), p.devices()
		p.enter("launcher", "NAME=replica")
		p.agentProcess = p.enter("agent", "BACKENDS=1")
		p.c.direct(func(d *protocol.Directive) {
			d.Containers = []protocol.Container{{Name: "replica", Command: []string{self(t)}, Env: []string{roleVariable + "=beat", insideName + "="}}}
			d.Start = true
		})
		m = append(m, p)
	}
	for _, p := range m {
		p.c.await("has tried the backends", func(r protocol.Report) bool {
			return r.Ready && r.ClockError > 0 && r.Network != nil && r.Network.Tried
		})
	}
	return m
}

// route connects the hub to a pod that reaches all others by it.
func route(t *testing.T, pod netns.NsHandle, i int, hubAddress, podAddress string) {
	t.Helper()
	name := fmt.Sprint("pod", i)
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprint("hub", i)}, PeerName: name}))
	inside, err := netlink.NewHandleAt(pod, unix.NETLINK_ROUTE)
	must(t, err)
	defer inside.Close()
	here, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	must(t, err)
	defer here.Close()
	peer, err := here.LinkByName(name)
	must(t, err)
	must(t, here.LinkSetNsFd(peer, int(pod)))
	for _, end := range []struct {
		handle           *netlink.Handle
		name, ip, rename string
	}{{here, fmt.Sprint("hub", i), hubAddress, ""}, {inside, name, podAddress, "eth0"}, {inside, "lo", "", ""}} {
		link, err := end.handle.LinkByName(end.name)
		must(t, err)
		if end.rename != "" {
			must(t, end.handle.LinkSetName(link, end.rename))
		}
		if end.ip != "" {
			address, err := netlink.ParseAddr(end.ip + "/24")
			must(t, err)
			must(t, end.handle.AddrAdd(link, address))
		}
		must(t, end.handle.LinkSetUp(link))
	}
	must(t, inside.RouteAdd(&netlink.Route{Gw: netip.MustParseAddr(hubAddress).AsSlice()}))
}

// devices lists the pod's devices with their queueing disciplines and filters, as text.
func (p *networkedPod) devices() string {
	p.t.Helper()
	handle, err := netlink.NewHandleAt(p.handle, unix.NETLINK_ROUTE)
	must(p.t, err)
	defer handle.Close()
	links, err := handle.LinkList()
	must(p.t, err)
	var text strings.Builder
	for _, link := range links {
		attrs := link.Attrs()
		fmt.Fprintf(&text, "%s %s segments %d bytes %d\n", link.Type(), attrs.Name, attrs.GSOMaxSegs, attrs.GSOMaxSize)
		qdiscs, err := handle.QdiscList(link)
		must(p.t, err)
		for _, qdisc := range qdiscs {
			fmt.Fprintf(&text, "  %s %+v\n", qdisc.Type(), *qdisc.Attrs())
		}
		for _, parent := range []uint32{netlink.HANDLE_ROOT, netlink.HANDLE_MIN_EGRESS, netlink.HANDLE_MIN_INGRESS} {
			filters, err := handle.FilterList(link, parent)
			must(p.t, err)
			fmt.Fprintf(&text, "  %d filters at %x\n", len(filters), parent)
		}
	}
	return text.String()
}

// backend returns one that works in every pod.
func (m mesh) backend(t *testing.T) shaping.Backend {
	t.Helper()
	report := m[0].c.await("has tried", func(r protocol.Report) bool { return r.Network != nil })
	if len(report.Network.Backends) == 0 {
		t.Skipf("this kernel has no backend: %v", report.Network.Refused)
	}
	t.Logf("backends %v, refused %v", report.Network.Backends, report.Network.Refused)
	return report.Network.Backends[0]
}

// everyBackend runs a test with each backend, in a hub of its own. It skips backends that this
// kernel lacks; the machine of hack/vm lacks none.
func everyBackend(t *testing.T, test func(t *testing.T, backend shaping.Backend)) {
	for _, backend := range shaping.Backends {
		t.Run(string(backend), func(t *testing.T) {
			if inHub(t) {
				test(t, backend)
			}
		})
	}
}

// needs skips the test when a backend does not work here.
func (m mesh) needs(t *testing.T, backend shaping.Backend) {
	t.Helper()
	report := m[0].c.await("has tried", func(r protocol.Report) bool { return r.Network != nil }).Network
	if slices.Contains(report.Backends, backend) {
		return
	}
	if os.Getenv("ASSAY_VM") != "" {
		t.Fatalf("%s is refused: %s", backend, report.Refused[backend])
	}
	t.Skipf("this kernel has no %s: %s", backend, report.Refused[backend])
}

// network directs all pods. link returns the requested shaping of each direction.
func (m mesh) network(backend shaping.Backend, shape bool, link func(from, to string) shaping.Link) {
	for _, p := range m {
		n := protocol.Network{Backend: backend, Shape: shape, ProbeKey: probeKey, Tolerance: 20 * time.Millisecond}
		for _, q := range m {
			if p != q {
				n.Peers = append(n.Peers, protocol.NetworkPeer{Name: q.name, Address: q.address, Out: link(p.name, q.name), In: link(q.name, p.name)})
			}
		}
		p.c.direct(func(d *protocol.Directive) { d.Network = &n })
	}
}

// prove takes the pods through all steps to proven links.
func (m mesh) prove(t *testing.T, backend shaping.Backend, link func(from, to string) shaping.Link) {
	t.Helper()
	m.network("", false, link) // the backend is chosen later
	for _, p := range m {
		p.c.await("knows the undelayed network", func(r protocol.Report) bool { return r.Network.Baseline })
	}
	m.network(backend, true, link)
	for _, p := range m {
		report := p.c.await("has measured its links", func(r protocol.Report) bool { return r.Network.Proven || len(r.Network.Wrong) > 0 || r.Failure != "" })
		if !report.Network.Proven {
			t.Fatalf("%s: the links are wrong: %v %s", p.name, report.Network.Wrong, report.Failure)
		}
	}
}

// run agrees a run. Each action is for the pod that it names.
func (m mesh) run(lead, measure time.Duration, actions ...timeline.Action) time.Time {
	w := timeline.Windows{WarmUp: 100 * time.Millisecond, Measure: measure, CoolDown: 50 * time.Millisecond, Drain: 50 * time.Millisecond}
	zero := time.Now().Add(lead + w.WarmUp)
	for _, p := range m {
		p.c.direct(func(d *protocol.Directive) {
			d.Run = &protocol.Run{ZeroUnixNanos: zero.UnixNano(), Windows: w, Actions: timeline.OfPod(actions, p.name)}
		})
	}
	return zero
}

// finish ends all and compares the remains with the state before.
func (m mesh) finish(t *testing.T) {
	t.Helper()
	for _, p := range m {
		p.c.direct(func(d *protocol.Directive) { d.Finish = true })
	}
	for _, p := range m {
		if end := p.c.await("is finished", func(r protocol.Report) bool { return r.Finished }); end.Failure != "" {
			t.Errorf("%s: the agent failed: %s", p.name, end.Failure)
		}
		if got := p.ruleset(); got != p.original {
			t.Errorf("%s: the packet filter is\n%s\nand was\n%s", p.name, got, p.original)
		}
		if got := p.devices(); got != p.before {
			t.Errorf("%s: the devices are\n%s\nand were\n%s", p.name, got, p.before)
		}
	}
}

// ofAction waits for the record of an action.
func (p *meshPod) ofAction(id string) protocol.ActionRecord {
	p.t.Helper()
	var record protocol.ActionRecord
	p.c.await("has carried out "+id, func(r protocol.Report) bool {
		i := slices.IndexFunc(r.Actions, func(a protocol.ActionRecord) bool { return a.ID == id })
		if i >= 0 {
			record = r.Actions[i]
		}
		return i >= 0
	})
	return record
}

func delays(table map[string]time.Duration) func(from, to string) shaping.Link {
	return func(from, to string) shaping.Link { return shaping.Link{Delay: table[from+">"+to]} }
}

func TestPodsProveTheirLinksWatchThemAndLeaveNoTrace(t *testing.T) {
	everyBackend(t, proveAndWatch)
}

func proveAndWatch(t *testing.T, backend shaping.Backend) {
	m := newMesh(t, 3)
	m.needs(t, backend)
	asked := map[string]time.Duration{
		"r-0>r-1": 30 * time.Millisecond, "r-1>r-0": 10 * time.Millisecond,
		"r-0>r-2": 5 * time.Millisecond, "r-2>r-0": 5 * time.Millisecond, // r-1 and r-2 are in one place
	}
	m.prove(t, backend, delays(asked))
	first := m[0].c.await("has proven", func(r protocol.Report) bool { return true }).Network
	if len(first.Links) != 2 || first.Links[0].Peer != "r-1" || first.Rounds < 1 || first.ApplyTook <= 0 || first.ProveTook <= 0 {
		t.Fatalf("the report is %+v, want two links and how long it took", first)
	}
	for _, link := range first.Links {
		out, in := asked["r-0>"+link.Peer], asked[link.Peer+">r-0"]
		t.Logf("%s: asked %v and %v, undelayed %v, measured %v: %v and %v", link.Peer, out, in, link.BaselineRTT, link.RTT, link.OutDelay, link.InDelay)
		if link.RTT < out+in || link.RTT > out+in+60*time.Millisecond || link.OutDelay < out || link.InDelay < in || link.BaselineRTT <= 0 {
			t.Errorf("%s: measured %+v, asked %v and %v", link.Peer, link, out, in)
		}
	}

	worse := shaping.Link{Delay: 40 * time.Millisecond}
	degrade := func(from, to string, side shaping.Side) []timeline.Action {
		pod, peer := from, to
		if side == shaping.Ingress {
			pod, peer = to, from
		}
		id := func(kind string) string { return "slow/1/" + kind + "/" + pod }
		return []timeline.Action{
			{ID: id("degrade"), Fault: "slow", Pod: pod, Kind: timeline.Degrade, At: 600 * time.Millisecond,
				Links: []timeline.LinkChange{{Peer: peer, Side: side, Worse: worse}}},
			{ID: id("restore"), Fault: "slow", Pod: pod, Kind: timeline.Restore, At: 1400 * time.Millisecond, Ends: id("degrade")},
		}
	}
	// From r-1 to r-2 only the fault adds a delay. Each end shapes the half that its side of the
	// backend shapes.
	actions := degrade("r-1", "r-2", backend.Side())
	m.run(500*time.Millisecond, 4*time.Second, actions...)
	acting := m[1]
	if backend.Side() == shaping.Ingress {
		acting = m[2]
	}
	begun, ended := acting.ofAction(actions[0].ID), acting.ofAction(actions[1].ID)
	var latest time.Duration
	lost := 0
	for _, record := range []protocol.ActionRecord{begun, ended} {
		late := record.Confirmed - record.Planned
		if record.Error != "" || late < 0 || record.Started > record.Confirmed {
			t.Errorf("the record is %+v", record)
		}
		latest = max(latest, late)
		t.Logf("%s: begun %v after its instant, confirmed %v after it", record.ID, record.Started-record.Planned, record.Confirmed-record.Planned)
	}
	for _, p := range m {
		report := p.c.await("has watched the window", func(r protocol.Report) bool { return r.Network.Watched }).Network
		for _, link := range report.Links {
			t.Logf("%s to %s: %d canaries, %d lost, %v %v %v", p.name, link.Peer, link.CanarySent, link.CanaryLost, link.CanaryMin, link.CanaryMedian, link.CanaryMax)
			if least := asked[p.name+">"+link.Peer] + asked[link.Peer+">"+p.name]; link.CanarySent == 0 || link.CanaryMin < least {
				t.Errorf("%s to %s: the canary saw %+v, want some, and none quicker than %v", p.name, link.Peer, link, least)
			}
			lost += link.CanaryLost
		}
		if report.Lost != "" || report.Dropped != 0 {
			t.Errorf("%s: lost %q, dropped %d (%s)", p.name, report.Lost, report.Dropped, report.DroppedWhy)
		}
	}
	m.finish(t)
	if latest > within(2*time.Second, 50*time.Millisecond) || inVM() && lost > 0 {
		t.Errorf("an action was confirmed %v after its instant, and %d canaries were lost or a second late", latest, lost)
	}
}

func TestAWrongLinkIsNamed(t *testing.T) {
	if !inHub(t) {
		return
	}
	m := newMesh(t, 3)
	backend := m.backend(t)
	asked := map[string]time.Duration{"r-0>r-1": 20 * time.Millisecond, "r-1>r-0": 20 * time.Millisecond, "r-0>r-2": 50 * time.Millisecond, "r-2>r-0": 10 * time.Millisecond}
	// r-1 believes that its link to r-0 has 2 ms more. r-2 has swapped the directions of its own
	// link.
	believed := map[string]map[string]time.Duration{
		"r-1": {"r-0>r-1": 20 * time.Millisecond, "r-1>r-0": 22 * time.Millisecond},
		"r-2": {"r-0>r-2": 10 * time.Millisecond, "r-2>r-0": 50 * time.Millisecond},
	}
	direct := func(shape bool) {
		m.network(backend, shape, delays(asked))
		for _, p := range m[1:] {
			link := delays(believed[p.name])
			p.c.direct(func(d *protocol.Directive) {
				d.Network.Peers[0].Out, d.Network.Peers[0].In = link(p.name, "r-0"), link("r-0", p.name)
			})
		}
	}
	direct(false)
	for _, p := range m {
		p.c.await("knows the undelayed network", func(r protocol.Report) bool { return r.Network.Baseline })
	}
	direct(true)
	deadline := time.Now().Add(time.Minute)
	for i, want := range map[int]string{1: "asked 22ms one way, measured 20", 2: "asked 50ms one way, measured 10"} {
		report := m[i].c.awaitUntil(deadline, "says what is wrong", func(r protocol.Report) bool { return len(r.Network.Wrong) > 0 })
		if report.Network.Proven || !strings.Contains(strings.Join(report.Network.Wrong, "\n"), want) || !strings.Contains(report.Network.Wrong[0], "r-0") {
			t.Errorf("%s: proven %v, wrong %q, want it to say %q of r-0", m[i].name, report.Network.Proven, report.Network.Wrong, want)
		}
	}
	m.finish(t)
}

func TestARuleRemovedByHandIsNoticed(t *testing.T) {
	if !inHub(t) {
		return
	}
	m := newMesh(t, 2)
	backend := m.backend(t)
	m.prove(t, backend, delays(map[string]time.Duration{"r-0>r-1": 10 * time.Millisecond, "r-1>r-0": 10 * time.Millisecond}))
	m[1].unshapeByHand()
	m.run(300*time.Millisecond, time.Second)
	lost := m[1].c.await("has lost its links", func(r protocol.Report) bool { return r.Network.Lost != "" }).Network.Lost
	t.Logf("lost: %s", lost)
	m[0].c.await("is through", func(r protocol.Report) bool { return r.Network.Links[0].CanarySent > 0 })
	if report := m[0].c.await("reports", func(protocol.Report) bool { return true }); report.Network.Lost != "" {
		t.Errorf("the other pod has lost its links, too: %s", report.Network.Lost)
	}
	m.finish(t)
}

func TestAnAgentThatIsKilledAfterTheProof(t *testing.T) { everyBackend(t, killAfterProof) }

// killAfterProof kills an agent when its links are proven and no run is agreed. A backend in the
// kernel goes on without the agent. A backend that holds packets in the agent has dropped some, and
// reports it: the links were not as verified all the time.
func killAfterProof(t *testing.T, backend shaping.Backend) {
	m := newMesh(t, 2)
	m.needs(t, backend)
	m.prove(t, backend, delays(map[string]time.Duration{"r-0>r-1": 10 * time.Millisecond, "r-1>r-0": 20 * time.Millisecond}))
	killed := m[0].c.await("has said who it is", func(r protocol.Report) bool { return r.Incarnation != "" }).Incarnation
	m[0].killAgent()
	m[0].agentProcess = m[0].enter("agent", "BACKENDS=1")
	again := m[0].c.await("is back", func(r protocol.Report) bool { return r.Incarnation != killed && r.Network != nil && r.Network.Proven })
	if backend == shaping.NFQueue {
		if lost := again.Network.Lost; !strings.Contains(lost, "restarted") || !strings.Contains(lost, "dropped") {
			t.Errorf("the links of the agent that was killed are lost: %q, want that packets were dropped meanwhile", lost)
		}
	} else if again.Network.Lost != "" {
		t.Errorf("the links of the agent that was killed are lost: %s; the kernel has kept them", again.Network.Lost)
	}
	m.run(300*time.Millisecond, 2500*time.Millisecond)
	missing := 0
	for _, p := range m {
		link := p.c.await("has seen canaries", func(r protocol.Report) bool { return r.Network != nil && r.Network.Links[0].CanarySent > 0 }).Network.Links[0]
		if link.CanaryMin < 30*time.Millisecond {
			t.Errorf("%s: the canary saw %+v, want none quicker than 30 ms: the links are shaped again", p.name, link)
		}
		missing += link.CanaryLost
	}
	if other := m[1].c.await("reports", func(protocol.Report) bool { return true }).Network; other.Lost != "" {
		t.Errorf("the other pod has lost its links, too: %s", other.Lost)
	}
	m.finish(t)
	t.Logf("%d canaries were lost or a second late", missing)
	if inVM() && missing > 0 {
		t.Errorf("%d canaries were lost or a second late", missing)
	}
}

// unshapeByHand removes the shaping of the pod's links, like a user who enters the pod.
func (p *meshPod) unshapeByHand() {
	p.t.Helper()
	conn := p.filter()
	tables, err := conn.ListTables()
	must(p.t, err)
	for _, table := range tables {
		if strings.HasPrefix(table.Name, "assay_delay") {
			conn.DelTable(table)
		}
	}
	must(p.t, conn.Flush())
	handle, err := netlink.NewHandleAt(p.handle, unix.NETLINK_ROUTE)
	must(p.t, err)
	defer handle.Close()
	eth0, err := handle.LinkByName("eth0")
	must(p.t, err)
	qdiscs, err := handle.QdiscList(eth0)
	must(p.t, err)
	for _, qdisc := range qdiscs {
		if qdisc.Attrs().Parent == netlink.HANDLE_ROOT && qdisc.Attrs().Handle != 0 {
			must(p.t, handle.QdiscDel(qdisc))
		}
	}
}

func TestAnAgentThatMayNotShapeMeasuresOnly(t *testing.T) {
	if !inHub(t) {
		return
	}
	m := newMesh(t, 2)
	for _, p := range m {
		p.agentProcess.Process.Signal(syscall.SIGTERM)
		p.agentProcess.Wait()
		must(t, os.Remove(p.run+"/agent.json")) // the agent begins anew
		p.c.mu.Lock()
		p.c.report = nil
		p.c.mu.Unlock()
		p.agentProcess = p.enter("powerless", "BACKENDS=1")
		report := p.c.await("has tried", func(r protocol.Report) bool { return r.Network != nil && r.Network.Tried })
		if len(report.Network.Backends) != 0 || len(report.Network.Refused) != len(shaping.Backends) ||
			!strings.Contains(report.Network.Refused[shaping.NFQueue], "NET_ADMIN") {
			t.Errorf("%s: the report is %+v, want every backend refused for want of NET_ADMIN", p.name, report.Network)
		}
	}
	m.prove(t, "", delays(map[string]time.Duration{"r-0>r-1": 50 * time.Millisecond}))
	var slowest time.Duration
	for _, p := range m {
		report := p.c.await("has measured", func(r protocol.Report) bool { return r.Network.Proven })
		link := report.Network.Links[0]
		if link.RTT <= 0 || link.BaselineRTT <= 0 {
			t.Errorf("%s: measured %+v, want a path that nobody delays", p.name, link)
		}
		slowest = max(slowest, link.RTT)
	}
	m.run(200*time.Millisecond, 1500*time.Millisecond)
	lost := 0
	for _, p := range m {
		report := p.c.await("has seen canaries", func(r protocol.Report) bool { return r.Network.Links[0].CanarySent > 0 })
		lost += report.Network.Links[0].CanaryLost
	}
	m.finish(t)
	t.Logf("%d canaries were lost or a second late", lost)
	if slowest > within(45*time.Millisecond, 5*time.Millisecond) || inVM() && lost > 0 {
		t.Errorf("a path that nobody delays takes %v, though 50 ms are asked; %d canaries were lost or a second late", slowest, lost)
	}
}

func TestPodsThatAreReallyFarApartAreNotRefusedWhereNothingIsAsked(t *testing.T) {
	if !inHub(t) {
		return
	}
	m := newMesh(t, 2)
	m.needs(t, shaping.NFQueue)
	// The path between them takes 30 ms, which no agent knows: a shaper of the test in r-0's
	// network adds them.
	done := make(chan error)
	var far netem.Shaper
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends in the pod's network
		err := netns.Set(m[0].handle)
		if err == nil {
			far, err = nfqueue.Open(slog.New(slog.DiscardHandler))
		}
		if err == nil {
			err = far.Apply(shaping.Table{{Address: m[1].address, In: shaping.Link{Delay: 30 * time.Millisecond}}})
		}
		done <- err
	}()
	must(t, <-done)
	defer far.Close()
	m.prove(t, "", delays(nil))
	for _, p := range m {
		report := p.c.await("has measured", func(r protocol.Report) bool { return r.Network.Proven })
		if link := report.Network.Links[0]; link.BaselineRTT < 30*time.Millisecond || link.RTT < 30*time.Millisecond {
			t.Errorf("%s: measured %+v, want at least 30 ms", p.name, link)
		}
	}
	must(t, far.Remove())
	m.finish(t)
}
