package client_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"assay.dev/assay/systems/awkward/internal/client"
	"assay.dev/assay/systems/awkward/internal/group"
	"assay.dev/assay/systems/awkward/internal/identity"
	"assay.dev/assay/systems/awkward/internal/server"
)

// names resolves only the names that it holds.
type names map[string]netip.Addr

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	ip, ok := n[host]
	if !ok {
		return nil, errors.New("no such host " + host)
	}
	return []netip.Addr{ip}, nil
}

// buffer is a bytes.Buffer that several goroutines may use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// cluster is a running system, each replica on a loopback address of its own.
type cluster struct {
	config   group.Config
	names    names
	keys     string
	dir      string
	servers  []server.Options
	stop     []context.CancelFunc
	ended    []chan error
	stderr   []*buffer
	stopOnce sync.Once
}

func newCluster(t *testing.T, n, f int) *cluster {
	t.Helper()
	c := &cluster{config: group.Config{F: f}, names: names{}, keys: t.TempDir(), dir: t.TempDir()}
	if err := identity.Generate(c.keys, n, rand.Reader); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		ip := netip.AddrFrom4([4]byte{127, 0, 7, byte(i + 1)})
		host := "replica-" + strconv.Itoa(i)
		c.names[host] = ip
		c.config.Replicas = append(c.config.Replicas, fmt.Sprintf("%s:%d", host, freePort(t, ip)))
	}
	for i := range n {
		c.stderr = append(c.stderr, &buffer{})
		c.servers = append(c.servers, server.Options{
			Config: c.config, Index: i, Keys: c.keys, Resolver: c.names,
			Load: 50 * time.Millisecond, Service: 2 * time.Millisecond,
			StatsFile: filepath.Join(c.dir, fmt.Sprintf("stats-%d.json", i)),
			Stdout:    &buffer{}, Stderr: c.stderr[i],
		})
	}
	return c
}

