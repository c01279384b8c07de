package e2e

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testuntil"
)

// sixRegions are those of the profile aws-6.
var sixRegions = []string{"us-east-1", "us-west-1", "eu-west-1", "eu-central-1", "ap-northeast-1", "ap-southeast-2"}

// widely makes failure-fp one trial on aws-6, a replica in each region, without faults.
func widely(schedule v1alpha1.Schedule) func(client.Object) {
	single := one("ideal", "0s", schedule)
	return func(o client.Object) {
		single(o)
		spec := &o.(*v1alpha1.Experiment).Spec
		spec.Topology.Regions = nil
		for _, name := range sixRegions {
			spec.Topology.Regions = append(spec.Topology.Regions, v1alpha1.Region{Name: name, Replicas: 1})
		}
		spec.Network = v1alpha1.Network{Profile: "aws-6", Backend: "Auto"}
		spec.Parameters["fastPathTimeout"] = v1alpha1.NewValue("400ms") // the last vote comes from the farthest region
		spec.Sweep = nil
		spec.Faults = nil
		// On kind's nodes agents release packets themselves, and get a processor when others let go of it. This is about how late packets are while the
		// trial runs; how exact the links are is seen before, when nothing runs, and the tests look at that themselves.
		spec.Tolerances.LinkDelay, spec.Tolerances.LinkLateness = "20ms", "50ms"
	}
}

// A wide-area network is what the experiment asked for: as the platform measures it, and as ping does, which knows nothing of the platform. All else in
// the pods is as near as ever, and nodes are as they were.
func TestWideAreaNetwork(t *testing.T) {
	testuntil.Needs(t, time.Minute)
	e := newEnv(t)
	nodes := e.needNodes(t)
	before := nodeStates(t, nodes)
	e.apply(t, basilFile, nil)
	exp := e.apply(t, failureFile, widely(v1alpha1.Schedule{WarmUp: "1s", Measure: "7s", CoolDown: "1s", Drain: "2s"}))

	held, bare := e.beforeShaping(t, exp)
	untouched := held.run(t, packetState)
	trial := e.running(t, exp, 0, 0, 2*time.Minute)
	if held.run(t, packetState) == untouched {
		t.Errorf("nft and tc show nothing of the shaping of %s; they cannot show that it is gone either", held.pod)
	}
	pinged := pingAll(t, held, e.podsOf(t, trial.Name, v1alpha1.PartReplica))
	e.outsiders(t, held)

	trials := e.complete(t, exp, 5*time.Minute)
	lastValid(t, trials)
	n := trials[0].Network // that one was pinged, and its links were proven before it ran, whatever the machine did to it then
	if n == nil {
		t.Fatal("the results do not have the network")
	}
	num := judge(t, trials[0])
	checkProof(num, *n)
	for peer, rtt := range pinged {
		l := n.Links[slices.IndexFunc(n.Links, func(l results.Link) bool {
			return l.From == held.pod && l.To == peer || l.To == held.pod && l.From == peer
		})]
		t.Logf("%s <-> %s: asked %.1f ms, table %.2f ms, ping %.2f ms", held.pod, peer, l.Out.DelayMillis+l.In.DelayMillis, l.MeasuredMillis, rtt)
		if math.Abs(rtt-l.MeasuredMillis) > 1.5 {
			num.Errorf("%s <-> %s: ping says %.2f ms, the table %.2f ms; want them within 1.5 ms", held.pod, peer, rtt, l.MeasuredMillis)
		}
	}
	if after := held.rules(t); after != bare {
		t.Errorf("the packet filter of %s was, before it was shaped:\n%s\nand is at its end:\n%s", held.pod, bare, after)
	}
	sameNodeStates(t, before)
	num.decide()
}

// beforeShaping waits for a replica that nothing has been done to, and returns its network namespace and the rules of its packet filter.
func (e *env) beforeShaping(t *testing.T, exp *v1alpha1.Experiment) (*inside, string) {
	t.Helper()
	var pod corev1.Pod
	e.eventually(t, 2*time.Minute, "a replica of "+exp.Name+" has an address", func(ctx context.Context) (bool, error) {
		list := &corev1.PodList{}
		err := e.List(ctx, list, client.InNamespace(e.namespace), client.MatchingLabels{v1alpha1.LabelExperiment: exp.Name, v1alpha1.LabelPart: v1alpha1.PartReplica})
		for _, p := range list.Items {
			if p.Status.PodIP != "" && p.DeletionTimestamp == nil {
				pod = p
				return true, nil
			}
		}
		return false, err
	})
	in := enter(t, pod)
	var bare string
	// The agent tries for an instant, long before it shapes, whether it can.
	e.eventually(t, 10*time.Second, "nothing of Assay is in the packet filter of "+pod.Name, func(context.Context) (bool, error) {
		bare = in.rules(t)
		return !strings.Contains(bare, "assay_"), nil
	})
	return in, bare
}

// rules of the packet filter in the pod's network namespace, without counters.
func (in *inside) rules(t *testing.T) string {
	t.Helper()
	return in.run(t, "nft --stateless list ruleset")
}

// pingTimes finds the round trips in what ping -U prints. Without -U, ping takes the instant at which the kernel first saw the answer, which is before
// NFQueue makes it wait: half of the round trip would be missing.
var pingTimes = regexp.MustCompile(`time=([0-9.]+) ms`)

