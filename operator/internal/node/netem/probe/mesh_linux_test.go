package probe

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/netem/nfqueue"
)

// namespace is a network namespace with a thread that lives in it. It ends with the test.
type namespace struct {
	do chan func()
	fd int
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{do: make(chan func())}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and the namespace with the thread
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			n.fd, err = unix.Open(fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		ready <- err
		for f := range n.do {
			f()
		}
	}()
	if err := <-ready; errors.Is(err, unix.EPERM) {
		t.Skipf("a new network namespace needs root: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Close(n.fd)
		close(n.do)
	})
	if err := n.run(func() error { return setUp("lo") }); err != nil {
		t.Fatal(err)
	}
	return n
}

// run runs a function on the namespace's thread.
func (n *namespace) run(f func() error) error {
	done := make(chan error)
	n.do <- func() { done <- f() }
	return <-done
}

func setUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

// node is a pod of the mesh. It does the work of an agent.
type node struct {
	*namespace
	name      string
	address   netip.Addr
	responder *Responder
	shaper    netem.Shaper
	pairs     []Pair // to all other nodes
	probes    []Pair // the pairs that this node measures
}

// mesh is nodes around one bridge.
type mesh struct {
	t        *testing.T
	config   Config
	nodes    []*node
	out      [][]time.Duration // delay from one node to another
	options  ProveOptions
	baseline [][]Measurement // of each node
}

func hardware(i int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0xa5, 0, 0, byte(i >> 8), byte(i)}
}

// newMesh connects the nodes and starts their responders. No link is delayed yet. Each direction of
// each pair has a delay of its own.
func newMesh(t *testing.T, size int, network netip.Prefix) *mesh {
	t.Helper()
	// Go gets as many processors as if each node were a process. So the kernel shares the real
	// processors, and not Go's scheduler.
	procs := runtime.GOMAXPROCS(max(8, size))
	t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
	m := &mesh{t: t, config: Config{Key: Key{1: 7}}, out: make([][]time.Duration, size)}
	// The first round has fewer probes than usual, and there is one round more: the machine may be
	// busy with other tests.
	m.options.Probes, m.options.Rounds = 5, 4
	// The probes of a mesh share two processors, and each of a probe's two packets takes 70 us or
	// more. So they are spread: 5,000 a second if every node probes all others.
	m.options.Spacing = max(20*time.Millisecond, time.Duration(size*size)*200*time.Microsecond)
	hub := newNamespace(t)
	if err := hub.run(func() error {
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}); err != nil {
			return err
		}
		return setUp("br0")
	}); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, uint64(size)))
	address := network.Addr()
	for i := range size {
		address = address.Next()
		n := &node{namespace: newNamespace(t), name: fmt.Sprintf("node-%d", i), address: address}
		m.nodes = append(m.nodes, n)
		for range size {
			m.out[i] = append(m.out[i], time.Duration(10+random.IntN(990))*100*time.Microsecond)
		}
		if err := hub.run(func() error { return plug(i, n.fd) }); err != nil {
			t.Fatal(err)
		}
	}
	m.each(func(i int, n *node) error { return n.run(func() error { return m.configure(i, n, network.Bits()) }) })
	for i, n := range m.nodes {
		n.pairs = m.pairsOf(i)
		n.probes = n.pairs
		t.Cleanup(func() { n.responder.Stop() })
	}
	m.baseline = make([][]Measurement, size)
	return m
}

// plug connects the namespace to the bridge.
func plug(i, fd int) error {
	bridge, err := netlink.LinkByName("br0")
	if err != nil {
		return err
	}
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("v%d", i), MasterIndex: bridge.Attrs().Index},
		PeerName:  "eth0", PeerHardwareAddr: hardware(i), PeerNamespace: netlink.NsFd(fd),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("add %s: %w", veth.Name, err)
	}
	return setUp(veth.Name)
}

