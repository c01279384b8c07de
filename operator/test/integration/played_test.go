package integration

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/testcluster"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// cluster plays the controllers, kubelets and agents of some namespaces, beside a real API server
// and a real manager. It makes and ends the pods of StatefulSets and Jobs, and their agents dial
// the manager with real tokens. The pods run no processes.
type cluster struct {
	t       testing.TB
	env     *testenv.Env
	manager *manager
	// play plays a running pod; nil: an agent that does as it is told.
	play func(ctx context.Context, p *playedPod)
	// reached gets each phase that an agent has reached; nil: no test needs it.
	reached func(phase string)

	mu     sync.Mutex
	agents sync.WaitGroup
	served int
}

// playedPod is a pod with the token of its agent.
type playedPod struct {
	*cluster
	pod   *corev1.Pod
	token string
	http  *http.Client
}

// playCluster plays the namespaces until the test ends. Its nodes must exist.
func playCluster(t testing.TB, env *testenv.Env, m *manager, node string, play func(context.Context, *playedPod), namespaces ...string) {
	t.Helper()
	(&cluster{t: t, env: env, manager: m, play: play}).begin(node, namespaces...)
}

// begin plays the namespaces until the test ends, or until the returned function is called.
func (c *cluster) begin(node string, namespaces ...string) (end func()) {
	t, env := c.t, c.env
	t.Helper()
	for _, ns := range namespaces {
		if err := env.Client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}}); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	loop.Go(func() {
		for ctx.Err() == nil {
			next := 500 * time.Millisecond // lists of many pods are work for the API server, too
			for _, ns := range namespaces {
				if c.sync(ctx, ns, node) {
					next = 100 * time.Millisecond
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(next):
			}
		}
	})
	end = sync.OnceFunc(func() { cancel(); loop.Wait(); c.agents.Wait() })
	t.Cleanup(end)
	return end
}

// podsAtOnce is how many pods are made or ended at the same time.
const podsAtOnce = 8

// sync makes the missing pods and ends the deleted ones, and reports whether there were any. It
// retries calls that fail.
func (c *cluster) sync(ctx context.Context, ns, node string) (changed bool) {
	in := client.InNamespace(ns)
	sets, jobs, pods := &appsv1.StatefulSetList{}, &batchv1.JobList{}, &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	for _, list := range []client.ObjectList{sets, jobs, pods} {
		if c.env.Client.List(ctx, list, in) != nil {
			return true
		}
	}
	owners, there := map[types.UID]bool{}, map[string]bool{}
	var starts sync.WaitGroup
	defer starts.Wait()
	slots := make(chan struct{}, podsAtOnce)
	run := func(owner client.Object, version, kind, name string, of *corev1.PodTemplateSpec, more map[string]string) {
		changed = true
		starts.Go(func() {
			slots <- struct{}{}
			c.run(ctx, owner, version, kind, name, node, of, more)
			<-slots
		})
	}
	for i := range pods.Items {
		there[pods.Items[i].Name] = true
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		owners[s.UID] = s.DeletionTimestamp == nil
		for k := range int(*s.Spec.Replicas) {
			name := fmt.Sprintf("%s-%d", s.Name, k)
			if owners[s.UID] && !there[name] {
				run(s, "apps/v1", "StatefulSet", name, &s.Spec.Template, map[string]string{appsv1.StatefulSetPodNameLabel: name, appsv1.PodIndexLabel: strconv.Itoa(k)})
			}
		}
	}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		owners[j.UID] = j.DeletionTimestamp == nil
		for k := range int(*j.Spec.Completions) {
			name := fmt.Sprintf("%s-%d-x", j.Name, k)
			if owners[j.UID] && !there[name] {
				run(j, "batch/v1", "Job", name, &j.Spec.Template, map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(k)})
			}
		}
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := metav1.GetControllerOf(p)
		if p.DeletionTimestamp != nil || owner != nil && !owners[owner.UID] {
			changed = true
			starts.Go(func() {
				slots <- struct{}{}
				zero := int64(0)
				_ = c.env.Client.Delete(ctx, p, &client.DeleteOptions{GracePeriodSeconds: &zero})
				<-slots
			})
		}
	}
	return changed
}

// run makes a running pod on the node, and plays its agent.
func (c *cluster) run(ctx context.Context, owner client.Object, version, kind, name, node string, of *corev1.PodTemplateSpec, more map[string]string) {
	yes := true
	pod := &corev1.Pod{ObjectMeta: *of.ObjectMeta.DeepCopy(), Spec: *of.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.Labels = owner.GetNamespace(), name, labels.Merge(pod.Labels, more)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes}}
	pod.Spec.ServiceAccountName, pod.Spec.NodeName = "default", node
	if c.env.Client.Create(ctx, pod) != nil {
		return
	}
	c.mu.Lock()
	c.served++
	n := c.served
	c.mu.Unlock()
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	if err := c.env.Client.Status().Update(ctx, pod); err != nil {
		c.t.Errorf("run pod %s: %v", name, err)
		return
	}
	hour := int64(3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{protocol.Audience}, ExpirationSeconds: &hour,
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: pod.UID},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "default"}}
	if err := c.env.Client.SubResource("token").Create(ctx, account, request); err != nil {
		c.t.Errorf("token of pod %s: %v", name, err)
		return
	}
	p := &playedPod{cluster: c, pod: pod, token: request.Status.Token, http: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}}}
	play := c.play
	if play == nil {
		play = func(ctx context.Context, p *playedPod) { (&playedAgent{playedPod: p}).run(ctx) }
	}
	c.agents.Go(func() { play(ctx, p) })
}

