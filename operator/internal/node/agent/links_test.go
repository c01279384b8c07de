package agent

import (
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/netem/probe"
	"assay.dev/assay/operator/internal/node/protocol"
)

const ms = time.Millisecond

func address(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, last}) }

// Three peers: one far away, one with a lossy way back, one next door.
var neighbours = []protocol.NetworkPeer{
	{Name: "far", Address: address(1), Out: shaping.Link{Delay: 40 * ms}, In: shaping.Link{Delay: 50 * ms}},
	{Name: "lossy", Address: address(2), In: shaping.Link{Delay: 5 * ms, Loss: 0.5}},
	{Name: "near", Address: address(3)},
}

var compareLinks = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmpopts.EquateApprox(0, 1e-12), cmpopts.EquateEmpty()}

func TestTheTableHoldsTheHalfOfItsSideWithWhatFaultsAdd(t *testing.T) {
	worse := map[string][]timeline.LinkChange{
		"a": {{Peer: "far", Side: shaping.Egress, Worse: shaping.Link{Delay: 10 * ms}}, {Peer: "near", Side: shaping.Ingress, Worse: shaping.Link{Loss: 1}}},
		"b": {{Peer: "far", Side: shaping.Egress, Worse: shaping.Link{Delay: 1 * ms, Rate: 1e6}}, {Peer: "lossy", Side: shaping.Ingress, Worse: shaping.Link{Loss: 0.5}}},
		"c": {{Peer: "nobody", Side: shaping.Egress, Worse: shaping.Link{Delay: 10 * ms}}},
	}
	cases := map[string]struct {
		side  shaping.Side
		worse map[string][]timeline.LinkChange
		want  shaping.Table
	}{
		"what leaves":               {shaping.Egress, nil, shaping.Table{{Address: address(1), Out: shaping.Link{Delay: 40 * ms}}}},
		"what leaves, with faults":  {shaping.Egress, worse, shaping.Table{{Address: address(1), Out: shaping.Link{Delay: 51 * ms, Rate: 1e6}}}},
		"what arrives":              {shaping.Ingress, nil, shaping.Table{{Address: address(1), In: shaping.Link{Delay: 50 * ms}}, {Address: address(2), In: shaping.Link{Delay: 5 * ms, Loss: 0.5}}}},
		"what arrives, with faults": {shaping.Ingress, worse, shaping.Table{{Address: address(1), In: shaping.Link{Delay: 50 * ms}}, {Address: address(2), In: shaping.Link{Delay: 5 * ms, Loss: 0.75}}, {Address: address(3), In: shaping.Link{Loss: 1}}}},
	}
	for name, tc := range cases {
		if d := cmp.Diff(tc.want, tableOf(neighbours, tc.side, tc.worse), compareLinks); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestDifferencesAreToldInWords(t *testing.T) {
	want := tableOf(neighbours, shaping.Ingress, nil)
	change := func(change func(shaping.Table) shaping.Table) shaping.Table {
		return change(append(shaping.Table{}, want...))
	}
	cases := map[string]struct {
		got  shaping.Table
		want string
	}{
		"the same":               {want, ""},
		"the same, as read back": {want.Normalized(), ""},
		"rounded":                {change(func(t shaping.Table) shaping.Table { t[0].In.Delay += 64; t[1].In.Loss += 1e-10; return t }), ""},
		"2 ms off":               {change(func(t shaping.Table) shaping.Table { t[0].In.Delay += 2 * ms; return t }), "the link from far: asked delay 50ms, but delay 52ms holds"},
		"another loss":           {change(func(t shaping.Table) shaping.Table { t[1].In.Loss = 0.4; return t }), "the link from lossy: asked delay 5ms, loss 50%, but delay 5ms, loss 40% holds"},
		"a rate":                 {change(func(t shaping.Table) shaping.Table { t[0].In.Rate = 1e6; return t }), "the link from far: asked delay 50ms, but delay 50ms, rate 1000000 bit/s holds"},
		"the other half":         {shaping.Table{{Address: address(1), Out: want[0].In}, {Address: address(2), Out: want[1].In}}, "the link from far: asked delay 50ms, but delay 0s holds; the link from lossy: asked delay 5ms, loss 50%, but delay 0s holds"},
		"one is missing":         {want[1:], "the link from far is not shaped; asked: delay 50ms"},
		"nothing":                {nil, "the link from far is not shaped; asked: delay 50ms; the link from lossy is not shaped; asked: delay 5ms, loss 50%"},
		"one that was not asked": {change(func(t shaping.Table) shaping.Table {
			return append(t, shaping.Peer{Address: address(3), In: shaping.Link{Delay: ms}})
		}), "the link from near is shaped (delay 1ms), which nobody asked"},
		"another pod altogether": {change(func(t shaping.Table) shaping.Table { return append(t, shaping.Peer{Address: address(9)}) }), "the link from 10.0.0.9 is shaped (delay 0s), which nobody asked"},
	}
	for name, tc := range cases {
		if got := difference(want, tc.got, shaping.Ingress, neighbours); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestWhatFaultsAddWhenAnAgentComesBack(t *testing.T) {
	links := []timeline.LinkChange{{Peer: "far", Side: shaping.Egress, Worse: shaping.Link{Delay: ms}}}
	actions := []timeline.Action{
		{ID: "over", Kind: timeline.Degrade, At: 1, Links: links}, {ID: "end of over", Kind: timeline.Restore, At: 3, Ends: "over"},
		{ID: "on", Kind: timeline.Degrade, At: 2, Links: links}, {ID: "end of on", Kind: timeline.Restore, At: 9, Ends: "on"},
		{ID: "failed", Kind: timeline.Degrade, At: 2, Links: links},
		{ID: "not recorded", Kind: timeline.Degrade, At: 4, Links: links},
		{ID: "missed", Kind: timeline.Degrade, At: 4, Links: links}, {ID: "end of missed", Kind: timeline.Restore, At: 5, Ends: "missed"},
		{ID: "later", Kind: timeline.Degrade, At: 8, Links: links},
		{ID: "a cut", Kind: timeline.Cut, At: 1},
	}
	records := map[string]protocol.ActionRecord{"over": {}, "end of over": {}, "on": {}, "failed": {Error: "no"}, "a cut": {}}
	got := worseNow(actions, func(id string) (protocol.ActionRecord, bool) { r, ok := records[id]; return r, ok },
		func(a timeline.Action) bool { return a.At <= 6 })
	if d := cmp.Diff(map[string][]timeline.LinkChange{"on": links, "not recorded": links}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDisturbancesCoverFaultsAndWhatFollowsThem(t *testing.T) {
	const second = int64(time.Second)
	zero := 100 * second
	actions := []timeline.Action{
		{ID: "cut", Kind: timeline.Cut, At: time.Second, Out: []string{"far"}, In: []string{"near"}},
		{ID: "heal", Kind: timeline.Heal, At: 2 * time.Second, Ends: "cut"},
		{ID: "degrade", Kind: timeline.Degrade, At: 3 * time.Second, Links: []timeline.LinkChange{{Peer: "far", Worse: shaping.Link{Delay: time.Second}}}},
		{ID: "restore", Kind: timeline.Restore, At: 4 * time.Second, Ends: "degrade"},
		{ID: "kill", Kind: timeline.Kill, At: 5 * time.Second},
	}
	margin, roundTrip := int64(disturbanceMargin), int64(190*ms)
	want := []probe.Disturbance{
		{Peer: address(1), From: zero + second - margin, Until: zero + 2*second + roundTrip + margin},
		{Peer: address(3), From: zero + second - margin, Until: zero + 2*second + roundTrip + margin},
		{Peer: address(1), From: zero + 3*second - margin, Until: zero + 6*second + roundTrip + margin},
		{From: zero + 5*second - margin, Until: math.MaxInt64},
	}
	if d := cmp.Diff(want, disturbances(actions, neighbours, zero), compareLinks); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestVolumesThatAKillEmpties(t *testing.T) {
	volumes := []protocol.Volume{{Path: "/memory", Memory: true}, {Path: "/disk"}}
	for disk, want := range map[bool][]string{false: {"/memory"}, true: {"/memory", "/disk"}} {
		if d := cmp.Diff(want, lostVolumes(volumes, disk)); d != "" {
			t.Errorf("disk lost: %v (-want +got):\n%s", disk, d)
		}
	}
}

func TestARoleIsKnownByTheLastLineThatTells(t *testing.T) {
	folder := t.TempDir()
	write := func(stream, text string) {
		t.Helper()
		file, err := os.OpenFile(filepath.Join(folder, stream), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = file.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	w, err := newRoleLog(protocol.RoleProbe{Role: "leader", Gained: "became leader", Lost: "became (follower|candidate)", Stream: "Any", Container: "c"},
		func(_, stream string) string { return filepath.Join(folder, stream) })
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	steps := []struct {
		stream, text string
		want         bool
	}{
		{"Stdout", "starting\n", false},
		{"Stdout", "became leader\nworking\n", true},
		{"Stderr", "noise\n", true},
		{"Stderr", "became follo", true}, // half a line
		{"Stderr", "wer\r\n", false},
		{"Stdout", "became follower\nbecame leader\n", true},
		{"Stdout", "became leader\nbecame candidate\n", false},
		{"Stdout", "became leader\n", true},
	}
	for _, step := range steps {
		write(step.stream, step.text)
		if has, err := w.look(); err != nil || has != step.want {
			t.Errorf("after %q: %v (%v), want %v", step.text, has, err, step.want)
		}
	}
	w.forget()
	if has, _ := w.look(); has {
		t.Error("a process that was killed still has its role")
	}
	if _, err := newRoleLog(protocol.RoleProbe{Gained: "("}, nil); err == nil || !strings.Contains(err.Error(), "gained") {
		t.Errorf("a pattern that is none: %v", err)
	}
}

// The path between two pods takes 25 ms. That is right for a link without a requested delay, shaped
// or not. A requested delay comes on top, and must not hide in the 25 ms.
func TestPathsThatAreLong(t *testing.T) {
	seen := func(took time.Duration) []probe.Measurement {
		s := probe.Spread{Min: took, Median: took, Max: took}
		return []probe.Measurement{{Peer: address(3), Sent: 7, Answered: 7, OneWay: true, Out: s, In: s, RoundTrip: probe.Spread{Min: 2 * took, Median: 2 * took, Max: 2 * took}}}
	}
	for name, tc := range map[string]struct {
		backend   shaping.Backend
		link      shaping.Link
		tolerance time.Duration
		want      int // how many things are wrong
	}{
		"no shaper":                                     {},
		"nothing is asked, and a fault will":            {backend: shaping.NFQueue},
		"the same, where the experiment tolerates more": {backend: shaping.NFQueue, tolerance: 20 * time.Millisecond},
		"a delay is asked":                              {backend: shaping.NFQueue, link: shaping.Link{Delay: 10 * time.Millisecond}, want: 2},
		"the same, where as much is tolerated":          {backend: shaping.NFQueue, link: shaping.Link{Delay: 10 * time.Millisecond}, tolerance: 25 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			n := protocol.Network{Backend: tc.backend, Tolerance: tc.tolerance, Peers: []protocol.NetworkPeer{{Name: "near", Address: address(3), Out: tc.link, In: tc.link}}}
			wrong := probe.Judge(pairsOf(n.Peers), seen(25*time.Millisecond), seen(25*time.Millisecond+tc.link.Delay), gateTolerance(n))
			if len(wrong) != tc.want {
				t.Errorf("wrong: %+v, want %d", wrong, tc.want)
			}
		})
	}
}