// configure gives the node its address and its neighbours, which are permanent: all namespaces
// share the kernel's table of neighbours, and it has room for only a thousand others.
func (m *mesh) configure(i int, n *node, bits int) error {
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	whole := func(address netip.Addr, ones int) *net.IPNet {
		return &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(ones, address.BitLen())}
	}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: whole(n.address, bits), Flags: unix.IFA_F_NODAD}); err != nil {
		return fmt.Errorf("add the address: %w", err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	for j, peer := range m.nodes {
		if j == i {
			continue
		}
		neighbour := &netlink.Neigh{LinkIndex: link.Attrs().Index, IP: peer.address.AsSlice(), HardwareAddr: hardware(j), State: netlink.NUD_PERMANENT}
		if err := netlink.NeighSet(neighbour); err != nil {
			return fmt.Errorf("add a neighbour: %w", err)
		}
	}
	n.responder, err = Respond(m.config)
	return err
}

// each runs a function for all nodes at the same time.
func (m *mesh) each(f func(i int, n *node) error) {
	m.t.Helper()
	var wait sync.WaitGroup
	failures := make([]error, len(m.nodes))
	for i, n := range m.nodes {
		wait.Go(func() { failures[i] = f(i, n) })
	}
	wait.Wait()
	if err := errors.Join(failures...); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mesh) pairsOf(i int) []Pair {
	var pairs []Pair
	for j, peer := range m.nodes {
		if j != i {
			pairs = append(pairs, Pair{
				From: m.nodes[i].name, To: peer.name, Peer: peer.address,
				Out: shaping.Link{Delay: m.out[i][j]}, In: shaping.Link{Delay: m.out[j][i]},
			})
		}
	}
	return pairs
}

func (n *node) table() shaping.Table {
	var table shaping.Table
	for _, pair := range n.pairs {
		table = append(table, shaping.Peer{Address: pair.Peer, Out: pair.Out, In: pair.In})
	}
	return table
}

// shape opens the shapers and applies the requested links.
func (m *mesh) shape() {
	m.t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	m.each(func(_ int, n *node) error {
		return n.run(func() (err error) {
			if n.shaper, err = nfqueue.Open(log); err != nil {
				return err
			}
			return n.shaper.Apply(n.table())
		})
	})
	m.t.Cleanup(func() {
		for _, n := range m.nodes {
			n.shaper.Close()
		}
	})
}

func (m *mesh) measureBaseline() []Proof {
	m.t.Helper()
	proofs := make([]Proof, len(m.nodes))
	m.each(func(i int, n *node) error {
		return n.run(func() (err error) {
			proofs[i], err = Baseline(m.t.Context(), m.config, n.probes, m.options)
			m.baseline[i] = proofs[i].Measurements
			return err
		})
	})
	return proofs
}

func (m *mesh) prove(options ProveOptions) []Proof {
	m.t.Helper()
	proofs := make([]Proof, len(m.nodes))
	m.each(func(i int, n *node) error {
		return n.run(func() (err error) {
			proofs[i], err = Prove(m.t.Context(), m.config, n.probes, m.baseline[i], options)
			return err
		})
	})
	return proofs
}

func wrongOf(proofs []Proof) []Wrong {
	var wrong []Wrong
	for _, proof := range proofs {
		wrong = append(wrong, proof.Wrong...)
	}
	return wrong
}

// errors returns the errors of all measured directions, in order. An error is the measured time
// less the requested delay.
func (m *mesh) errors(proofs []Proof) []time.Duration {
	var off []time.Duration
	for i, proof := range proofs {
		for k, measured := range proof.Measurements {
			pair := m.nodes[i].probes[k]
			off = append(off, measured.Out.Min-pair.Out.Delay, measured.In.Min-pair.In.Delay)
		}
	}
	slices.Sort(off)
	return off
}

func percentiles(sorted []time.Duration) string {
	at := func(p float64) time.Duration { return sorted[int(p*float64(len(sorted)-1))] }
	return fmt.Sprintf("least %s, median %s, p99 %s, most %s", ms(at(0)), ms(at(0.5)), ms(at(0.99)), ms(at(1)))
}

// rounds sums up how many pairs were probed in each round.
func rounds(proofs []Proof) []int {
	var sum []int
	for _, proof := range proofs {
		for round, pairs := range proof.Probed {
			if round == len(sum) {
				sum = append(sum, 0)
			}
			sum[round] += pairs
		}
	}
	return sum
}

// sizeOfMesh is 24, or ASSAY_MESH.
func sizeOfMesh(t *testing.T) int {
	t.Helper()
	text := os.Getenv("ASSAY_MESH")
	if text == "" {
		return 24
	}
	size, err := strconv.Atoi(text)
	if err != nil || size < 2 || size > 1000 {
		t.Fatalf("ASSAY_MESH=%q: must be a number of namespaces from 2 to 1000", text)
	}
	return size
}

// It prints the time to apply and prove a network of all ordered pairs, and the errors. make
// bench-netem uses 100 pods.
func TestAMeshIsAppliedAndProven(t *testing.T) {
	if os.Getenv("ASSAY_VM") != "" {
		t.Skip("the one slow processor of the virtual machine cannot delay the packets of so many pods in time")
	}
	m := newMesh(t, sizeOfMesh(t), netip.MustParsePrefix("10.99.0.0/16"))
	// One round trip measures both directions, since all nodes share a clock. Either end of a pair
	// may measure it. Each node leaves half of its pairs to the others.
	for i, n := range m.nodes {
		n.probes = nil
		for k, pair := range n.pairs {
			j := k
			if k >= i {
				j++
			}
			if (i < j) == ((i+j)%2 == 0) {
				n.probes = append(n.probes, pair)
			}
		}
	}
	began := time.Now()
	baseline := m.measureBaseline()
	measured := time.Since(began)
	if wrong := wrongOf(baseline); len(wrong) > 0 {
		t.Fatalf("%d pairs have no undelayed path, the first: %s", len(wrong), wrong[0].Message)
	}
	began = time.Now()
	m.shape()
	applied := time.Since(began)
	proofs := m.prove(m.options)
	proven := time.Since(began)

	var paths []time.Duration
	for _, measurements := range m.baseline {
		for _, p := range measurements {
			paths = append(paths, p.Out.Min, p.In.Min)
		}
	}
	slices.Sort(paths)
	t.Logf("%d namespaces, %d ordered pairs; baseline measured in %v, rounds %v: one way %s",
		len(m.nodes), len(m.nodes)*(len(m.nodes)-1), measured.Round(time.Millisecond), rounds(baseline), percentiles(paths))
	t.Logf("applied in %v, applied and proven in %v, round trips measured in each round: %v", applied.Round(time.Millisecond), proven.Round(time.Millisecond), rounds(proofs))
	off := m.errors(proofs)
	t.Logf("one way less asked, least of each pair's probes: %s", percentiles(off))
	if want := len(m.nodes) * (len(m.nodes) - 1); len(off) != want {
		t.Errorf("%d ordered pairs were measured, want %d", len(off), want)
	}
	wrong := wrongOf(proofs)
	for _, w := range wrong[:min(len(wrong), 10)] {
		t.Error(w.Message)
	}
	if len(wrong) > 0 {
		t.Errorf("%d pairs are wrong", len(wrong))
	}
}

// A network that was right is broken. The gate names exactly the broken links.
func TestSabotageIsCaughtAndNamed(t *testing.T) {
	tests := map[string]struct {
		// sabotage breaks the shaping of node 0 for packets from node 1, at the receiver, where
		// nfqueue acts.
		sabotage func(t *testing.T, n *node)
		// only is false when the sabotage hits all links to node 0.
		only bool
		want Reason
		// message of node 0 about node 1. The requested delays are 20 ms from node 1 and 35 ms to
		// it.
		message string
	}{
		"a delay that is 2 ms too long": {
			func(t *testing.T, n *node) { n.reapply(t, func(p *shaping.Peer) { p.In.Delay += 2 * msec }) }, true, Late,
			`^node-1 -> node-0: asked 20ms one way, measured 22\.\d+ms \(tolerance 0\.5ms, path [01](\.\d+)?ms\)$`},
		"a delay that is 2 ms too short": {
			func(t *testing.T, n *node) { n.reapply(t, func(p *shaping.Peer) { p.In.Delay -= 2 * msec }) }, true, Early,
			`^node-1 -> node-0: asked 20ms one way, measured 18(\.\d+)?ms, which is too short \(tolerance 0\.5ms\)$`},
		"a link that is missing": {
			func(t *testing.T, n *node) {
				if err := n.shaper.Apply(slices.DeleteFunc(n.table(), func(p shaping.Peer) bool { return p.Address == n.pairs[0].Peer })); err != nil {
					t.Fatal(err)
				}
			}, true, Early, `^node-1 -> node-0: asked 20ms one way, measured \d(\.\d+)?ms: it is not delayed at all$`},
		"rules that were removed by hand": {removeRules, false, Early, `^node-1 -> node-0: asked 20ms one way, measured \d(\.\d+)?ms: it is not delayed at all$`},
		"a shaper that died": {
			func(t *testing.T, n *node) {
				if err := n.shaper.Close(); err != nil {
					t.Fatal(err)
				}
			}, false, Silent, `^node-0 <-> node-1: asked 35ms out and 20ms back, but none of \d+ probes was answered$`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMesh(t, 4, netip.MustParsePrefix("10.99.0.0/16"))
			m.proveSabotage(tc.sabotage, tc.only, tc.want, tc.message)
		})
	}
}

