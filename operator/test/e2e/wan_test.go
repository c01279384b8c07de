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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// sixRegions are those of the profile aws-6.
var sixRegions = []string{"us-east-1", "us-west-1", "eu-west-1", "eu-central-1", "ap-northeast-1", "ap-southeast-2"}

// widely reduces failure-fp to one trial on aws-6, with a replica in each region and without
// faults.
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
	}
}

// looked holds observations of a trial's network from outside of Assay, by ping, nft and tc on the
// node of one of its replicas.
type looked struct {
	held   *inside
	bare   string             // rules of the replica's packet filter before it was shaped
	pinged map[string]float64 // least round trips, in ms, by peer
}

// lookAtNetwork looks at the first trial of an experiment while it runs. All pods in the trial are
// as far apart as they should be, and other addresses are as near as before. The trial must have
// been held: see holdBeforeShaping.
func (e *env) lookAtNetwork(t *testing.T, exp *v1alpha1.Experiment) looked {
	t.Helper()
	held, bare, untouched := e.beforeShaping(t, exp)
	trial := e.running(t, exp, 0, 0, 3*time.Minute)
	if held.run(t, packetState) == untouched {
		t.Errorf("nft and tc show nothing of the shaping of %s; they cannot show that it is gone either", held.pod)
	}
	began := time.Now()
	l := looked{held, bare, pingAll(t, held, e.podsOf(t, trial.Name, v1alpha1.PodTypeReplica))}
	e.outsiders(t, held)
	t.Logf("looked at the network for %.1f s while %s ran", time.Since(began).Seconds(), trial.Name)
	return l
}

// check compares the observations with the trial's results, once the trial is over and its pods are
// gone. The canary probes each link at the same time as ping. The table is of a few earlier probes,
// which a machine may delay as much as the trial tolerates.
func (l looked) check(t *testing.T, n results.Network) {
	t.Helper()
	const borne = 2 * 20.0 // ms, the tolerance linkDelay of onSharedMachine, there and back
	if len(l.pinged) == 0 {
		t.Error("no replica was pinged")
	}
	for peer, rtt := range l.pinged {
		i := slices.IndexFunc(n.Links, func(link results.Link) bool {
			return link.From == l.held.pod && link.To == peer || link.To == l.held.pod && link.From == peer
		})
		if i < 0 {
			t.Errorf("the results have no link between %s and %s", l.held.pod, peer)
			continue
		}
		link := n.Links[i]
		asked := link.Out.DelayMillis + link.In.DelayMillis
		t.Logf("%s <-> %s: asked %.1f ms, table %.2f ms, canary %.2f ms, ping %.2f ms", l.held.pod, peer, asked, link.MeasuredMillis, link.CanaryMinMillis, rtt)
		if rtt < asked || math.Abs(rtt-link.CanaryMinMillis) > 5 {
			t.Errorf("%s <-> %s: asked %.1f ms, ping says %.2f ms, the least of the canary %.2f ms; want the latter within 5 ms", l.held.pod, peer, asked, rtt, link.CanaryMinMillis)
		}
		if link.MeasuredMillis < asked || link.MeasuredMillis > rtt+borne {
			t.Errorf("%s <-> %s: asked %.1f ms, ping says %.2f ms, the table %.2f ms; want no more than %v ms above ping", l.held.pod, peer, asked, rtt, link.MeasuredMillis, borne)
		}
	}
	if after := l.held.rules(t); after != l.bare {
		t.Errorf("the packet filter of %s was, before it was shaped:\n%s\nand is at its end:\n%s", l.held.pod, l.bare, after)
	}
}

// holdBeforeShaping keeps the next trial of a System with a prepare step from being shaped, until
// beforeShaping has looked. The quota allows the Job of the prepare step, and so the replicas. It
// rejects the Jobs of the clients, without which no trial is shaped, and the manager retries.
func (e *env) holdBeforeShaping(t *testing.T) {
	t.Helper()
	quota := e.hold()
	quota.Spec.Hard = corev1.ResourceList{"count/jobs.batch": resource.MustParse("1")}
	if err := e.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	e.eventually(t, time.Minute, "the quota of Jobs is in force", func(ctx context.Context) (bool, error) {
		err := e.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		return len(quota.Status.Hard) > 0, err
	})
}

// hold is the quota of holdBeforeShaping.
func (e *env) hold() *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "before-shaping"}}
}

