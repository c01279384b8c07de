package edt

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
)

func TestTheNextProcessTakesOver(t *testing.T) {
	p := newPods(t)
	first := p.shaper()
	before := p.state()
	table := map[netip.Addr]shaping.Link{p.four: {Delay: 600 * time.Millisecond, Loss: 1e-9}}
	p.mustApply(first, table)
	taken := p.listen(p.four).taking(20)
	conn := p.dial(p.four)
	sent := send(t, conn, 0, 10, 0)
	first.Close() // as the kernel does for a killed process

	second := p.open()
	if table, err := second.Read(); err == nil || !strings.Contains(err.Error(), "Apply adopts it") {
		t.Errorf("before the adoption: read %v, %v", table, err)
	}
	p.mustApply(second, table)
	p.mustRead(second, table)
	sent = append(sent, send(t, conn, 10, 10, 0)...)
	var took []time.Duration
	for i, a := range taken() {
		if a.number != i {
			t.Errorf("packet %d came in the place of %d", a.number, i)
		}
		took = append(took, a.at.Sub(sent[i]))
	}
	band(t, "across the adoption", took, 600*time.Millisecond)
	p.healthy(second)
	second.Close()

	// The third shaper never applied a table.
	taken = p.listen(p.four2).taking(0)
	if err := p.open().Remove(); err != nil {
		t.Error(err)
	}
	taken()
	if after := p.state(); after != before {
		t.Errorf("the removal left\n%s instead of\n%s", after, before)
	}
}

func TestARemovalWaitsForPacketsInFlightAndRestoresTheDevice(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	if err := netlink.LinkSetGSOMaxSegs(p.link, 44); err != nil {
		t.Fatal(err)
	}
	before := p.state()
	for _, link := range []shaping.Link{{Delay: 300 * time.Millisecond}, {Delay: 300 * time.Millisecond, Loss: 1e-9}, {Delay: 300 * time.Millisecond, Rate: 2_000_000_000}} {
		p.mustApply(s, map[netip.Addr]shaping.Link{p.four: link})
		device, err := netlink.LinkByName("eth0")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := device.Attrs().GSOMaxSegs == 1, link.Loss > 0 || link.Rate > 0; got != want {
			t.Errorf("%+v: gso_max_segs is %d", link, device.Attrs().GSOMaxSegs)
		}
		receiver := p.listen(p.four)
		taken := receiver.taking(20)
		send(t, p.dial(p.four), 0, 20, 0)
		if err := s.Remove(); err != nil {
			t.Fatal(err)
		}
		taken()
		receiver.conn.Close()
		if after := p.state(); after != before {
			t.Errorf("%+v: the removal left\n%s instead of\n%s", link, after, before)
		}
		if table, err := s.Read(); table != nil || err != nil {
			t.Errorf("after the removal: read %v (%v)", table, err)
		}
	}
	if err := s.Remove(); err != nil {
		t.Errorf("a second removal: %v", err)
	}
	if err := netlink.LinkDel(p.link); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(); err != nil {
		t.Errorf("the removal from a device that is gone: %v", err)
	}
}

func TestARemovalLosesLittle(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: 100 * time.Millisecond}})
	const packets = 400
	for _, to := range []netip.Addr{p.four, p.four2} {
		r, conn := p.listen(to), p.dial(to)
		came := make(chan int, 1)
		go func() {
			buffer, n := make([]byte, 100), 0
			for n < packets {
				if r.conn.SetReadDeadline(time.Now().Add(time.Second)) != nil {
					break
				}
				if _, err := r.conn.Read(buffer); err != nil {
					break
				}
				n++
			}
			came <- n
		}()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for i := range packets {
				_, _ = conn.Write([]byte{byte(i >> 8), byte(i)})
				time.Sleep(time.Millisecond)
			}
		}()
		time.Sleep(150 * time.Millisecond)
		if err := s.Remove(); err != nil {
			t.Fatal(err)
		}
		<-sent
		lost := packets - <-came
		t.Logf("to %s: %d packets of %d were lost", to, lost, packets)
		if lost > 20 {
			t.Errorf("to %s: %d packets of %d were lost", to, lost, packets)
		}
		p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: 100 * time.Millisecond}})
	}
}