// Both ends of the pair get swapped directions, so the round trip is right.
func TestSwappedDirectionsAreCaughtAndNamed(t *testing.T) {
	m := newMesh(t, 4, netip.MustParsePrefix("10.99.0.0/16"))
	m.proveSabotage(func(t *testing.T, n *node) {
		n.reapply(t, func(p *shaping.Peer) { p.In.Delay = m.out[0][1] })
		m.nodes[1].reapply(t, func(p *shaping.Peer) { p.In.Delay = m.out[1][0] })
	}, true, Swapped, `^node-0 -> node-1: the directions are swapped: asked 35ms out and 20ms back, measured 20\.\d+ms out and 35\.\d+ms back$`)
}

// reapply changes the node's shaping of its first peer.
func (n *node) reapply(t *testing.T, change func(*shaping.Peer)) {
	t.Helper()
	table := n.table()
	for i := range table {
		// Node 1 is the first peer of node 0, and node 0 is the first peer of node 1.
		if table[i].Address == n.pairs[0].Peer {
			change(&table[i])
		}
	}
	if err := n.run(func() error { return n.shaper.Apply(table) }); err != nil {
		t.Fatal(err)
	}
}

// removeRules does the same as a user of nft: it flushes the ruleset.
func removeRules(t *testing.T, n *node) {
	t.Helper()
	if err := n.run(func() error {
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		conn.FlushRuleset()
		return conn.Flush()
	}); err != nil {
		t.Fatal(err)
	}
}

