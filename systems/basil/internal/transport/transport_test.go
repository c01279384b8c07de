package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/client"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/replica"
	"assay.dev/assay/systems/basil/internal/wire"
)

// startCluster runs n=5f+1 replicas with real signatures.
func startCluster(t *testing.T, f int) ([]*ReplicaHost, []Address, func() *quorum.Checker) {
	t.Helper()
	l := quorum.Layout{Sizes: quorum.For(f), Shards: 1}
	privs, pubs, err := auth.Ephemeral(l.N)
	if err != nil {
		t.Fatal(err)
	}
	checker := func() *quorum.Checker {
		return &quorum.Checker{Layout: l, Verifier: auth.NewVerifier(pubs, l.N)}
	}
	var listeners []net.Listener
	var addresses []Address
	for range l.N {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, ln)
		addresses = append(addresses, Address{"127.0.0.1", ln.Addr().(*net.TCPAddr).Port})
	}
	var hosts []*ReplicaHost
	for i, ln := range listeners {
		h := ServeReplicaOn(ln, addresses, replica.Config{Index: i, Checker: checker(), Signer: privs[i], BatchSize: 1})
		t.Cleanup(h.Close)
		hosts = append(hosts, h)
	}
	return hosts, addresses, checker
}

func startClient(t *testing.T, addresses []Address, c *quorum.Checker) *ClientHost {
	t.Helper()
	h := RunClient(addresses, client.Config{
		Checker: c, FastPath: true, Genesis: func(wire.Key) []byte { return []byte("g") },
	})
	t.Cleanup(h.Close)
	if _, err := h.WaitConnected(time.Minute); err != nil {
		t.Fatal(err)
	}
	return h
}

func run(h *ClientHost, timeout time.Duration) client.Result {
	done := make(chan client.Result, 1)
	h.Post(func() {
		h.Client.Begin(client.Request{
			Keys: []wire.Key{1}, Timeout: timeout,
			Update: func(r []client.Row) []wire.Write {
				return []wire.Write{{Key: 1, Value: append(r[0].Value, '+')}}
			},
			Done: func(r client.Result) { done <- r },
		})
	})
	return <-done
}

func TestSilentReplicaDelaysNothingButTheFastPath(t *testing.T) {
	hosts, addresses, checker := startCluster(t, 1)
	h := startClient(t, addresses, checker())
	hosts[3].Mute()
	for i := range 10 {
		if res := run(h, time.Minute); res.Outcome != client.Committed {
			t.Fatalf("transaction %d: %+v", i, res)
		}
	}
	var n client.Counters
	h.Do(func() { n = h.Client.Counters })
	if n.SlowPathCommits != 10 || n.FastPathTimeouts != 10 {
		t.Errorf("got %+v", n)
	}
}

// proxy stands between client and replica. It can play a machine that has vanished: it drops all
// bytes and closes no connection.
type proxy struct {
	listener net.Listener
	target   string
	gone     atomic.Bool
}

func startProxy(t *testing.T, target Address) (*proxy, Address) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: ln, target: target.String()}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", p.target)
			if err != nil {
				in.Close()
				continue
			}
			// A connection that survived the outage is useless: its packets were lost, and TCP's
			// next attempt is much later.
			doomed := &atomic.Bool{}
			go p.copy(in, out, doomed)
			go p.copy(out, in, doomed)
		}
	}()
	return p, Address{"127.0.0.1", ln.Addr().(*net.TCPAddr).Port}
}