// ask sends a request to the manager like the pod's agent. Status 0: it could not be sent.
func (p *playedPod) ask(ctx context.Context, path string, body []byte, within time.Duration) (status int, answer []byte) {
	return p.request(ctx, http.MethodPost, path, body, within)
}

func (p *playedPod) request(ctx context.Context, method, path string, body []byte, within time.Duration) (status int, answer []byte) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, method, "https://localhost:"+p.manager.coordinator+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	response, err := p.http.Do(request)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = response.Body.Close() }()
	if answer, err = io.ReadAll(response.Body); err != nil {
		return 0, nil
	}
	return response.StatusCode, answer
}

// playedAgent follows its directive at once, and measures nothing.
type playedAgent struct {
	*playedPod
	directive protocol.Directive
	report    protocol.Report
	links     measuredLinks
	files     string          // the digest of the files that it has
	told      map[string]bool // phases
}

// reach reports, once, that the agent has reached a phase.
func (a *playedAgent) reach(phase string) {
	if a.reached == nil || a.told[phase] {
		return
	}
	if a.told == nil {
		a.told = map[string]bool{}
	}
	a.told[phase] = true
	a.reached(phase)
}

// fetch gets the files of the directive.
func (a *playedAgent) fetch(ctx context.Context) {
	wanted := a.directive.FilesDigest
	if wanted == "" || a.files == wanted {
		return
	}
	a.reach("directed")
	status, answer := a.request(ctx, http.MethodGet, "/v1/files", nil, 10*time.Second)
	var files []protocol.File
	if status == http.StatusOK && json.Unmarshal(answer, &files) == nil && protocol.FilesDigest(files) == wanted {
		a.files = wanted
		a.reach("files")
	}
}