// proveSabotage breaks a network that is right. The gate must find the pair and name the error.
// Only the machine of hack/vm demands the name Swapped. On a machine that others share, a delay of
// 0.5 ms by a busy processor turns swapped directions into two wrong delays.
func (m *mesh) proveSabotage(sabotage func(*testing.T, *node), only bool, want Reason, message string) {
	t := m.t
	t.Helper()
	m.out[0][1], m.out[1][0] = 35*msec, 20*msec
	for i, n := range m.nodes {
		n.pairs = m.pairsOf(i)
		n.probes = n.pairs
	}
	if wrong := wrongOf(m.measureBaseline()); len(wrong) > 0 {
		t.Fatalf("baseline: %v", wrong)
	}
	m.shape()
	if wrong := wrongOf(m.prove(m.options)); len(wrong) > 0 {
		t.Fatalf("before the sabotage: %v", wrong)
	}
	sabotage(t, m.nodes[0])
	m.options.Rounds = 3 // the wrong links stay wrong in all of them
	caught, inVM := false, os.Getenv("ASSAY_VM") != ""
	pattern := regexp.MustCompile(message)
	for _, wrong := range wrongOf(m.prove(m.options)) {
		t.Log(wrong.Message)
		ends := []string{wrong.From, wrong.To}
		slices.Sort(ends)
		if ends[0] != "node-0" || only && ends[1] != "node-1" {
			t.Errorf("nothing was done to this pair: %s", wrong.Message)
		}
		if wrong.From == "node-0" && wrong.To == "node-1" {
			named := wrong.Reason == want && pattern.MatchString(wrong.Message)
			delayed := !inVM && want == Swapped && (wrong.Reason == Early || wrong.Reason == Late)
			if caught = named || delayed; !caught {
				t.Errorf("%s: %s, want %s: %s", wrong.Reason, wrong.Message, want, message)
			}
		}
	}
	if !caught {
		t.Error("the sabotage was not noticed")
	}
}