func freePort(t *testing.T, ip netip.Addr) int {
	t.Helper()
	l, err := net.Listen("tcp4", netip.AddrPortFrom(ip, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (c *cluster) start(t *testing.T) {
	t.Helper()
	for i := range c.servers {
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		c.stop, c.ended = append(c.stop, stop), append(c.ended, ended)
		go func() { ended <- server.Run(ctx, c.servers[i]) }()
	}
	t.Cleanup(c.end)
}

// end stops all replicas and waits for their statistics.
func (c *cluster) end() {
	c.stopOnce.Do(func() {
		for i, stop := range c.stop {
			stop()
			<-c.ended[i]
		}
	})
}

func (c *cluster) ready(t *testing.T) {
	t.Helper()
	for i := range c.stderr {
		eventually(t, func() bool { return strings.Contains(c.stderr[i].String(), server.ReadyLine) })
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("did not happen within a minute")
		}
	}
}

// longer runs a trial for a given time. If that was too short, it runs the trial again with more
// time: a busy machine may delay everything for seconds.
func longer(t *testing.T, trial func(long time.Duration) error) {
	t.Helper()
	var err error
	for _, long := range []time.Duration{600 * time.Millisecond, 4 * time.Second, 20 * time.Second} {
		if err = trial(long); err == nil {
			return
		}
		t.Logf("with %v: %v", long, err)
	}
	t.Error(err)
}

func (c *cluster) stats(t *testing.T, i int) server.Stats {
	t.Helper()
	text, err := os.ReadFile(c.servers[i].StatsFile)
	if err != nil {
		t.Fatal(err)
	}
	var s server.Stats
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *cluster) clients(out, errs *buffer) client.Options {
	return client.Options{
		Config: c.config, Keys: c.keys, Resolver: c.names, First: 3, Clients: 2,
		Duration: 600 * time.Millisecond, WarmUp: 200 * time.Millisecond, CoolDown: 100 * time.Millisecond,
		PrintTime: 50 * time.Millisecond, Stdout: out, Stderr: errs,
	}
}

// lines checks the report and returns how many operations it has.
func lines(t *testing.T, report string) int {
	t.Helper()
	n := 0
	for line := range strings.Lines(report) {
		var latency, stamp, id int64
		if _, err := fmt.Sscanf(line, "rw,%d,%d,%d\n", &latency, &stamp, &id); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if latency < (2*time.Millisecond).Nanoseconds() || stamp <= 0 || id < 3 || id > 4 {
			t.Fatalf("line %q is not possible: an operation takes 2 ms and the clients are 3 and 4", line)
		}
		n++
	}
	return n
}

func TestRunPrintsAtTheEndAndHangs(t *testing.T) {
	longer(t, func(long time.Duration) error { return printsAndHangs(t, long) })
}

func printsAndHangs(t *testing.T, long time.Duration) error {
	t.Helper()
	c := newCluster(t, 4, 1)
	c.start(t)
	c.ready(t)
	out, errs := &buffer{}, &buffer{}
	ctx, sigterm := context.WithCancel(context.Background())
	defer sigterm()
	exited := make(chan int, 1)
	o := c.clients(out, errs)
	o.Duration = long
	go func() {
		code, err := client.Run(ctx, o)
		if err != nil {
			t.Error(err)
		}
		exited <- code
	}()
	eventually(t, func() bool { return strings.Contains(errs.String(), client.EndLine) })
	report := out.String()
	reported := lines(t, report)
	var committed, printed int
	if _, err := fmt.Sscanf(errs.String(), "committed %d, printed %d", &committed, &printed); err != nil {
		t.Fatalf("stderr %q: %v", errs.String(), err)
	}
	if reported != printed {
		t.Errorf("%d lines for printed %d; want the same", reported, printed)
	}
	select {
	case code := <-exited:
		t.Fatalf("exited with %d though nobody asked; it must hang", code)
	case <-time.After(100 * time.Millisecond):
	}
	sigterm()
	if code := <-exited; code != client.CrashCode {
		t.Errorf("exit code %d, want %d", code, client.CrashCode)
	}
	if got := strings.TrimPrefix(out.String(), report); got != client.Rubbish {
		t.Errorf("after SIGTERM it printed %q, want %q", got, client.Rubbish)
	}
	c.end()
	for i := range c.servers {
		s := c.stats(t, i)
		// Every replica gets every operation. Operations that are cut off at the end count at some
		// replicas only.
		if s.Served > uint64(committed)+2 || s.Early != 0 {
			t.Errorf("replica %d served %d (%d early), want about the %d committed", i, s.Served, s.Early, committed)
		}
		if s.Served+2 < uint64(committed) {
			return fmt.Errorf("replica %d served %d, want about the %d committed", i, s.Served, committed)
		}
	}
	if reported == 0 || committed <= printed {
		return fmt.Errorf("%d lines of committed %d; want fewer than all", reported, committed)
	}
	return nil
}

func TestRunLosesItsResultsOnSIGTERM(t *testing.T) {
	c := newCluster(t, 4, 1)
	c.start(t)
	c.ready(t)
	out, errs := &buffer{}, &buffer{}
	ctx, sigterm := context.WithTimeout(context.Background(), 400*time.Millisecond)
	defer sigterm()
	o := c.clients(out, errs)
	o.Duration = time.Hour
	code, err := client.Run(ctx, o)
	if err != nil || code != client.CrashCode || out.String() != client.Rubbish {
		t.Errorf("code %d, error %v, stdout %q; want %d and nothing but rubbish", code, err, out.String(), client.CrashCode)
	}
}

func TestStressPrintsOnSIGTERM(t *testing.T) {
	longer(t, func(long time.Duration) error { return printsOnSIGTERM(t, long) })
}

func printsOnSIGTERM(t *testing.T, long time.Duration) error {
	t.Helper()
	c := newCluster(t, 4, 1)
	c.start(t)
	c.ready(t)
	out, errs := &buffer{}, &buffer{}
	ctx, sigterm := context.WithCancel(context.Background())
	exited := make(chan int, 1)
	go func() {
		code, err := client.Stress(ctx, c.clients(out, errs))
		if err != nil {
			t.Error(err)
		}
		exited <- code
	}()
	time.Sleep(long / 2)
	if out.String() != "" {
		t.Errorf("printed %q before it was asked to end", out.String())
	}
	sigterm()
	if code := <-exited; code != client.TerminatedCode {
		t.Errorf("exit code %d, want %d", code, client.TerminatedCode)
	}
	if n := lines(t, out.String()); n == 0 {
		return errors.New("printed no operation")
	}
	return nil
}

func TestQuorumDoesWithoutASilentReplica(t *testing.T) {
	longer(t, func(long time.Duration) error {
		c := newCluster(t, 4, 1)
		c.start(t)
		c.ready(t)
		out, errs := &buffer{}, &buffer{}
		o := c.clients(out, errs)
		o.Duration = long
		ctx, sigterm := context.WithCancel(context.Background())
		defer sigterm()
		go func() { _, _ = client.Run(ctx, o) }()
		time.Sleep(100 * time.Millisecond)
		c.stop[3]() // in the warm-up, which is not reported
		eventually(t, func() bool { return strings.Contains(errs.String(), client.EndLine) })
		if n := lines(t, out.String()); n == 0 {
			return errors.New("no operation committed with 3 of 4 replicas")
		}
		return nil
	})
}

// A planned failure happens, and not before the first operation.
func TestMisfortunes(t *testing.T) {
	for name, tc := range map[string]struct {
		server func(*server.Options)
		client func(*client.Options)
		code   int
		err    bool // the client's error
		crash  bool // a server crashes
	}{
		"replicas that crash": {
			server: func(o *server.Options) { o.CrashAfter = 200 * time.Millisecond }, client: func(o *client.Options) { o.Duration = time.Minute }, code: 1, err: true, crash: true,
		},
		"replicas that answer no more": {server: func(o *server.Options) { o.StallAfter = 300 * time.Millisecond }},
		"a client that dies": {
			client: func(o *client.Options) { o.DieAfter, o.Duration = 500*time.Millisecond, time.Minute }, code: client.CrashCode,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 4, 1)
			for i := range c.servers {
				if tc.server != nil {
					tc.server(&c.servers[i])
				}
			}
			c.start(t)
			c.ready(t)
			out, errs := &buffer{}, &buffer{}
			o := c.clients(out, errs)
			o.WarmUp, o.CoolDown = 0, 0
			if tc.client != nil {
				tc.client(&o)
			}
			ctx, sigterm := context.WithCancel(context.Background())
			defer sigterm()
			if tc.code == 0 {
				go func() {
					eventually(t, func() bool { return strings.Contains(errs.String(), client.EndLine) })
					sigterm()
				}()
			}
			code, err := client.Run(ctx, o)
			if tc.code != 0 && code != tc.code || (err != nil) != tc.err {
				t.Errorf("the client ended with %d, %v", code, err)
			}
			if tc.crash {
				for i, ended := range c.ended {
					if err := <-ended; !errors.Is(err, server.ErrCrashed) {
						t.Errorf("replica %d ended with %v", i, err)
					}
					ended <- nil // for end
				}
				return
			}
			if n := lines(t, strings.TrimSuffix(out.String(), client.Rubbish)); n == 0 {
				t.Error("nothing was committed before")
			}
		})
	}
}

