package driver

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/client"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/replica"
	"assay.dev/assay/systems/basil/internal/transport"
	"assay.dev/assay/systems/basil/internal/workload"
	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/driver/drivertest"
)

// start makes a driver with a cluster of one replica behind it, or none.
func start(t *testing.T, replicas bool) *drivertest.Session {
	t.Helper()
	l := quorum.Layout{Sizes: quorum.For(0), Shards: 1}
	c := &quorum.Checker{Layout: l, Verifier: auth.NewVerifier(nil, 1)}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addresses := []transport.Address{{Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port}}
	if replicas {
		h := transport.ServeReplicaOn(ln, addresses, replica.Config{Checker: c, Signer: auth.Unsigned{}})
		t.Cleanup(h.Close)
	} else {
		ln.Close()
	}
	y := &workload.YCSBT{Tables: 1, KeysPerTable: 100, RangeSize: 10, ValueSize: 8}
	if err := y.Init(); err != nil {
		t.Fatal(err)
	}
	return drivertest.Start(t, &Driver{
		Host:     transport.RunClient(addresses, client.Config{Checker: c, FastPath: true, Genesis: y.Genesis}),
		Workload: y, Log: io.Discard,
	})
}

var hello = protocol.Hello{FirstClient: 40, Clients: 2, Seed: 9, RequestTimeout: 5 * time.Second}

func TestSession(t *testing.T) {
	s := start(t, true)
	s.Hello(hello)
	outcomes := map[string]int{}
	for id := range uint64(20) {
		outcomes[s.Transact(id, 40+int64(id%2), id/2).Outcome]++
	}
	if outcomes["commit"] < 10 || outcomes["commit"]+outcomes["abort"] != 20 {
		t.Errorf("got %v", outcomes)
	}
	if counters := s.Bye(); counters["fastPathCommits"] != int64(outcomes["commit"]) {
		t.Errorf("got %v, want %d commits", counters, outcomes["commit"])
	}
}

func TestReadOnlyTransactionsWriteNothing(t *testing.T) {
	y := &workload.YCSBT{Tables: 1, KeysPerTable: 100, RangeSize: 10, ValueSize: 8}
	if req := Transaction(y, 1, 2); req.Update == nil {
		t.Error("ycsb-t updates nothing")
	}
	y.ReadOnly = true
	if req := Transaction(y, 1, 2); req.Update != nil || len(req.Keys) != 10 {
		t.Errorf("read-only: got %d keys, and an update: %t", len(req.Keys), req.Update != nil)
	}
}

func TestManyAtOnce(t *testing.T) {
	s := start(t, true)
	many := hello
	many.Clients = 100
	s.Hello(many)
	for id := range uint64(100) {
		s.Begin(id, 40+int64(id), 0)
	}
	seen := map[uint64]bool{}
	for range 100 {
		seen[s.Next().ID] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d different ends", len(seen))
	}
	if err := s.End(); err != nil {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	s := start(t, true)
	hasty := hello
	hasty.RequestTimeout = time.Millisecond // shorter than the batch timeout
	s.Hello(hasty)
	quickest := time.Hour
	for id := range uint64(3) { // a busy machine may delay any of them
		begun := time.Now()
		if l := s.Transact(id, 40, id); l.Outcome != "timeout" {
			t.Errorf("got %+v", l)
		}
		quickest = min(quickest, time.Since(begun))
	}
	if quickest > 3*time.Second {
		t.Errorf("the quickest of three timeouts of 1 ms came after %v", quickest)
	}
	if err := s.End(); err != nil {
		t.Error(err)
	}
}

func TestNoServerIsThere(t *testing.T) {
	s := start(t, false)
	s.Greet(hello)
	if said := s.Refused(); !strings.Contains(said, "connect") {
		t.Errorf("got %q", said)
	}
}