func (a *playedAgent) run(ctx context.Context) {
	a.report = protocol.Report{Incarnation: string(a.pod.UID), ClockError: time.Millisecond, Host: protocol.Host{Kernel: "played", CPUs: 4}}
	for ctx.Err() == nil {
		a.obey(ctx)
		a.report.Sequence++
		a.report.DirectiveVersion = a.directive.Version
		body, err := json.Marshal(&a.report)
		if err != nil {
			a.t.Error(err)
			return
		}
		status, answer := a.ask(ctx, "/v1/sync", body, a.quiet())
		pause := 50 * time.Millisecond
		switch status {
		case http.StatusOK:
			if err := json.Unmarshal(answer, &a.directive); err != nil {
				a.t.Error(err)
				return
			}
		case http.StatusForbidden:
			if p := (&corev1.Pod{}); a.env.Client.Get(ctx, client.ObjectKeyFromObject(a.pod), p) != nil || p.UID != a.pod.UID {
				return // the pod is gone
			}
			pause = time.Second // hundreds of agents send requests for their pods
			fallthrough
		default:
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// quiet is how long the agent has nothing to do, unless the manager sends a directive.
func (a *playedAgent) quiet() time.Duration {
	const longest = 10 * time.Second
	run := a.directive.Run
	if run == nil || a.report.Sent {
		return longest
	}
	if left := time.Until(time.Unix(0, run.ZeroUnixNanos).Add(run.LastRequest())); left > 0 {
		return min(longest, left+time.Millisecond)
	}
	if a.directive.Client != nil { // its results were not accepted
		return 500 * time.Millisecond
	}
	return longest
}

// obey follows the directive and updates the report.
func (a *playedAgent) obey(ctx context.Context) {
	d, r := &a.directive, &a.report
	a.fetch(ctx)
	r.FilesDigest, r.NamesResolved, r.Ready, r.AtBarrier, r.Finished = a.files, a.files != "", d.Start, d.Start && d.Client != nil, d.Finish
	if d.Start {
		a.reach("started")
	}
	if d.Run != nil {
		a.reach("released")
	}
	if d.Finish {
		a.reach("ended")
	}
	r.HandedOver = d.Finish
	r.Containers, r.Commands = nil, nil
	for _, c := range d.Containers {
		state := protocol.ContainerState{Name: c.Name, State: protocol.StateWaiting}
		if d.Start {
			state.State, state.Starts = protocol.StateRunning, 1
		}
		r.Containers = append(r.Containers, state)
	}
	for _, c := range d.Commands {
		r.Commands = append(r.Commands, protocol.CommandResult{ID: c.ID})
	}
	if n := d.Network; n != nil {
		r.Network = a.links.of(n)
	}
	if d.SampleLoad {
		r.Load = &protocol.Load{CPUs: 4, Seconds: 1}
	}
	if d.Run != nil {
		a.goOn(ctx)
	}
}

// measuredLinks are measured once before the links are shaped, and once after that.
type measuredLinks struct{ before, after *protocol.NetworkReport }

func (m *measuredLinks) of(n *protocol.Network) *protocol.NetworkReport {
	one := &m.before
	if n.Shape {
		one = &m.after
	}
	if *one == nil {
		*one = measured(n)
	}
	return *one
}

// measured are links that match the request.
func measured(n *protocol.Network) *protocol.NetworkReport {
	const undelayed = 200 * time.Microsecond
	r := &protocol.NetworkReport{Tried: true, Backends: shaping.Backends, Baseline: true}
	if !n.Shape {
		return r
	}
	r.Proven, r.Rounds, r.ApplyTook, r.ProveTook = true, 1, 20*time.Millisecond, 300*time.Millisecond
	for _, p := range n.Peers {
		rtt := p.Out.Delay + p.In.Delay + undelayed
		r.Links = append(r.Links, protocol.LinkReport{
			Peer: p.Name, BaselineRTT: undelayed, RTT: rtt, OutDelay: p.Out.Delay + undelayed/2, InDelay: p.In.Delay + undelayed/2,
			CanarySent: 20, CanaryMin: rtt, CanaryMedian: rtt, CanaryMax: rtt,
		})
	}
	return r
}

// goOn carries out the due steps of the run.
func (a *playedAgent) goOn(ctx context.Context) {
	d, r := &a.directive, &a.report
	since := time.Since(time.Unix(0, d.Run.ZeroUnixNanos))
	w := d.Run.Windows
	r.ClockManager = "played"
	if d.Client != nil && r.Client == nil {
		r.Client = &protocol.ClientRun{Released: max(since, -w.WarmUp)} // late, if the directive came late
	}
	if since > w.LastRequest() {
		late := 0.0
		r.ResetsCounted, r.Network.Watched = true, true
		r.Resources = &results.Resources{Seconds: w.Measure.Seconds(), Node: results.NodeUse{Seconds: w.Measure.Seconds(), CPUs: 4}}
		for _, c := range d.Containers {
			r.Resources.Containers = append(r.Resources.Containers, results.ContainerUse{Name: c.Name, Seconds: w.Measure.Seconds(), LateShare: &late, Wakes: 100})
		}
		if d.Client != nil && !r.Over {
			r.Over, r.Client.Ended = true, w.LastRequest()
		}
	}
	if r.Over && !r.Sent {
		packed, err := playedResults(d.Client, w)
		if err != nil {
			a.t.Error(err)
			return
		}
		status, _ := a.ask(ctx, "/v1/results", packed, 10*time.Second)
		if r.Sent = status == http.StatusNoContent; r.Sent {
			a.reach("results")
		}
	}
}

// playedResults are the results of a client that committed ten times a second.
func playedResults(c *protocol.Client, w timeline.Windows) ([]byte, error) {
	const interval = 100 * time.Millisecond
	h := results.NewHistogram()
	commits := int64(w.Measure / interval)
	line := results.NewTimeline(-w.WarmUp.Milliseconds(), int((w.WarmUp+w.Measure+w.CoolDown)/interval))
	for i := range commits {
		h.Record(5 * time.Millisecond)
		bin := int(w.WarmUp/interval) + int(i)
		line.Committed[bin]++
		line.LatencySumMicros[bin] += 5000
	}
	latency, err := h.Encode()
	if err != nil {
		return nil, err
	}
	encoded, err := results.EncodeClient(results.Client{
		Index: c.Index, FirstClient: c.FirstClient, Clients: c.Clients, StartedNanos: -w.WarmUp.Nanoseconds(), MeasureNanos: w.Measure.Nanoseconds(),
		Counters: results.Counters{Offered: commits, Committed: commits}, Latency: latency, Timeline: line,
	})
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	if _, err := gz.Write(encoded); err != nil {
		return nil, err
	}
	if err := gz.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// schedulable makes a node of a pool with room for many pods.
func schedulable(t testing.TB, env *testenv.Env, name, pool string) {
	t.Helper()
	testcluster.Node(t, env.Client, name, pool)
	node := &corev1.Node{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: quantity("6400"), corev1.ResourceMemory: quantity("6400Gi"), corev1.ResourcePods: quantity("20000"),
	}
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := env.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// pooled puts all pods of an experiment into one pool, and makes its trials take only seconds.
func pooled(pool string) func(*v1alpha1.ExperimentSpec) {
	return func(s *v1alpha1.ExperimentSpec) {
		s.Placement.Replicas, s.Placement.Clients = pool, pool
		s.Schedule = v1alpha1.Schedule{WarmUp: "2s", Measure: "3s", CoolDown: "1s", Drain: "1s"}
		s.Clients.Nodes, s.Clients.Count = 2, 4
	}
}
