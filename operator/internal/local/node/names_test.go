package node

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// Agents use Go's resolver, which sends an OPT record and asks for both kinds of addresses.
func TestPodsFindEachOtherByName(t *testing.T) {
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n := newNames()
	a, b := netip.MustParseAddr("10.199.0.3"), netip.MustParseAddr("10.199.0.4")
	n.add(a, "t-0.t.default.svc.cluster.local", "t.default.svc.cluster.local")
	n.add(b, "t-1.t.default.svc.cluster.local", "t.default.svc.cluster.local")
	go n.serve(conn)
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	look := func(name string, want ...string) {
		t.Helper()
		got, err := resolver.LookupHost(ctx, name)
		slices.Sort(got)
		if len(want) > 0 && err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, want)
		}
	}
	look("t-0.t.default.svc.cluster.local", a.String())
	look("T-1.t.default.svc.cluster.local.", b.String())
	look("t.default.svc.cluster.local", a.String(), b.String())
	look("t-2.t.default.svc.cluster.local")
	n.remove(a)
	look("t-0.t.default.svc.cluster.local")
	look("t.default.svc.cluster.local", b.String())
}

func TestAnswersAreForQuestionsOnly(t *testing.T) {
	n := newNames()
	for name, message := range map[string][]byte{"nothing": nil, "noise": []byte("noise"), "an answer": {0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0}} {
		if got, ok := n.answer(message); ok {
			t.Errorf("%s got the answer %v", name, got)
		}
	}
}
