package nfqueue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem/nettest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// shapeHere makes the test's binary an agent that is about to be killed.
const shapeHere = "ASSAY_TEST_SHAPE_HERE"

func TestMain(m *testing.M) {
	switch os.Getenv(shapeHere) {
	case "":
		exact()
		os.Exit(m.Run())
	case "check":
		err := Check(context.Background())
		fmt.Printf("check: %v\n", err)
		if s, err := Open(slog.New(slog.NewTextHandler(os.Stdout, nil))); err == nil {
			answer, err := s.process.ask(request{Do: doReport})
			fmt.Println("scheduling:", answer.Scheduling, answer.WhyNoPriority, err, s.Close())
		}
	default:
		s, err := Open(slog.New(slog.NewTextHandler(os.Stderr, nil)))
		if err == nil {
			err = s.Apply(shaping.Table{{Address: netip.MustParseAddr(os.Getenv(shapeHere)), In: shaping.Link{Delay: 30 * time.Millisecond}}})
		}
		fmt.Println("shaped", err)
		time.Sleep(time.Minute)
	}
}

// exact gives the tests' own threads a priority. They stamp and read messages, and other work of
// the machine must not affect the measurement.
func exact() {
	if everyThread(&unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: fifoPriority / 2}) != nil {
		_ = everyThread(&unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: -15})
	}
}

// usual ends the priority of exact.
func usual() { _ = everyThread(&unix.SchedAttr{Size: unix.SizeofSchedAttr}) }

// foreign makes a table of another program.
func foreign(t testing.TB, p *nettest.Pod) *nftables.Table {
	t.Helper()
	table := &nftables.Table{Name: "somebody", Family: nftables.TableFamilyIPv4}
	p.Do(func() error {
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		conn.AddTable(table)
		chain := conn.AddChain(&nftables.Chain{Name: "in", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityMangle})
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}})
		return conn.Flush()
	})
	return table
}

// nft changes the pod's packet filter, as a user would by hand.
func nft(t testing.TB, p *nettest.Pod, change func(*nftables.Conn)) {
	t.Helper()
	p.Do(func() error {
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		change(conn)
		return conn.Flush()
	})
}

// peers are the addresses of the first pod.
func peers(a *nettest.Pod, delay time.Duration) shaping.Table {
	return shaping.Table{{Address: a.IPv4(1), In: shaping.Link{Delay: delay}}, {Address: a.IPv6(1), In: shaping.Link{Delay: delay}}}
}

