// Command bench-loadgen measures the cost and the punctuality of the load generator, against
// bounds. It compares the generator with the smallest possible Go program, measured in the same
// run. That is a bare loop that writes a message to a TCP connection and reads it back.
//
// The echo server is pinned to one processor, and the generator to another. The machine is rarely
// quiet, so rates vary by tens of percent. Therefore the bound on the generator's cost is on a
// ratio: requests per second of the generator's own CPU time. It is the median of rounds in which
// both programs take turns.
//
//	bench-loadgen -loadgen PATH [-rounds 5] [-length 2s]
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

// The bounds.
const (
	minRatio           = 0.90
	maxLagP99          = 300 * time.Microsecond
	maxChangingLagP99  = 500 * time.Microsecond
	minAchieved        = 0.99
	maxClientBytes     = 50_000
	serverCPU          = 1
	generatorCPU       = 0
	manyClients        = 1000
	openLoopConns      = 256
	baselineSubcommand = "baseline"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == baselineSubcommand {
		exit(baseline(os.Args[2:]))
		return
	}
	b := bench{}
	flag.StringVar(&b.loadgen, "loadgen", "", "the load generator's program")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of each closed loop measurement")
	flag.DurationVar(&b.length, "length", 2*time.Second, "length of each measurement")
	flag.Parse()
	exit(b.run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-loadgen:", err)
		os.Exit(1)
	}
}

type bench struct {
	loadgen  string
	rounds   int
	length   time.Duration
	address  string
	failed   int
	realtime bool // generators run as real-time processes
}

func (b *bench) run() error {
	if runtime.NumCPU() < 2 {
		return fmt.Errorf("this takes 2 processors, one for the server and one for the generator; there is %d", runtime.NumCPU())
	}
	stop, err := b.startServer()
	if err != nil {
		return err
	}
	defer stop()
	fmt.Printf("load average %s; server on CPU %d, generator on CPU %d\n\n", loadAverage(), serverCPU, generatorCPU)
	most, err := b.closedLoop()
	if err != nil {
		return err
	}
	if err := b.openLoop(most / 2); err != nil {
		return err
	}
	if err := b.changingLoad(most / 2); err != nil {
		return err
	}
	if err := b.memory(); err != nil {
		return err
	}
	fmt.Printf("\nload average %s\n", loadAverage())
	if b.failed > 0 {
		return fmt.Errorf("%d bounds are not met", b.failed)
	}
	return nil
}

// verdict prints whether a bound is met.
func (b *bench) verdict(ok bool, format string, args ...any) {
	word := "PASS"
	if !ok {
		word = "FAIL"
		b.failed++
	}
	fmt.Printf("%s  %s\n", word, fmt.Sprintf(format, args...))
}

// closedLoop compares with the bare client. It returns the most requests per second that the
// generator reached.
func (b *bench) closedLoop() (float64, error) {
	fmt.Printf("closed loop, medians of %d rounds of %v\n", b.rounds, b.length)
	fmt.Printf("%6s  %21s  %31s  %17s\n", "", "requests/s", "per generator CPU-second", "ratio")
	fmt.Printf("%6s  %10s %10s  %15s %15s  %8s %8s\n", "conns", "bare", "loadgen", "bare", "loadgen", "rate", "CPU")
	type verdict struct {
		conns int
		ratio float64
	}
	var verdicts []verdict
	most := 0.0
	for _, conns := range []int{1, 16, 64} {
		var bareRate, ourRate, bareCPU, ourCPU, ratios, rateRatios []float64
		for round := range b.rounds {
			bare, ours, err := b.pair(conns, round%2 == 1)
			if err != nil {
				return 0, err
			}
			bareRate, ourRate = append(bareRate, bare.rate), append(ourRate, ours.rate)
			bareCPU, ourCPU = append(bareCPU, bare.perCPUSecond), append(ourCPU, ours.perCPUSecond)
			ratios = append(ratios, ours.perCPUSecond/bare.perCPUSecond)
			rateRatios = append(rateRatios, ours.rate/bare.rate)
		}
		fmt.Printf("%6d  %10.0f %10.0f  %15.0f %15.0f  %8.3f %8.3f   (CPU ratios %.2f to %.2f)\n", conns, median(bareRate), median(ourRate),
			median(bareCPU), median(ourCPU), median(rateRatios), median(ratios), slices.Min(ratios), slices.Max(ratios))
		verdicts = append(verdicts, verdict{conns, median(ratios)})
		most = max(most, median(ourRate))
	}
	for _, v := range verdicts {
		b.verdict(v.ratio >= minRatio, "%d connections: %.3f of the bare client's requests per CPU-second (at least %.2f)", v.conns, v.ratio, minRatio)
	}
	return most, nil
}

// pair measures both, in either order, so that a trend of the machine's load does not favour one of
// them.
func (b *bench) pair(conns int, oursFirst bool) (bare, ours measured, err error) {
	if oursFirst {
		if ours, err = b.measureLoadgen(conns); err != nil {
			return bare, ours, err
		}
	}
	if bare, err = b.measureBaseline(conns); err != nil {
		return bare, ours, err
	}
	if !oursFirst {
		ours, err = b.measureLoadgen(conns)
	}
	return bare, ours, err
}