func TestTooEarly(t *testing.T) {
	c := newCluster(t, 4, 1)
	for i := range c.servers {
		c.servers[i].Load = time.Hour // until the end of the test
	}
	c.start(t)
	for i := range c.stderr {
		eventually(t, func() bool { return strings.Contains(c.stderr[i].String(), "listens") })
	}
	out, errs := &buffer{}, &buffer{}
	o := c.clients(out, errs)
	o.Duration = time.Minute // it fails at once
	code, err := client.Run(context.Background(), o)
	if code != 1 || err == nil || !strings.Contains(err.Error(), "not loaded") || out.String() != "" {
		t.Errorf("code %d, error %v, stdout %q; want a failure for an answer that is garbage", code, err, out.String())
	}
}

func TestServerRefusesToStart(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *cluster)
		want   string
	}{
		"a key is missing":      {func(c *cluster) { os.Remove(filepath.Join(c.keys, "3.pub")) }, "3.pub"},
		"a name does not exist": {func(c *cluster) { delete(c.names, "replica-2") }, "resolve replica 2"},
		"its name is another's": {func(c *cluster) { c.names["replica-0"] = netip.MustParseAddr("192.0.2.1") }, "bind the address"},
		"not in the config":     {func(c *cluster) { c.servers[0].Index = 4 }, "replica 4 is not in the configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 4, 1)
			tc.change(c)
			err := server.Run(context.Background(), c.servers[0])
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestServerRefusesAPeerThatIsAnother(t *testing.T) {
	c := newCluster(t, 4, 1)
	wrong := c.config
	wrong.Replicas = []string{c.config.Replicas[0], c.config.Replicas[2], c.config.Replicas[1], c.config.Replicas[3]}
	c.servers[0].Config = wrong
	for i := range c.servers { // all replicas must still run when the wrong one looks
		c.servers[i].Load = 300 * time.Millisecond
	}
	c.start(t)
	select {
	case err := <-c.ended[0]:
		if err == nil || !strings.Contains(err.Error(), "is not replica 1") {
			t.Errorf("error = %v, want one that says who is not replica 1", err)
		}
		c.ended[0] <- nil // for end
	case <-time.After(time.Minute):
		t.Fatal("replica 0 did not give up")
	}
}
