// Command bench-faults measures on the cluster of "make deploy" how punctual faults are. It
// compares the instants of confirmed kills and pauses with the planned ones. It also measures how
// far apart the targets of one fault were hit. Beside them, in the same run, it deletes pods
// through the API and measures from the request to the death of their processes. It watches the
// processes on the nodes, which must be containers of the local docker, as in kind. If Chaos Mesh
// is there (hack/without-registry/chaos-mesh/install.sh up), one PodChaos kills three pods, too.
//
//	bench-faults -kubeconfig PATH [-trials 3] [-times 23]
//
// Run it from the repository's root. It makes the namespace assay-bench-faults and removes it
// again. It prints the machine's load average before each part, since the tails mostly come from
// other programs on the processors.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// The bounds.
const (
	maxP99      = 5 * time.Millisecond
	maxSpread   = 2 * time.Millisecond
	leastKills  = 200
	namespace   = "assay-bench-faults"
	watchVerb   = "watch"
	wholeLength = 15 * time.Minute
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == watchVerb {
		exit(watch(os.Args[2:]))
		return
	}
	b := bench{}
	kubeconfig := flag.String("kubeconfig", ".work/kubeconfig", "the cluster's kubeconfig")
	flag.IntVar(&b.trials, "trials", 3, "trials to run")
	flag.IntVar(&b.times, "times", 23, "kills, and pauses, of three replicas in each trial")
	flag.StringVar(&b.cpu, "cpu", "", "what each replica requests of a processor, such as 500m: its weight where processors are busy (default: as the System says)")
	flag.BoolVar(&b.shaped, "shaped", false, "delay all links by 1 ms, for which agents get the right to run at real-time priority (backend NFQueue)")
	flag.IntVar(&b.rounds, "rounds", 7, "rounds in which three pods are deleted through the API, and by Chaos Mesh")
	flag.Parse()
	ctx, stop := context.WithTimeout(context.Background(), wholeLength)
	defer stop()
	exit(b.run(ctx, *kubeconfig))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-faults:", err)
		os.Exit(1)
	}
}

type bench struct {
	trials, times, rounds int
	cpu                   string
	shaped                bool
	cluster               client.Client
	clientset             *kubernetes.Clientset
	failed                int
}

func (b *bench) run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("no cluster (run make deploy): %w", err)
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	if b.cluster, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if b.clientset, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if err := b.makeNamespace(ctx); err != nil {
		return err
	}
	defer b.removeNamespace()

	fmt.Printf("load average %s; %d trials, %d times three replicas killed and three paused\n", loadAverage(), b.trials, b.times)
	records, machine, err := b.measureBoth(ctx)
	if err != nil {
		return err
	}
	kills, pauses := shotsOf(records, "Kill"), shotsOf(records, "Pause")
	fmt.Printf("load average %s; pods deleted through the API\n\n", loadAverage())
	deleted, err := b.measureDeletes(ctx, "victim", b.byRequests)
	if err != nil {
		return err
	}
	podChaos, err := b.measurePodChaos(ctx)
	if err != nil {
		return err
	}
	b.show(machine, kills, pauses, deleted, podChaos)
	if b.failed > 0 {
		return fmt.Errorf("%d bounds are not met", b.failed)
	}
	return nil
}

// show prints the tables and the verdicts.
func (b *bench) show(machine floor, kills, pauses, deleted, podChaos []shot) {
	fmt.Printf("%-44s %5s  %28s  %s\n", "ms later than planned (or asked)", "n", "p50 / p90 / p99 / max", "spread of three: p50 / p90 / max")
	row("the machine itself: a sleeper is woken", machine.woken, confirmed)
	row("the machine itself: SIGKILL to reaped", machine.killed, confirmed)
	row("kill: silent", kills, func(s shot) float64 { return s.began })
	row("kill: SIGKILL, none can run (confirmed)", kills, confirmed)
	row("kill: last process reaped, its memory free", kills, func(s shot) float64 { return s.reaped })
	row("kill: from silence to SIGKILL", kills, func(s shot) float64 { return s.confirmed - s.began })
	row("pause: signal sent", pauses, func(s shot) float64 { return s.began })
	row("pause: seen, none gets back (confirmed)", pauses, confirmed)
	row("pod deleted through the API, grace 0: dead", deleted, confirmed)
	if len(podChaos) > 0 {
		row("pod killed by a PodChaos, grace 0: dead", podChaos, confirmed)
	}
	fmt.Println()
	ends("pods deleted through the API", deleted)
	ends("pods killed by a PodChaos", podChaos)
	histogram("kills, confirmed", kills)
	histogram("pauses, confirmed", pauses)
	histogram("pods deleted through the API", deleted)
	fmt.Println()
	b.verdicts(kills, pauses)
	fmt.Printf("load average %s\n", loadAverage())
}

// measureBoth runs the trials and measures the machine at the same time.
func (b *bench) measureBoth(ctx context.Context) (records []record, machine floor, err error) {
	while, stop := context.WithCancel(ctx)
	defer stop()
	var floorErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		machine, floorErr = measureFloor(while)
	}()
	records, err = b.measureFaults(ctx)
	stop()
	<-done
	return records, machine, errors.Join(err, floorErr)
}

// verdicts compares kills and pauses with the bounds.
func (b *bench) verdicts(kills, pauses []shot) {
	began := func(s shot) float64 { return s.began }
	b.verdict(len(kills) >= leastKills, "%d kills (at least %d)", len(kills), leastKills)
	b.punctual("kills, planned to confirmed", kills)
	b.punctual("pauses, planned to confirmed", pauses)
	b.together("kill silent", kills, began)
	b.together("kill dead", kills, confirmed)
	// This is not the time between the observed stops. For those, a thread of each process has to
	// run and its launcher has to notice, on few processors one after the other.
	b.together("pause signalled", pauses, began)
}

func (b *bench) punctual(what string, shots []shot) {
	p99 := quantile(sorted(shots, confirmed), 0.99)
	b.verdict(p99 <= ms(maxP99), "p99 of %s, %.2f ms (at most %.0f)", what, p99, ms(maxP99))
}

// together judges how far apart the targets of one fault were.
func (b *bench) together(what string, shots []shot, value func(shot) float64) {
	spread := spreads(shots, value)
	worst := quantile(spread, 1)
	b.verdict(worst <= ms(maxSpread), "all targets of one %s within %.2f ms of each other; the median fault %.2f, 90%% within %.2f (at most %.0f)",
		what, worst, quantile(spread, 0.5), quantile(spread, 0.9), ms(maxSpread))
}

func (b *bench) verdict(ok bool, format string, args ...any) {
	word := "PASS"
	if !ok {
		word = "FAIL"
		b.failed++
	}
	fmt.Printf("%s  %s\n", word, fmt.Sprintf(format, args...))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

func duration(d time.Duration) v1alpha1.Duration {
	return v1alpha1.Duration(strconv.FormatInt(d.Milliseconds(), 10) + "ms")
}