// beforeShaping waits for a replica whose network is unchanged. It returns the network namespace,
// the rules of its packet filter, and its packetState. Then it releases the trial that
// holdBeforeShaping has held.
func (e *env) beforeShaping(t *testing.T, exp *v1alpha1.Experiment) (in *inside, bare, untouched string) {
	t.Helper()
	var pod corev1.Pod
	e.eventually(t, 2*time.Minute, "a replica of "+exp.Name+" has an address", func(ctx context.Context) (bool, error) {
		list := &corev1.PodList{}
		err := e.List(ctx, list, client.InNamespace(e.namespace), client.MatchingLabels{v1alpha1.LabelExperiment: exp.Name, v1alpha1.LabelPodType: v1alpha1.PodTypeReplica})
		for _, p := range list.Items {
			if p.Status.PodIP != "" && p.DeletionTimestamp == nil {
				pod = p
				return true, nil
			}
		}
		return false, err
	})
	in = enter(t, pod)
	// Long before it shapes, the agent briefly tries whether it can.
	e.eventually(t, time.Minute, "nothing of Assay is in the packet filter of "+pod.Name, func(context.Context) (bool, error) {
		bare = in.rules(t)
		return !strings.Contains(bare, "assay_"), nil
	})
	untouched = in.run(t, packetState)
	if err := e.Delete(t.Context(), e.hold()); err != nil {
		t.Fatalf("let go of the trial that was held before shaping: %v", err)
	}
	return in, bare, untouched
}

// rules of the packet filter in the pod's network namespace, without counters.
func (in *inside) rules(t *testing.T) string {
	t.Helper()
	return in.run(t, "nft --stateless list ruleset")
}

// pingTimes finds the round trips in the output of ping -U. Without -U, ping uses the instant at
// which the kernel first saw the answer, which is before NFQueue delays it: half of the round trip
// would be missing.
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

// pingAll pings the other replicas from one pod, at the same time, and returns the least round
// trips in ms.
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

// outsiders checks that addresses outside of the trial are not delayed: the node, whose kubelet
// probes; a name server; the API server.
func (e *env) outsiders(t *testing.T, in *inside) {
	t.Helper()
	const most = 10.0 // ms, the least of several pings; regions are 20 ms and more apart
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

// checkProof checks the table of a trial with that many pods. near is how many of its pairs are in
// one region.
func checkProof(t *testing.T, n results.Network, pods, near int) {
	t.Helper()
	t.Logf("%s: applied in %.0f ms, proven in %.0f ms, %d rounds; %d pairs, worst %s by %+.3f ms; late p99 %.2f ms, most %.2f ms", n.Backend, n.ApplyMillis,
		n.ProveMillis, n.Rounds, n.Pairs, n.WorstPair, n.WorstErrorMillis, n.LateP99Millis, n.LateMillis)
	if n.Backend == "" || n.Pairs != pods*(pods-1)/2 || len(n.Links) != n.Pairs {
		t.Errorf("backend %q, %d pairs, %d listed; want every pair of %d pods, shaped", n.Backend, n.Pairs, len(n.Links), pods)
	}
	if n.ApplyMillis+n.ProveMillis >= 30_000 {
		t.Errorf("applied in %.0f ms and proven in %.0f ms, want seconds", n.ApplyMillis, n.ProveMillis)
	}
	shaped := 0
	for _, l := range n.Links {
		asked := l.Out.DelayMillis + l.In.DelayMillis
		if asked > 0 {
			shaped++
		}
		// All pods share a kernel, so each direction is measured separately. Tests in the VM check
		// how exact shapers are. Here a link must only not be faster.
		if l.MeasuredMillis < asked || l.OutMillis < l.Out.DelayMillis || l.InMillis < l.In.DelayMillis {
			t.Errorf("%s <-> %s: asked %.1f+%.1f ms, measured %.2f ms, %.2f and %.2f ms: too quick", l.From, l.To, l.Out.DelayMillis, l.In.DelayMillis,
				l.MeasuredMillis, l.OutMillis, l.InMillis)
		}
		if l.CanarySent == 0 {
			t.Errorf("%s <-> %s: no probe was sent while the trial ran", l.From, l.To)
		}
	}
	if shaped != n.Pairs-near {
		t.Errorf("%d of %d pairs are delayed, want all but the %d within a region", shaped, n.Pairs, near)
	}
}
