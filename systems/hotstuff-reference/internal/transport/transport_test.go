package transport

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/systems/hotstuff-reference/internal/auth"
	"assay.dev/assay/systems/hotstuff-reference/internal/message"
	"assay.dev/assay/systems/hotstuff-reference/internal/replica"
)

func serve(t *testing.T, n int, change func(*replica.Config)) (hosts []*Host, addresses []string) {
	t.Helper()
	var listeners []net.Listener
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners, addresses = append(listeners, l), append(addresses, l.Addr().String())
	}
	keys := t.TempDir()
	if err := auth.WriteKeys(keys, n); err != nil {
		t.Fatal(err)
	}
	for i, l := range listeners {
		cfg := replica.Config{
			ID: i, Sizes: replica.SizesFor(n), Tenure: 1, Truncate: true, Filter: true, Timeout: 500 * time.Millisecond,
			MaxTimeout: 4 * time.Second, Rules: replica.SafeNodeRules(),
		}
		scheme, err := auth.Load("ecdsa", keys, i, n)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Scheme = scheme
		change(&cfg)
		h, err := Serve(l, addresses, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		hosts = append(hosts, h)
	}
	return hosts, addresses
}

func execute(t *testing.T, c *Client, client, sequence uint64) {
	t.Helper()
	done := make(chan error, 1)
	c.Execute(t.Context(), message.Command{CommandID: message.CommandID{Client: client, Sequence: sequence}, Payload: make([]byte, 100)},
		func(err error) { done <- err })
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("command %d of client %d: %v", sequence, client, err)
		}
	case <-time.After(time.Minute):
		t.Fatalf("command %d of client %d is not executed", sequence, client)
	}
}

// TestOneReplicaEnds executes commands over TCP while one of the replicas ends.
func TestOneReplicaEnds(t *testing.T) {
	for name, p := range map[string]replica.Protocol{"chained": replica.Chained, "basic": replica.Basic} {
		t.Run(name, func(t *testing.T) {
			hosts, addresses := serve(t, 4, func(c *replica.Config) { c.Protocol, c.Tenure = p, 4 })
			c, err := Connect(addresses, 30*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for i := range uint64(20) {
				execute(t, c, 1, i)
			}
			execute(t, c, 1, 19) // again: the command has been executed
			hosts[2].Close()
			for i := range uint64(20) {
				execute(t, c, 2, i)
			}
			k, view, broken := hosts[0].Counters()
			if k.Commands != 40 || view < 40 || broken != nil {
				t.Errorf("%+v in view %d, broken: %v", k, view, broken)
			}
		})
	}
}

func TestTooFewReplicas(t *testing.T) {
	_, addresses := serve(t, 1, func(*replica.Config) {})
	for i := range 3 {
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", i+1)) // no program listens there
	}
	if _, err := Connect(addresses, 300*time.Millisecond); err == nil || !strings.Contains(err.Error(), "3 of 4") {
		t.Errorf("want an error about 3 of 4 replicas, got %v", err)
	}
}