// Read detects every change that another program makes to the device, and Apply repairs the objects
// of this package.
func TestWhatAnotherProgramChangedIsSeenAndMended(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	before := p.state()
	table := map[netip.Addr]shaping.Link{p.four: {Delay: 30 * time.Millisecond, Loss: 1e-9}, p.six: {Delay: 10 * time.Millisecond}}
	root := qdisc{handle: fqHandle, parent: netlink.HANDLE_ROOT}
	clsact := qdisc{handle: netlink.MakeHandle(0xffff, 0), parent: netlink.HANDLE_CLSACT}
	ours := func() *netlink.BpfFilter {
		seen, err := s.look()
		if err != nil {
			t.Fatal(err)
		}
		return seen.filter
	}
	for _, tc := range []struct {
		name string
		do   func() error
		want string
	}{
		{"the filter is deleted", func() error { return netlink.FilterDel(ours()) }, "our filter is missing"},
		{"fq is deleted", func() error { return s.tc.remove(s.device, root) }, "our root qdisc fq is missing; it is noqueue"},
		{"clsact is deleted", func() error { return s.tc.remove(s.device, clsact) }, "our clsact qdisc and its filter are missing"},
		{"fq has another limit", func() error {
			request := s.tc.request(unix.RTM_NEWQDISC, unix.NLM_F_ACK|unix.NLM_F_REPLACE,
				&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(s.device), Handle: fqHandle, Parent: netlink.HANDLE_ROOT})
			request.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("fq")))
			options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
			options.AddRtAttr(nl.TCA_FQ_FLOW_PLIMIT, nl.Uint32Attr(100))
			request.AddData(options)
			_, err := request.Execute(unix.NETLINK_ROUTE, 0)
			return err
		}, "fq a55a: has flow_limit 100 instead of 100000"},
		{"gso_max_segs is raised", func() error { return netlink.LinkSetGSOMaxSegs(p.link, 65535) }, "gso_max_segs is 65535 instead of 1"},
		{"the filter runs another program", func() error { return s.attach(loaded(t, nil), 65535) }, "runs eBPF program"},
	} {
		p.mustApply(s, table)
		p.mustRead(s, table)
		if err := tc.do(); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if got, err := s.Read(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: read %v, %v; want the error %q", tc.name, got, err, tc.want)
		}
	}
	p.mustApply(s, table)
	if err := s.program.links.Delete(p.four.As16()); err != nil {
		t.Fatal(err)
	}
	p.mustRead(s, map[netip.Addr]shaping.Link{p.six: table[p.six]})
	p.mustApply(s, table)
	p.mustRead(s, table)
	band(t, "after all of it", p.listen(p.four).receive(p.dial(p.four), 20, time.Millisecond), 30*time.Millisecond)

	// Apply neither repairs nor removes an object of another program.
	p.recorder()
	for _, err := range []error{s.Apply(out(table)), func() error { _, err := s.Read(); return err }()} {
		if err == nil || !strings.Contains(err.Error(), "a filter of another program") {
			t.Errorf("beside a filter of somebody else: %v", err)
		}
	}
	if err := s.Remove(); err == nil || !strings.Contains(err.Error(), "it has a qdisc clsact ffff:") {
		t.Errorf("the removal beside a filter of somebody else: %v", err)
	}
	if err := s.tc.remove(s.device, clsact); err != nil {
		t.Fatal(err)
	}
	p.mustApply(s, table)
	htb := netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: s.device, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT})
	if err := netlink.QdiscReplace(htb); err != nil {
		t.Fatal(err)
	}
	const want = "its root qdisc is htb 1:"
	for _, err := range []error{s.Apply(out(table)), func() error { _, err := s.Read(); return err }(), s.Remove()} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with a root qdisc of somebody else: %v, want %q", err, want)
		}
	}
	if err := netlink.QdiscDel(htb); err != nil {
		t.Fatal(err)
	}
	if after := p.state(); after != before {
		t.Errorf("left\n%s instead of\n%s", after, before)
	}
}

func TestHealthReportsPacketsThatFQDropped(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: 500 * time.Millisecond}})
	request := s.tc.request(unix.RTM_NEWQDISC, unix.NLM_F_ACK|unix.NLM_F_REPLACE,
		&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(s.device), Handle: fqHandle, Parent: netlink.HANDLE_ROOT})
	request.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("fq")))
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	options.AddRtAttr(nl.TCA_FQ_FLOW_PLIMIT, nl.Uint32Attr(5))
	request.AddData(options)
	if _, err := request.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		t.Fatal(err)
	}
	taken := p.listen(p.four).taking(5)
	send(t, p.dial(p.four), 0, 12, 0)
	taken()
	want := netem.Health{Dropped: 7, DroppedWhy: "fq dropped 7, of these flows_plimit 7"}
	if got, err := s.Health(); err != nil || got != want {
		t.Errorf("health %+v (%v), want %+v", got, err, want)
	}
}
