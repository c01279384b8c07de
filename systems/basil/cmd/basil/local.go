package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/client"
	"assay.dev/assay/systems/basil/internal/driver"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/transport"
	"assay.dev/assay/systems/basil/internal/workload"
)

// local is a whole cluster in this process, over loopback TCP.
type local struct {
	cl clientFlags
	rf replicaFlags
	wf workloadFlags

	f, shards, clients int
	duration, warmUp   time.Duration
	kill               int
	crypto             bool
	seed               uint64
}

func localCommand() *cobra.Command {
	var l local
	c := &cobra.Command{
		Use:   "local",
		Short: "Run replicas and closed-loop clients in this process and print throughput and latency",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.run(cmd.OutOrStdout())
		},
	}
	f := c.Flags()
	f.IntVar(&l.f, "f", 1, "faults tolerated in each shard, 0 to 5; a shard has 5f+1 replicas")
	f.IntVar(&l.shards, "shards", 1, "number of shards, 1 to 16")
	f.IntVar(&l.clients, "clients", 5, "closed-loop clients, 1 to 10000")
	f.DurationVar(&l.duration, "duration", 5*time.Second, "time measured, 100ms to 1h")
	f.DurationVar(&l.warmUp, "warm-up", time.Second, "time before it, 0s to 1h")
	f.IntVar(&l.kill, "kill-replica", -1, "replica that falls silent before the clients start; -1: none")
	f.BoolVar(&l.crypto, "crypto", true, "sign and verify replies")
	f.Uint64Var(&l.seed, "seed", 1, "seed of the workload")
	l.cl.register(c)
	l.rf.register(c)
	l.wf.register(c)
	return c
}

func (l *local) run(out io.Writer) error {
	layout := quorum.Layout{Sizes: quorum.For(l.f), Shards: l.shards}
	y, err := l.wf.config()
	if err := firstError(err,
		within("f", l.f, 0, 5), within("shards", l.shards, 1, 16), within("clients", l.clients, 1, 10000),
		within("duration", l.duration, 100*time.Millisecond, time.Hour), within("warm-up", l.warmUp, 0, time.Hour),
		within("kill-replica", l.kill, -1, layout.Replicas()-1)); err != nil {
		return err
	}
	y.Seed = l.seed
	privs, pubs, err := auth.Ephemeral(layout.Replicas())
	if err != nil {
		return err
	}
	newChecker := func() *quorum.Checker {
		var scheme auth.Scheme
		if l.crypto {
			scheme = pubs
		}
		return &quorum.Checker{Layout: layout, Verifier: auth.NewVerifier(scheme, layout.Replicas())}
	}
	hosts, addresses, err := l.startReplicas(layout, privs, newChecker)
	defer func() {
		for _, h := range hosts {
			h.Close()
		}
	}()
	if err != nil {
		return err
	}
	cfg, err := l.cl.config(newChecker())
	if err != nil {
		return err
	}
	cfg.Genesis = y.Genesis
	host := transport.RunClient(addresses, cfg)
	defer host.Close()
	if _, err := host.WaitConnected(5 * time.Second); err != nil {
		return err
	}
	if l.kill >= 0 {
		hosts[l.kill].Mute()
	}
	r := &loadRun{host: host, y: y, measureFrom: time.Now().Add(l.warmUp)}
	r.stopAt = r.measureFrom.Add(l.duration)
	r.run(l.clients)
	r.print(out, l.duration)
	return nil
}

func (l *local) startReplicas(layout quorum.Layout, privs []auth.PrivateKey, newChecker func() *quorum.Checker) ([]*transport.ReplicaHost, []transport.Address, error) {
	var listeners []net.Listener
	var addresses []transport.Address
	for range layout.Replicas() {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, fmt.Errorf("listen: %w", err)
		}
		listeners = append(listeners, ln)
		addresses = append(addresses, transport.Address{Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port})
	}
	var hosts []*transport.ReplicaHost
	for i, ln := range listeners {
		var signer auth.Signer = auth.Unsigned{}
		if l.crypto {
			signer = privs[i]
		}
		cfg, err := l.rf.config(newChecker(), i, signer)
		if err != nil {
			return hosts, nil, err
		}
		hosts = append(hosts, transport.ServeReplicaOn(ln, addresses, cfg))
	}
	return hosts, addresses, nil
}

// loadRun is a closed loop: each client begins its next transaction when the last one ended. It
// tries an aborted one again after a random pause that grows with the number of attempts.
type loadRun struct {
	host                *transport.ClientHost
	y                   *workload.YCSBT
	measureFrom, stopAt time.Time

	mu                        sync.Mutex
	latencies                 []time.Duration
	aborts, timeouts, refused int
	detail                    string
	wg                        sync.WaitGroup
}

func (r *loadRun) run(clients int) {
	for i := range clients {
		r.wg.Add(1)
		go func() {
			defer r.wg.Done()
			done := make(chan client.Result, 1)
			for seq := uint64(0); time.Now().Before(r.stopAt); seq++ {
				start := time.Now()
				for attempt := 0; ; attempt++ {
					req := driver.Transaction(r.y, uint32(i), seq)
					req.Timeout = 10 * time.Second
					req.Done = func(res client.Result) { done <- res }
					r.host.Post(func() { r.host.Client.Begin(req) })
					if res := <-done; r.record(res, start) || !time.Now().Before(r.stopAt) {
						break
					}
					time.Sleep(time.Duration(rand.Int64N(int64(time.Millisecond) << min(attempt, 6))))
				}
			}
		}()
	}
	r.wg.Wait()
}

// record counts an attempt that ended in the measured time; false: try again.
func (r *loadRun) record(res client.Result, start time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	measured := !now.Before(r.measureFrom) && now.Before(r.stopAt)
	switch {
	case res.Outcome == client.Committed:
		if measured {
			r.latencies = append(r.latencies, now.Sub(start))
		}
		return true
	case !measured:
	case res.Outcome == client.Aborted:
		r.aborts++
	case res.Outcome == client.TimedOut:
		r.timeouts++
	default:
		r.refused++
		r.detail = res.Detail
	}
	return res.Outcome != client.Aborted
}

func (r *loadRun) print(out io.Writer, d time.Duration) {
	var n client.Counters
	r.host.Do(func() { n = r.host.Client.Counters })
	slices.Sort(r.latencies)
	var sum time.Duration
	for _, l := range r.latencies {
		sum += l
	}
	count := len(r.latencies)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	fmt.Fprintf(out, "throughput  %.0f tx/s (%d committed, %d aborted attempts, %d timeouts, %d refused)\n",
		float64(count)/d.Seconds(), count, r.aborts, r.timeouts, r.refused)
	if count > 0 {
		fmt.Fprintf(out, "latency     mean %.2f ms, p50 %.2f ms, p99 %.2f ms\n",
			ms(sum/time.Duration(count)), ms(r.latencies[count/2]), ms(r.latencies[count*99/100]))
	}
	fmt.Fprintf(out, "decisions   fast %d commits %d aborts, slow %d commits %d aborts (warm-up included)\n",
		n.FastPathCommits, n.FastPathAborts, n.SlowPathCommits, n.SlowPathAborts)
	fmt.Fprintf(out, "trouble     %d fast-path timeouts, %d dependencies, %d recoveries, %d fallbacks, %d resends\n",
		n.FastPathTimeouts, n.Dependencies, n.Recoveries, n.Fallbacks, n.Resends)
	if r.detail != "" {
		fmt.Fprintf(out, "refused     %s\n", r.detail)
	}
}