func TestIPv6IsMeasuredAsIPv4Is(t *testing.T) {
	m := newMesh(t, 3, netip.MustParsePrefix("fd00:a5::/64"))
	if wrong := wrongOf(m.measureBaseline()); len(wrong) > 0 {
		t.Fatalf("baseline: %v", wrong)
	}
	m.shape()
	proofs := m.prove(m.options)
	if wrong := wrongOf(proofs); len(wrong) > 0 {
		t.Fatalf("wrong: %v", wrong)
	}
	t.Logf("one way less asked: %s", percentiles(m.errors(proofs)))
}

// An announced fault does not change the steady numbers. The canary detects a fault that was not
// announced.
func TestTheCanarySeesWhatHappensDuringATrial(t *testing.T) {
	m := newMesh(t, 3, netip.MustParsePrefix("10.99.0.0/16"))
	if wrong := wrongOf(m.measureBaseline()); len(wrong) > 0 {
		t.Fatalf("baseline: %v", wrong)
	}
	m.shape()
	if wrong := wrongOf(m.prove(m.options)); len(wrong) > 0 {
		t.Fatalf("wrong: %v", wrong)
	}
	for _, announced := range []bool{true, false} {
		name := map[bool]string{true: "announced", false: "not announced"}[announced]
		t.Run(name, func(t *testing.T) {
			n := m.nodes[0]
			// Some 40 probes to each peer are in flight at any instant. When the machine stands
			// still for longer than the deadline, the canary gives all of them up. With a shorter
			// deadline, that would be more probes than are answered.
			var c *Canary
			if err := n.run(func() (err error) {
				c, err = Watch(t.Context(), m.config, peersOf(n.pairs), CanaryOptions{Every: 5 * msec, Deadline: MaxDeadline})
				return err
			}); err != nil {
				t.Fatal(err)
			}
			await := func(what string, holds func(Watched) bool) {
				t.Helper()
				for deadline := time.Now().Add(time.Minute); !holds(c.Watched()[0]); {
					if time.Now().After(deadline) {
						t.Fatalf("%s: not within a minute: %+v", what, c.Watched()[0])
					}
					time.Sleep(5 * msec)
				}
			}
			await("probes before the fault", func(w Watched) bool { return w.Steady.Answered > 20 })
			now := launcher.Monotonic()
			if announced {
				c.Disturb(Disturbance{Peer: n.pairs[0].Peer, From: now, Until: now + int64(time.Hour)})
			}
			n.reapply(t, func(p *shaping.Peer) { p.In.Delay = 0 })
			await("probes during the fault", func(w Watched) bool {
				if announced {
					return w.Disturbed.Answered > 20
				}
				return w.Steady.In.Min < n.pairs[0].In.Delay/2
			})
			var steady []Measurement
			for _, w := range c.Stop() {
				steady = append(steady, w.Steady)
			}
			n.reapply(t, func(*shaping.Peer) {})
			// The fault makes probes early. How late they are depends on the machine here: when it
			// stands still for a second, so do most of the few probes.
			tolerance := Tolerance{Late: MaxDeadline, Path: SteadyTolerance.Path, Lost: 0.5}
			wrong := JudgeSteady(n.pairs, m.baseline[0], steady, tolerance)
			for _, w := range wrong {
				t.Log(w.Message)
			}
			switch {
			case announced && len(wrong) > 0:
				t.Error("an announced fault makes the steady network wrong")
			case !announced && (len(wrong) != 1 || wrong[0].Reason != Early || wrong[0].To != "node-1"):
				t.Errorf("want that node-1 was early, and nothing else: %v", wrong)
			}
		})
	}
}