// openLoop measures how punctually requests are sent. Other processes on the generator's processor
// delay it by milliseconds each time. If the bound is not met, it measures again as a real-time
// process, if the user may run one. Only the kernel can delay such a process. So the second
// measurement separates the generator's own lag from the machine's.
func (b *bench) openLoop(rate float64) error {
	fmt.Printf("\nopen loop at half of the most, %.0f requests/s, %d clients, %v each (real-time: %v)\n", rate, openLoopConns, 2*b.length, realtimeLength)
	fmt.Printf("%-9s %-9s %9s  %27s  %7s %7s  %12s\n", "arrivals", "priority", "achieved", "send lag p50 / p99 / max ms", "late", "unsent", "latency p99")
	var verdicts []func()
	for _, arrivals := range []string{"constant", "poisson"} {
		best, err := b.pace(maxLagP99, arrivals, func(b *bench, length time.Duration) (loadgenRun, error) {
			return b.runLoadgen(length, "--clients", fmt.Sprint(openLoopConns), "--rate", fmt.Sprint(rate), "--arrivals", arrivals)
		})
		if err != nil {
			return err
		}
		verdicts = append(verdicts, func() { best.verdict(b, arrivals+" arrivals") })
	}
	for _, print := range verdicts {
		print()
	}
	return nil
}

// run is a run of the generator in an open loop.
type run func(b *bench, length time.Duration) (loadgenRun, error)

// pace measures how punctually requests are sent. If necessary it measures once more as a real-time
// process.
func (b *bench) pace(bound time.Duration, name string, how run) (pacing, error) {
	best, err := b.bestPacing(bound, name, how)
	if err == nil && !best.ok() && mayRealtime() {
		return b.realtimePacing(bound, name, how)
	}
	return best, err
}

// realtimePacing measures with generator and server as real-time processes: a delayed server would
// also leave too few free clients.
func (b *bench) realtimePacing(bound time.Duration, name string, how run) (pacing, error) {
	rt := *b
	rt.realtime = true
	stop, err := rt.startServer()
	if err != nil {
		return pacing{}, err
	}
	defer stop()
	return rt.bestPacing(bound, name, how)
}

// realtimeLength is the length of a measurement as a real-time process. If such processes use more
// than 95% of a processor, the kernel stops them for 50 ms of each second. A measurement of less
// than a second avoids that.
const realtimeLength = 600 * time.Millisecond

// pacing is how well one open loop kept its schedule.
type pacing struct {
	lagP99, bound time.Duration
	achieved      float64 // as a part of the offered requests
	priority      string
}

func (p pacing) ok() bool { return p.lagP99 <= p.bound && p.achieved >= minAchieved }

func (p pacing) verdict(b *bench, what string) {
	b.verdict(p.ok(), "%s, best run, %s priority: send lag p99 %v (at most %v), %.1f%% of the offered requests committed (at least %.0f%%)",
		what, p.priority, p.lagP99, p.bound, 100*p.achieved, 100*minAchieved)
}

// bestPacing returns the best of several runs. The best run shows the generator's ability, and the
// others the load of the machine. It prints all runs.
func (b *bench) bestPacing(bound time.Duration, name string, how run) (pacing, error) {
	best := pacing{lagP99: time.Hour, bound: bound}
	priority := "normal"
	if b.realtime {
		priority = "real-time"
	}
	length := 2 * b.length
	if b.realtime {
		length = realtimeLength
	}
	for range b.rounds/2 + 1 {
		r, err := how(b, length)
		if err != nil {
			return best, err
		}
		n := r.client.Counters
		achieved := float64(n.Committed) / length.Seconds()
		fmt.Printf("%-9s %-9s %9.0f  %8.3f %8.3f %9.3f  %7d %7d  %9.3f ms\n", name, priority, achieved, ms(r.lag.ValueAtPercentile(50)),
			ms(r.lag.ValueAtPercentile(99)), ms(r.lag.Max()), n.LateSends, n.Unsent, ms(r.latency.ValueAtPercentile(99)))
		if p99 := time.Duration(r.lag.ValueAtPercentile(99)) * time.Microsecond; p99 < best.lagP99 {
			best = pacing{p99, bound, float64(n.Committed) / float64(n.Offered), priority}
		}
	}
	return best, nil
}

func (b *bench) memory() error {
	one, err := b.runLoadgen(time.Second, "--clients", "1")
	if err != nil {
		return err
	}
	many, err := b.runLoadgen(time.Second, "--clients", fmt.Sprint(manyClients))
	if err != nil {
		return err
	}
	perClient := (many.maxRSS - one.maxRSS) / (manyClients - 1)
	fmt.Printf("\nmemory: %.1f MB with 1 client, %.1f MB with %d\n", float64(one.maxRSS)/1e6, float64(many.maxRSS)/1e6, manyClients)
	b.verdict(perClient <= maxClientBytes, "%.1f KB for each client (at most %d)", float64(perClient)/1e3, maxClientBytes/1000)
	return nil
}

func ms(micros int64) float64 { return float64(micros) / 1e3 }

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