func TestRemoveRestoresWhatWasThere(t *testing.T) {
	a, b := pair(t)
	foreign(t, b)
	before := ruleset(t, b)
	s := shaper(t, b)
	for range 3 { // a shaper can shape again after it removed all
		if err := s.Apply(peers(a, 150*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if ruleset(t, b) == before {
			t.Fatal("applying changed nothing")
		}
		listener := b.ListenUDP(b.IPv4(1))
		sender := dialUDP(t, a, a.IPv4(1), listener.LocalAddr())
		for range 100 {
			if _, err := sender.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Remove(); err != nil {
			t.Fatal(err)
		}
		_ = listener.SetReadDeadline(time.Now().Add(arrives))
		for i := range 100 {
			if _, err := listener.Read(make([]byte, 1)); err != nil {
				t.Fatalf("packet %d was in flight at the removal and did not arrive: %v", i, err)
			}
		}
		if after := ruleset(t, b); after != before {
			t.Errorf("%d bytes of rules before, after the removal %d:\n%q\n%q", len(before), len(after), before, after)
		}
		if table, err := s.Read(); table != nil || err != nil {
			t.Errorf("read after the removal: %v, %v; want nothing", table, err)
		}
	}
	if err := s.Remove(); err != nil {
		t.Errorf("a removal of nothing: %v", err)
	}
}

func TestWithoutItsAgentAPodHearsNothingFromItsPeers(t *testing.T) {
	a, b := pair(t)
	before := ruleset(t, b)
	var agent *exec.Cmd
	b.Do(func() error {
		agent = exec.Command("/proc/self/exe") // in the network namespace of this thread
		agent.Env = append(os.Environ(), shapeHere+"="+a.IPv4(1).String())
		out, err := agent.StdoutPipe()
		if err != nil {
			return err
		}
		if err := agent.Start(); err != nil {
			return err
		}
		line := make([]byte, 200)
		n, err := out.Read(line)
		if string(line[:n]) != "shaped <nil>\n" {
			return fmt.Errorf("the agent says %q (%w)", line[:n], err)
		}
		return nil
	})
	if took := udpTook(t, a, b, a.IPv4(1), b.IPv4(1)); took < 30*time.Millisecond {
		t.Errorf("a packet took %v, want 30ms", took)
	}
	second := shaper(t, b)
	if err := second.Apply(peers(a, time.Millisecond)); err == nil || !strings.Contains(err.Error(), "another agent") {
		t.Errorf("applying beside an agent that lives: %v", err)
	}
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait()
	until(t, "the dead agent's queue is gone", func() bool {
		_, known, err := second.status.read()
		return err == nil && !known
	})
	if took := udpLost(t, a, b, a.IPv4(1), b.IPv4(1)); took != 0 {
		t.Errorf("a packet passed in %v though nobody delays it", took)
	}
	if took := udpTook(t, a, b, a.IPv4(5), b.IPv4(1)); took == 0 {
		t.Error("a packet from another address was dropped")
	}
	if table, err := second.Read(); err == nil || !strings.Contains(err.Error(), "dropped until Apply or Remove") {
		t.Errorf("reading what a dead agent left: %v, %v", table, err)
	}
	if err := second.Apply(peers(a, 40*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if took := udpTook(t, a, b, a.IPv4(1), b.IPv4(1)); took < 40*time.Millisecond {
		t.Errorf("a packet took %v after the adoption, want 40ms", took)
	}
	if got, err := second.Read(); err != nil || len(got) != 2 {
		t.Errorf("read after the adoption: %v, %v", got, err)
	}
	if err := second.Close(); err != nil { // the second process dies as well
		t.Fatal(err)
	}
	third := shaper(t, b)
	if err := third.Remove(); err != nil {
		t.Fatal(err)
	}
	if after := ruleset(t, b); after != before {
		t.Error("the removal by another agent left something")
	}
	if took := udpTook(t, a, b, a.IPv4(1), b.IPv4(1)); took == 0 {
		t.Error("a packet did not arrive after the removal")
	}
}

func TestWhatIsChangedByHandIsSeenAndPutBack(t *testing.T) {
	a, b := pair(t)
	s := shaper(t, b)
	want := peers(a, 25*time.Millisecond)
	table := &nftables.Table{Name: tableName, Family: nftables.TableFamilyIPv4}
	chain := &nftables.Chain{Name: chainName, Table: table}
	set := &nftables.Set{Name: setName, Table: table, KeyType: nftables.TypeIPAddr}
	element := func(a netip.Addr) []nftables.SetElement { return []nftables.SetElement{{Key: a.AsSlice()}} }
	cases := map[string]struct {
		change func(*nftables.Conn)
		want   string
	}{
		"the rule is gone": {func(c *nftables.Conn) { c.FlushChain(chain) }, "its rule is missing"},
		"a rule before it": {func(c *nftables.Conn) {
			c.InsertRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}})
		}, "its rules are"},
		"the table is gone":             {func(c *nftables.Conn) { c.DelTable(table) }, "10.77.0.1 is not in the kernel's set"},
		"the chain is gone":             {func(c *nftables.Conn) { c.FlushChain(chain); c.DelChain(chain) }, "is missing or not hooked"},
		"a peer is gone":                {func(c *nftables.Conn) { _ = c.SetDeleteElements(set, element(a.IPv4(1))) }, "10.77.0.1 is not in the kernel's set"},
		"a peer that was not asked for": {func(c *nftables.Conn) { _ = c.SetAddElements(set, element(a.IPv4(7))) }, "10.77.0.7 is in the kernel's set and in no table"},
	}
	for name, tc := range cases {
		if err := s.Apply(want); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Read(); err != nil || len(got) != 2 || got[0].In.Delay != 25*time.Millisecond || got[0].In.Rate != shaping.DefaultRate {
			t.Fatalf("before %s: read %v, %v", name, got, err)
		}
		nft(t, b, tc.change)
		if got, err := s.Read(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: read %v, %v; want %q", name, got, err, tc.want)
		}
	}
	if err := s.Apply(want); err != nil {
		t.Fatal(err)
	}
	got, err := s.Read()
	if diff := cmp.Diff(want.Normalized()[0].In, got[0].In); diff != "" || err != nil {
		t.Errorf("%v; (-want +got):\n%s", err, diff)
	}
	if took := udpTook(t, a, b, a.IPv4(1), b.IPv4(1)); took < 25*time.Millisecond {
		t.Errorf("a packet took %v after all was put back", took)
	}
}

func TestASecondApplyOfTheSameChangesNothing(t *testing.T) {
	a, b := pair(t)
	s := shaper(t, b)
	if err := s.Apply(peers(a, time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	before := ruleset(t, b)
	if err := s.Apply(peers(a, 2*time.Millisecond)); err != nil { // another delay does not change the rules either
		t.Fatal(err)
	}
	if ruleset(t, b) != before {
		t.Error("the rules changed")
	}
	if err := s.Apply(shaping.Table{{Address: netip.MustParseAddr("127.0.0.1")}}); err == nil {
		t.Error("loopback was accepted as a peer")
	}
	if err := s.Apply(nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(); len(got) != 0 || err != nil {
		t.Errorf("an empty table reads %v, %v", got, err)
	}
}

func TestTheLargestTable(t *testing.T) {
	_, b := pair(t)
	s := shaper(t, b)
	table := shaping.Table{}
	for i := range shaping.MaxPeers {
		a := netip.AddrFrom4([4]byte{10, 200, byte(i >> 8), byte(i)})
		if i%2 == 1 {
			a = netip.AddrFrom16([16]byte{0xfd, 1, 14: byte(i >> 8), 15: byte(i)})
		}
		table = append(table, shaping.Peer{Address: a, In: shaping.Link{Delay: time.Duration(i) * time.Microsecond}})
	}
	began := time.Now()
	if err := s.Apply(table); err != nil {
		t.Fatal(err)
	}
	applied := time.Since(began)
	got, err := s.Read()
	t.Logf("%d peers: applied in %v, read in %v", len(table), applied, time.Since(began)-applied)
	if err != nil || len(got) != shaping.MaxPeers {
		t.Fatalf("read %d peers, %.300v", len(got), err)
	}
	for i := range table { // removes all other addresses
		bytes := table[i].Address.AsSlice()
		bytes[1]++
		table[i].Address, _ = netip.AddrFromSlice(bytes)
	}
	if err := s.Apply(table); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(); err != nil || len(got) != shaping.MaxPeers || got[0].Address.As4()[1] != 201 {
		t.Fatalf("read %d peers, %.300v", len(got), err)
	}
	if err := s.Apply(table[:1]); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(); err != nil || len(got) != 1 {
		t.Errorf("read %d peers, %v; want 1", len(got), err)
	}
}

// When a base chain is deleted, the kernel drops the packets in all queues of the namespace,
// whatever program owns them. The shaper must report that.
func TestPacketsThatTheKernelFlushedAreCounted(t *testing.T) {
	a, b := pair(t)
	table := foreign(t, b)
	s := shaper(t, b)
	if err := s.Apply(peers(a, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	listener := b.ListenUDP(b.IPv4(1))
	sender := dialUDP(t, a, a.IPv4(1), listener.LocalAddr())
	const count = 10
	for range count {
		if _, err := sender.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all packets are in flight", func() bool {
		status, _, err := s.status.read()
		return err == nil && status.waiting == count
	})
	nft(t, b, func(c *nftables.Conn) { c.DelTable(table) })
	until(t, "the packets that the kernel dropped are counted", func() bool {
		h, err := s.Health()
		if err != nil {
			t.Fatal(err)
		}
		return h.Dropped == count && h.DroppedWhy == "in flight when a chain or an interface was removed: 10"
	})
}

func TestNothingIsLeftAfterClose(t *testing.T) {
	a, b := pair(t)
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := files()
	for range 3 {
		s := shaper(t, b)
		if err := s.Apply(peers(a, time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.process.command.Process.Signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("the process that delays packets is there after Close: %v", err)
		}
		if err := s.Apply(peers(a, time.Millisecond)); err == nil {
			t.Error("a closed shaper applied a table")
		}
	}
	if after := files(); after != before {
		t.Errorf("%d files are open, before it were %d", after, before)
	}
}

func TestCheckMeasuresAndLeavesNothing(t *testing.T) {
	a, p := pair(t)
	foreign(t, p)
	before := ruleset(t, p)
	p.Do(func() error { return Check(t.Context()) })
	if ruleset(t, p) != before {
		t.Error("the check left something")
	}
	s := shaper(t, p)
	if err := s.Apply(peers(a, time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	shaped := ruleset(t, p)
	p.Do(func() error { return Check(t.Context()) })
	if ruleset(t, p) != shaped {
		t.Error("the check changed what was shaped")
	}
}

func TestCheckSaysWhichCapabilityIsMissing(t *testing.T) {
	_, p := pair(t)
	err := p.Try(func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil { // only of this thread
			return err
		}
		return Check(t.Context())
	})
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "NET_ADMIN") {
		t.Errorf("without any capability: %v", err)
	}
}

func TestTwoCapabilitiesSuffice(t *testing.T) {
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("setpriv is not installed")
	}
	_, p := pair(t)
	for _, capabilities := range []string{"-all,+net_admin", "-all,+net_admin,+sys_nice"} {
		p.Do(func() error {
			command := exec.Command(setpriv, "--bounding-set="+capabilities, "--no-new-privs", os.Args[0])
			command.Env = append(os.Environ(), shapeHere+"=check")
			out, err := command.CombinedOutput()
			t.Logf("%s: %s", capabilities, out)
			if err == nil && !strings.HasPrefix(string(out), "check: <nil>\n") {
				err = fmt.Errorf("%s: %s", capabilities, out)
			}
			return err
		})
	}
}

func TestADeadProcessIsSeen(t *testing.T) {
	a, b := pair(t)
	before := ruleset(t, b)
	s := shaper(t, b)
	if err := s.Apply(peers(a, time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if err := s.process.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.process.gone
	if took := udpLost(t, a, b, a.IPv4(1), b.IPv4(1)); took != 0 {
		t.Errorf("a packet passed in %v though nobody delays it", took)
	}
	const want = "the process that delays packets has ended"
	if table, err := s.Read(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("read %v, %v; want %q", table, err, want)
	}
	if h, err := s.Health(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("health %v, %v; want %q", h, err, want)
	}
	if err := s.Remove(); err != nil {
		t.Fatal(err)
	}
	if ruleset(t, b) != before {
		t.Error("the removal left something")
	}
}