// ping is the least round trip in ms of several, from the pod's network namespace.
func (in *inside) ping(t *testing.T, to string, count int) float64 {
	t.Helper()
	out := in.run(t, fmt.Sprintf("ping -n -U -i 0.2 -W 2 -c %d %s", count, to))
	least := math.Inf(1)
	for _, m := range pingTimes.FindAllStringSubmatch(out, -1) {
		ms, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		least = min(least, ms)
	}
	if math.IsInf(least, 1) {
		t.Fatalf("no answer from %s: %s", to, out)
	}
	return least
}

// pingAll pings the other replicas from the one, at the same time, and returns the least round trips in ms.
func pingAll(t *testing.T, from *inside, pods map[string]corev1.Pod) map[string]float64 {
	t.Helper()
	command := ""
	names := map[string]string{}
	for _, p := range pods {
		if p.Name != from.pod {
			names[p.Status.PodIP] = p.Name
			command += fmt.Sprintf("ping -n -U -i 0.3 -W 2 -c 5 %s & ", p.Status.PodIP)
		}
	}
	least := map[string]float64{}
	for line := range strings.Lines(from.run(t, command+"wait")) {
		for ip, name := range names {
			m := pingTimes.FindStringSubmatch(line)
			if m == nil || !strings.Contains(line, "from "+ip+":") {
				continue
			}
			ms, err := strconv.ParseFloat(m[1], 64)
			if had, ok := least[name]; err == nil && (!ok || ms < had) {
				least[name] = ms
			}
		}
	}
	if len(least) != len(names) {
		t.Errorf("%d of %d replicas answered pings", len(least), len(names))
	}
	return least
}

// outsiders checks that who is not of the trial is not delayed: the node, whose kubelet probes; a name server; the API server.
func (e *env) outsiders(t *testing.T, in *inside) {
	t.Helper()
	const most = 5.0 // ms; the least delay of aws-6 is 13 ms each way
	n := &corev1.Node{}
	if err := e.Get(t.Context(), client.ObjectKey{Name: in.node}, n); err != nil {
		t.Fatal(err)
	}
	targets := map[string]string{"node": n.Status.Addresses[0].Address}
	for what, label := range map[string]string{"name server": "kube-dns", "API server": "kube-apiserver"} {
		list := &corev1.PodList{}
		key := "k8s-app"
		if what == "API server" {
			key = "component"
		}
		if err := e.List(t.Context(), list, client.InNamespace("kube-system"), client.MatchingLabels{key: label}); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 0 {
			t.Fatalf("no pod of the %s", what)
		}
		targets[what] = list.Items[0].Status.PodIP
	}
	for what, ip := range targets {
		rtt := in.ping(t, ip, 4)
		t.Logf("%s <-> %s: ping %.2f ms", in.pod, what, rtt)
		if rtt > most {
			t.Errorf("%s <-> %s: ping %.2f ms, want less than %v: it is not of the trial", in.pod, what, rtt, most)
		}
	}
}

// checkProof checks the table of a trial on aws-6 with 6 replicas and 2 client pods.
func checkProof(num *numbers, n results.Network) {
	num.Helper()
	t := num.T
	const pods = 8
	t.Logf("%s: applied in %.0f ms, proven in %.0f ms, %d rounds; %d pairs, worst %s by %+.3f ms; late p99 %.2f ms, most %.2f ms", n.Backend, n.ApplyMillis,
		n.ProveMillis, n.Rounds, n.Pairs, n.WorstPair, n.WorstErrorMillis, n.LateP99Millis, n.LateMillis)
	if n.Backend == "" || n.Pairs != pods*(pods-1)/2 || len(n.Links) != n.Pairs {
		t.Errorf("backend %q, %d pairs, %d listed; want every pair of %d pods, shaped", n.Backend, n.Pairs, len(n.Links), pods)
	}
	// The undelayed path is a part of what is expected, and takes milliseconds when the machine is busy: hence not 1 ms.
	if math.Abs(n.WorstErrorMillis) > 5 {
		num.Errorf("the worst pair is off by %.2f ms, want at most 5", n.WorstErrorMillis)
	}
	if n.ApplyMillis+n.ProveMillis >= 5000 {
		num.Errorf("applied in %.0f ms and proven in %.0f ms, want less than 5 s", n.ApplyMillis, n.ProveMillis)
	}
	shaped := 0
	for _, l := range n.Links {
		asked := l.Out.DelayMillis + l.In.DelayMillis
		if asked > 0 {
			shaped++
		}
		// One kernel: each direction is measured by itself.
		if l.MeasuredMillis < asked || l.OutMillis < l.Out.DelayMillis || l.InMillis < l.In.DelayMillis {
			t.Errorf("%s <-> %s: asked %.1f+%.1f ms, measured %.2f ms, %.2f and %.2f ms: too quick", l.From, l.To, l.Out.DelayMillis, l.In.DelayMillis,
				l.MeasuredMillis, l.OutMillis, l.InMillis)
		}
		if l.CanarySent == 0 {
			t.Errorf("%s <-> %s: no probe was sent while the trial ran", l.From, l.To)
		}
	}
	// Only the two clients are each in one region with a replica.
	if shaped != n.Pairs-2 {
		t.Errorf("%d of %d pairs are delayed, want all but the 2 within a region", shaped, n.Pairs)
	}
}
