package driver

import (
	"net"
	"testing"
	"time"

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/driver/drivertest"
	"assay.dev/assay/systems/hotstuff-reference/internal/auth"
	"assay.dev/assay/systems/hotstuff-reference/internal/replica"
	"assay.dev/assay/systems/hotstuff-reference/internal/transport"
)

// group starts four replicas without signatures.
func group(t *testing.T) (hosts []*transport.Host, addresses []string) {
	t.Helper()
	var listeners []net.Listener
	for range 4 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners, addresses = append(listeners, l), append(addresses, l.Addr().String())
	}
	for i, l := range listeners {
		h, err := transport.Serve(l, addresses, replica.Config{
			ID: i, Sizes: replica.SizesFor(4), Tenure: 1, Truncate: true, Filter: true,
			Timeout: time.Second, MaxTimeout: 4 * time.Second, Scheme: auth.None{}, Rules: replica.SafeNodeRules(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		hosts = append(hosts, h)
	}
	return hosts, addresses
}

func TestSession(t *testing.T) {
	hosts, addresses := group(t)
	s := drivertest.Start(t, &Driver{Replicas: addresses, PayloadSize: 10})
	s.Hello(protocol.Hello{FirstClient: 5, Clients: 2, Seed: 1, RequestTimeout: 30 * time.Second})
	for i := range uint64(10) {
		s.Transact(2*i+1, 5, i)
		s.Transact(2*i+2, 6, i)
	}
	counters := s.Bye()
	if counters["commands"] != 20 || counters["executed"] != 20 || counters["timedOut"]+counters["failed"] != 0 {
		t.Errorf("counters %v, want 20 commands executed", counters)
	}
	if k, _, _ := hosts[0].Counters(); k.Commands < 19 {
		t.Errorf("a replica has executed %d commands, want 19 and more", k.Commands)
	}
}