func (p *proxy) copy(to, from net.Conn, doomed *atomic.Bool) {
	defer to.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if p.gone.Load() {
			doomed.Store(true)
		}
		if err != nil {
			return
		}
		if doomed.Load() {
			continue
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func TestVanishedReplicaIsUsableSoonAfterItsReturn(t *testing.T) {
	_, addresses, checker := startCluster(t, 0)
	const trials = 3 // a busy machine may delay everything for seconds, once
	for trial := 1; !usableSoon(t, addresses[0], checker()); trial++ {
		if trial == trials {
			t.Fatalf("not usable 2.5 s after it came back, %d times", trials)
		}
	}
}

func usableSoon(t *testing.T, replica Address, checker *quorum.Checker) bool {
	t.Helper()
	p, via := startProxy(t, replica)
	h := startClient(t, []Address{via}, checker)
	if res := run(h, time.Minute); res.Outcome != client.Committed {
		t.Fatalf("before: %+v", res)
	}
	p.gone.Store(true)
	if res := run(h, 2*time.Second); res.Outcome != client.TimedOut {
		t.Fatalf("while it was gone: %+v", res)
	}
	p.gone.Store(false)
	deadline := time.Now().Add(2500 * time.Millisecond)
	for {
		if res := run(h, 500*time.Millisecond); res.Outcome == client.Committed {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

func TestGarbageIsNotFatal(t *testing.T) {
	hosts, addresses, checker := startCluster(t, 0)
	h := startClient(t, addresses, checker())
	for _, garbage := range []string{"GET / HTTP/1.1\r\n\r\n", "\xff\xff\xff\xff", "\x00\x00\x00\x01\xee"} {
		c, err := net.Dial("tcp", addresses[0].String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, garbage)
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if garbage != "GET / HTTP/1.1\r\n\r\n" {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
				t.Errorf("%q: the connection stays open: %v", garbage, err)
			}
		}
		c.Close()
	}
	if res := run(h, time.Minute); res.Outcome != client.Committed {
		t.Errorf("got %+v", res)
	}
	_ = hosts
}

func TestWaitConnected(t *testing.T) {
	hosts, addresses, checker := startCluster(t, 1)
	// The test waits the whole time for a missing node. A busy machine may take longer to connect
	// the others.
	wait := func(right func(missing []int, err error) bool) (missing []int, err error) {
		for _, patience := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 20 * time.Second} {
			h := RunClient(addresses, client.Config{Checker: checker()})
			t.Cleanup(h.Close)
			if missing, err = h.WaitConnected(patience); right(missing, err) {
				break
			}
		}
		return missing, err
	}
	one := func(missing []int, err error) bool { return err == nil && len(missing) == 1 && missing[0] == 0 }
	hosts[0].Close()
	if missing, err := wait(one); !one(missing, err) {
		t.Errorf("one missing: got %v, %v", missing, err)
	}
	two := func(_ []int, err error) bool { return err != nil && strings.Contains(err.Error(), "2 of 6") }
	hosts[1].Close()
	if missing, err := wait(two); !two(missing, err) {
		t.Errorf("two missing: got %v, %v", missing, err)
	}
}

func TestLoadCluster(t *testing.T) {
	six := make([]Address, 6)
	for i := range six {
		six[i] = Address{"replica", 7087}
	}
	shard := func(a []Address) map[string]any { return map[string]any{"replicas": a} }
	for name, tc := range map[string]struct {
		content any
		want    string
	}{
		"valid":         {map[string]any{"f": 1, "shards": []any{shard(six), shard(six)}}, ""},
		"no shards":     {map[string]any{"f": 1}, "shards is empty"},
		"five replicas": {map[string]any{"f": 1, "shards": []any{shard(six[:5])}}, "needs 6"},
		"negative f":    {map[string]any{"f": -1, "shards": []any{shard(six)}}, "f is -1"},
		"no port":       {map[string]any{"f": 0, "shards": []any{shard([]Address{{"a", 0}})}}, "port"},
		"not an object": {[]int{1}, "parse"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := json.Marshal(tc.content)
			file := filepath.Join(t.TempDir(), "cluster.json")
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := LoadCluster(file)
			switch {
			case tc.want == "" && (err != nil || len(c.Addresses()) != 12):
				t.Errorf("got %v, %v", c, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
