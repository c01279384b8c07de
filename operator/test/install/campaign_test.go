//go:build campaign

package install

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/store"
)

var (
	kills      = flag.Int("kills", 50, "how many kills in all, with those of the file")
	perTrial   = flag.Int("kills-per-trial", 1, "how many kills a trial gets on average; it gets 1 to twice as many less 1")
	killsFor   = flag.Duration("kills-for", 0, "begin no further trial after so long; 0: all kills are done")
	killRecord = flag.String("kill-record", "", "a file to which each kill is added; a campaign that was ended goes on after those that are in it")
	killCommit = flag.String("kill-commit", "", "the commit of the managers and of this program, which each kill is noted with")
	onlyVictim = flag.String("victim", "", "kill these alone")
)

// campaignNamespace has the experiments.
const campaignNamespace = "install-campaign"

// victims of a campaign. Each function kills one victim and returns its name, or "" if there is
// none now.
var victims = map[string]func(*campaign, *testing.T, *v1alpha1.Experiment) string{
	"manager":  (*campaign).killManager,
	"agent":    func(c *campaign, t *testing.T, e *v1alpha1.Experiment) string { return c.killInPod(t, e, "agent") },
	"launcher": func(c *campaign, t *testing.T, e *v1alpha1.Experiment) string { return c.killInPod(t, e, "") },
	"API server": func(c *campaign, t *testing.T, _ *v1alpha1.Experiment) string {
		return c.killNamed("kube-apiserver", "--etcd-servers")
	},
	"etcd": func(c *campaign, t *testing.T, _ *v1alpha1.Experiment) string {
		return c.killNamed("etcd", "--data-dir=/var/lib/etcd")
	},
	"kubelet": func(c *campaign, t *testing.T, _ *v1alpha1.Experiment) string {
		return c.killNamed("kubelet", "--kubeconfig")
	},
	"node":  (*campaign).killNode,
	"store": (*campaign).killStore,
}

// kill is one kill of a victim.
type kill struct {
	Victim string  `json:"victim"`
	Which  string  `json:"which"`
	Hit    bool    `json:"hit"`          // a process of the system or of a client ended with it
	After  float64 `json:"afterSeconds"` // of the experiment's creation
	// from and to are instants before and after it.
	from, to time.Time
}

// killed is one trial: the kills in the middle of it, and its outcome.
type killed struct {
	Number  int     `json:"number"`
	Commit  string  `json:"commit"`
	Kills   []kill  `json:"kills"`
	Reason  string  `json:"reason"` // of the trial's condition Valid, as the message
	Message string  `json:"message,omitempty"`
	Took    float64 `json:"tookSeconds"`
	Lost    string  `json:"lost,omitempty"`
	Repeats string  `json:"repeated,omitempty"`
	Wrong   string  `json:"wrong,omitempty"`
	Left    string  `json:"left,omitempty"`
}

// campaign kills on a real cluster.
type campaign struct {
	*owner
	draw *rand.Rand
	// hit: the last kill ended such a process. killedAt is when the kill ended, if the victim's
	// function knows it better than its caller.
	hit      bool
	killedAt time.Time
	done     []killed
	old      int // how many of those an earlier run did
	file     *os.File
	began    time.Time
}

// TestCampaign runs one short trial after the other, and kills processes or nodes in the middle of
// each. No trial may be lost, repeated or judged wrongly, and no object may be left. A file has all
// kills, so that several runs form one campaign.
//
//	make campaign KILLS=500 PER_TRIAL=3 FOR=20m
func TestCampaign(t *testing.T) {
	c := &campaign{owner: newOwner(t)}
	c.resume(t)
	if c.others.s3 = c.withS3(t); !c.others.configured {
		c.upgrade(t, chart, "--values="+c.others.s3.values)
		c.takenOver(t)
	}
	c.makeNamespace(t, campaignNamespace)
	c.create(t, system(t, "etcd", campaignNamespace))
	c.undisturbed(t)
	quickRestarts(t)
	ctx, end := context.WithCancel(t.Context())
	kept := make(chan struct{})
	go func() { defer close(kept); keepServers(ctx, t, c.Client) }()
	defer func() { end(); <-kept }()
	c.began = time.Now()
	defer c.sum(t) // also if the campaign ends because the cluster has not recovered
	for c.count() < *kills && !t.Failed() && (*killsFor == 0 || time.Since(c.began) < *killsFor) {
		c.one(t, len(c.done)+1)
	}
}

// quickRestarts makes the kubelets restart containers after a second, however often they ended. By
// default they wait up to five minutes, and the campaign would lose that time.
func quickRestarts(t *testing.T) {
	t.Helper()
	for _, name := range kindNodes(t.Context(), t, "") {
		out, err := exec.CommandContext(t.Context(), "docker", "exec", name, "sh", "-c",
			`sed -i 's/^crashLoopBackOff: {}$/crashLoopBackOff: {maxContainerRestartPeriod: 1s}/' /var/lib/kubelet/config.yaml && systemctl restart kubelet`).CombinedOutput()
		if err != nil {
			t.Fatalf("configure the kubelet of %s: %v: %s", name, err, out)
		}
	}
}

// kindNodes are the containers of a role, or all.
func kindNodes(ctx context.Context, t *testing.T, role string) []string {
	t.Helper()
	filter := "label=io.x-k8s.kind.role"
	if role != "" {
		filter += "=" + role
	}
	out, err := exec.CommandContext(ctx, "docker", "ps", "--format={{.Names}}", "--filter", filter).Output()
	if err != nil && ctx.Err() == nil {
		t.Errorf("list the nodes of kind: %v", err)
	}
	return strings.Fields(string(out))
}

// keepServers takes the power from the control plane when the API server has not answered for 30 s.
// A kubelet that was killed while etcd was down does not start etcd: it waits for the API server,
// and the API server waits for etcd.
func keepServers(ctx context.Context, t *testing.T, c client.Client) {
	for answered := time.Now(); ctx.Err() == nil; time.Sleep(time.Second) {
		ask, stop := context.WithTimeout(ctx, 5*time.Second)
		err := c.Get(ask, client.ObjectKey{Name: campaignNamespace}, &corev1.Namespace{})
		stop()
		if err == nil {
			answered = time.Now()
		}
		if time.Since(answered) < 30*time.Second {
			continue
		}
		for _, name := range kindNodes(ctx, t, "control-plane") {
			if out, err := exec.CommandContext(ctx, "docker", "restart", "--timeout=0", name).CombinedOutput(); err != nil && ctx.Err() == nil {
				t.Errorf("restart %s: %v: %s", name, err, out)
			}
		}
		answered = time.Now()
	}
}

// undisturbed runs one trial without a kill. It must count: if no pod starts, every trial ends in
// the same way, whatever is killed. Its results must be stored: if the store takes none, no later
// trial ends.
func (c *campaign) undisturbed(t *testing.T) {
	t.Helper()
	exp := c.short(t, "undisturbed")
	eventually(t, 2*patience, "an experiment is complete and stored without any kill", func(ctx context.Context) (bool, error) {
		return c.ended(ctx, exp), fmt.Errorf("%+v", exp.Status.Conditions)
	})
	for _, trial := range c.trialsOf(t, exp) {
		if v := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialValid); v == nil || v.Status != metav1.ConditionTrue {
			t.Fatalf("without any kill, trial %s does not count: %+v", trial.Name, v)
		}
	}
	c.deleted(t, exp)
}

// short makes the experiment of one short trial.
func (c *campaign) short(t *testing.T, name string) *v1alpha1.Experiment {
	t.Helper()
	return c.applyExperiment(t, campaignNamespace, func(e *v1alpha1.Experiment) {
		e.Name = name
		e.Spec.Sweep, e.Spec.Clients.Count = nil, 2
		e.Spec.Retries, e.Spec.Disturbances.RetryFor = new(int32), "0s"
		e.Spec.Results = &v1alpha1.Results{Store: "archive"}
	})
}

// count is the number of kills.
func (c *campaign) count() (n int) {
	for _, k := range c.done {
		n += len(k.Kills)
	}
	return n
}

// resume reads the kills of earlier runs.
func (c *campaign) resume(t *testing.T) {
	t.Helper()
	if *killRecord == "" {
		return
	}
	text, err := os.ReadFile(*killRecord)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for scanner := bufio.NewScanner(strings.NewReader(string(text))); scanner.Scan(); {
		var k killed
		if json.Unmarshal(scanner.Bytes(), &k) == nil { // else the line was cut off
			c.done = append(c.done, k)
		}
	}
	c.old = len(c.done)
	if c.file, err = os.OpenFile(*killRecord, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		t.Fatal(err)
	}
}

// one runs a trial and kills in the middle of it.
func (c *campaign) one(t *testing.T, number int) {
	c.draw = rand.New(rand.NewPCG(uint64(number), 36))
	if *onlyVictim != "" && victims[*onlyVictim] == nil {
		t.Fatalf("there is no victim %q; there are %s", *onlyVictim, strings.Join(slices.Sorted(maps.Keys(victims)), ", "))
	}
	exp := c.short(t, fmt.Sprintf("killed-%d", number))
	began := time.Now()
	k := killed{Number: number, Commit: *killCommit}
	window := 12 * time.Second // a trial takes about as long
	for range 1 + c.draw.IntN(2*max(1, *perTrial)-1) {
		time.Sleep(time.Duration(c.draw.Int64N(int64(window))))
		window = 6 * time.Second
		one, found := c.kill(t, exp, began)
		if !found {
			break
		}
		k.Kills = append(k.Kills, one)
	}
	c.judge(t, exp, &k)
	k.Took = time.Since(began).Seconds()
	c.note(t, k)
	c.recover(t)
	c.deleted(t, exp)
	var texts []string
	for _, one := range k.Kills {
		texts = append(texts, fmt.Sprintf("%s %s after %.0f s", one.Victim, one.Which, one.After))
	}
	t.Logf("trial %d, %d of %d kills: %s: %s, %.0f s, with recovery %.0f s %s%s%s%s", number, c.count(), *kills,
		cmp.Or(strings.Join(texts, ", "), "stored before any kill"), k.Reason, k.Took, time.Since(began).Seconds(), k.Lost, k.Repeats, k.Wrong, k.Left)
}

// kill draws a victim and kills it as soon as there is one. It finds none if the experiment is
// complete and stored before.
func (c *campaign) kill(t *testing.T, exp *v1alpha1.Experiment, began time.Time) (k kill, found bool) {
	t.Helper()
	names := slices.Sorted(maps.Keys(victims))
	k.Victim = cmp.Or(*onlyVictim, names[c.draw.IntN(len(names))])
	eventually(t, patience, "something can be killed, or the experiment is complete and stored", func(ctx context.Context) (bool, error) {
		if c.ended(ctx, exp) {
			return true, nil
		}
		c.hit, c.killedAt, k.from = false, time.Time{}, time.Now()
		k.Which = victims[k.Victim](c, t, exp)
		k.Hit, k.to = c.hit, cmp.Or(c.killedAt, time.Now())
		return k.Which != "", nil
	})
	k.After = time.Since(began).Seconds()
	return k, k.Which != ""
}

func (c *campaign) note(t *testing.T, k killed) {
	t.Helper()
	c.done = append(c.done, k)
	if c.file == nil {
		return
	}
	text, err := json.Marshal(k)
	if err == nil {
		_, err = c.file.Write(append(text, '\n'))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// judge waits for the end of the experiment, and records what is wrong with it.
func (c *campaign) judge(t *testing.T, exp *v1alpha1.Experiment, k *killed) {
	t.Helper()
	deadline := time.Now().Add(2 * patience)
	for stored := false; !stored; {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		stored = c.ended(ctx, exp)
		stop()
		if time.Now().After(deadline) {
			k.Lost = fmt.Sprintf("the experiment is not complete and stored after %v: %+v", 2*patience, exp.Status.Conditions)
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	trials := c.trialsOf(t, exp)
	if len(trials) != 1 {
		k.Repeats = fmt.Sprintf("there are %d trials", len(trials))
		if len(trials) == 0 {
			k.Lost, k.Repeats = "there is no trial", ""
		}
		return
	}
	trial := &trials[0]
	valid := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialValid)
	k.Reason, k.Message = valid.Reason, valid.Message
	zero := time.Unix(0, trial.Status.ZeroUnixNanos)
	hit := slices.ContainsFunc(k.Kills, func(one kill) bool { // surely within the run, of 4 s
		return one.Hit && trial.Status.ZeroUnixNanos != 0 && one.from.After(zero) && one.to.Before(zero.Add(3*time.Second))
	})
	switch {
	case valid.Status == metav1.ConditionTrue && hit:
		k.Wrong = "the trial counts, though a process of it was killed in its run"
	case valid.Status != metav1.ConditionTrue && v1alpha1.CausedBy(valid.Reason) != v1alpha1.CausedByEnvironment:
		k.Wrong = fmt.Sprintf("the system is blamed: %s: %s", valid.Reason, valid.Message)
	}
	c.judgeStored(t, exp, trial, k)
	k.Left = c.leftOver(t, trial.Name)
}

// ended reports whether the experiment is complete and stored. It returns false if the API server
// does not answer.
func (c *campaign) ended(ctx context.Context, exp *v1alpha1.Experiment) bool {
	return c.isComplete(ctx, exp) && meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentResultsStored)
}

// trialsOf an experiment. The API server may be down.
func (c *campaign) trialsOf(t *testing.T, exp *v1alpha1.Experiment) []v1alpha1.Trial {
	t.Helper()
	list := &v1alpha1.TrialList{}
	eventually(t, patience, "trials can be listed", func(ctx context.Context) (bool, error) {
		err := c.List(ctx, list, client.InNamespace(exp.Namespace), client.MatchingLabels{v1alpha1.LabelExperiment: exp.Name})
		return err == nil, err
	})
	return list.Items
}

// judgeStored reads all results of the experiment back.
func (c *campaign) judgeStored(t *testing.T, exp *v1alpha1.Experiment, trial *v1alpha1.Trial, k *killed) {
	t.Helper()
	eventually(t, patience, "the store can be read", func(ctx context.Context) (bool, error) {
		_, _, err := store.ReadManifest(ctx, c.others.s3.Bucket, store.ExperimentFolder(exp.Namespace, exp.Name, string(exp.UID)))
		return err == nil || errors.Is(err, store.ErrNotFound), err
	})
	if _, err := store.Verify(t.Context(), c.others.s3.Bucket, store.ExperimentFolder(exp.Namespace, exp.Name, string(exp.UID))); err != nil {
		k.Lost = fmt.Sprintf("what is stored is not right: %v", err)
	}
	held := &corev1.ConfigMapList{}
	eventually(t, patience, "results can be listed", func(ctx context.Context) (bool, error) {
		err := c.List(ctx, held, client.InNamespace(exp.Namespace), client.MatchingLabels{v1alpha1.LabelTrial: trial.Name, v1alpha1.LabelResults: "trial"})
		return err == nil, err
	})
	if trial.Status.ResultsConfigMap != "" && len(held.Items) != 1 {
		k.Repeats = fmt.Sprintf("%d ConfigMaps hold the trial's results", len(held.Items))
	}
}

// leftOver names the objects of a trial that are left a minute after it was complete.
func (c *campaign) leftOver(t *testing.T, trial string) string {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		left = nil
		failed := false
		for _, list := range []client.ObjectList{&corev1.PodList{}, &appsv1.StatefulSetList{}, &batchv1.JobList{}, &corev1.ServiceList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}} {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			err := c.List(ctx, list, client.InNamespace(campaignNamespace), client.MatchingLabels{v1alpha1.LabelTrial: trial})
			stop()
			failed = failed || err != nil
			_ = meta.EachListItem(list, func(o runtime.Object) error {
				if a, err := meta.Accessor(o); err == nil && (a.GetLabels()[v1alpha1.LabelResults] == "" || a.GetLabels()[v1alpha1.LabelResults] == v1alpha1.ResultsKept) {
					left = append(left, fmt.Sprintf("%T %s", o, a.GetName()))
				}
				return nil
			})
		}
		if len(left) == 0 && !failed || time.Now().After(deadline) {
			return strings.Join(left, ", ")
		}
	}
}

// recover waits until the cluster is whole again. It replaces pods that were killed, since the
// kubelet would restart them later and later.
func (c *campaign) recover(t *testing.T) {
	t.Helper()
	eventually(t, patience, "all nodes are Ready", func(ctx context.Context) (bool, error) {
		nodes := &corev1.NodeList{}
		err := c.List(ctx, nodes)
		ready := err == nil
		for i := range nodes.Items {
			ready = ready && slices.ContainsFunc(nodes.Items[i].Status.Conditions, func(n corev1.NodeCondition) bool {
				return n.Type == corev1.NodeReady && n.Status == corev1.ConditionTrue
			})
		}
		return ready, err
	})
	for _, selector := range []struct{ namespace, label, value string }{
		{namespace, "app.kubernetes.io/component", "manager"}, {s3Namespace, "app", "s3"},
	} {
		eventually(t, patience, "pods that were restarted are replaced", func(ctx context.Context) (bool, error) {
			pods := &corev1.PodList{}
			if err := c.List(ctx, pods, client.InNamespace(selector.namespace), client.MatchingLabels{selector.label: selector.value}); err != nil {
				return false, err
			}
			whole := len(pods.Items) > 0
			var errs []error
			for i := range pods.Items {
				p := &pods.Items[i]
				restarted := slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 })
				ready := slices.ContainsFunc(p.Status.Conditions, func(n corev1.PodCondition) bool { return n.Type == corev1.PodReady && n.Status == corev1.ConditionTrue })
				if restarted && p.DeletionTimestamp == nil {
					errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, p)))
				}
				whole = whole && !restarted && ready && p.DeletionTimestamp == nil
			}
			return whole, errors.Join(errs...)
		})
	}
}

// killManager kills the process of the manager that leads.
func (c *campaign) killManager(t *testing.T, _ *v1alpha1.Experiment) string {
	pods := &corev1.PodList{}
	lease, err := c.clientset.CoordinationV1().Leases(namespace).Get(t.Context(), "manager.assay.dev", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || c.List(t.Context(), pods, client.InNamespace(namespace)) != nil {
		return ""
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if strings.HasPrefix(*lease.Spec.HolderIdentity, p.Name+"_") && len(p.Status.ContainerStatuses) > 0 && killContainer(p.Status.ContainerStatuses[0].ContainerID) {
			return p.Name
		}
	}
	return ""
}

// killInPod kills the first process of a container in one of the trial's pods. The container is the
// agent's, or the first one of the system, where the first process is the launcher.
func (c *campaign) killInPod(t *testing.T, exp *v1alpha1.Experiment, container string) string {
	pods := &corev1.PodList{}
	if c.List(t.Context(), pods, client.InNamespace(exp.Namespace), client.MatchingLabels{v1alpha1.LabelExperiment: exp.Name}) != nil || len(pods.Items) == 0 {
		return ""
	}
	p := &pods.Items[c.draw.IntN(len(pods.Items))]
	all := p.Status.ContainerStatuses
	if container != "" {
		all = p.Status.InitContainerStatuses
	}
	for _, s := range all {
		if (container == "" || s.Name == container) && s.State.Running != nil && killContainer(s.ContainerID) {
			c.hit = container == ""
			return p.Name + "/" + s.Name
		}
	}
	return ""
}

// killStore kills the process of the S3 server.
func (c *campaign) killStore(t *testing.T, _ *v1alpha1.Experiment) string {
	pods := &corev1.PodList{}
	if c.List(t.Context(), pods, client.InNamespace(s3Namespace)) != nil {
		return ""
	}
	for i := range pods.Items {
		if s := pods.Items[i].Status.ContainerStatuses; len(s) > 0 && s[0].State.Running != nil && killContainer(s[0].ContainerID) {
			return pods.Items[i].Name
		}
	}
	return ""
}

// killNode takes the power from a worker, a container of the local docker, and gives it back.
func (c *campaign) killNode(t *testing.T, exp *v1alpha1.Experiment) string {
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	if c.List(t.Context(), nodes) != nil || c.List(t.Context(), pods, client.InNamespace(exp.Namespace), client.MatchingLabels{v1alpha1.LabelExperiment: exp.Name}) != nil {
		return ""
	}
	var workers []string
	for i := range nodes.Items {
		if _, control := nodes.Items[i].Labels["node-role.kubernetes.io/control-plane"]; !control {
			workers = append(workers, nodes.Items[i].Name)
		}
	}
	if len(workers) == 0 {
		t.Fatal("the cluster has no worker (make cluster WORKERS=2)")
	}
	slices.Sort(workers)
	name := workers[c.draw.IntN(len(workers))]
	for _, do := range []string{"kill", "start"} { // a busy machine may take seconds for either
		if out, err := exec.CommandContext(t.Context(), "docker", do, name).CombinedOutput(); err != nil {
			t.Fatalf("%s node %s: %v: %s", do, name, err, out)
		}
		c.killedAt = cmp.Or(c.killedAt, time.Now())
	}
	for i := range pods.Items {
		for _, s := range pods.Items[i].Status.ContainerStatuses {
			c.hit = c.hit || pods.Items[i].Spec.NodeName == name && s.State.Running != nil
		}
	}
	return name
}

// killNamed kills one process of this name, on any node of kind. Other tests of this machine may
// have an API server, too, and pods of trials may have processes of that name. The argument
// identifies the right process.
func (c *campaign) killNamed(name, argument string) string {
	nodes, err := exec.Command("docker", "ps", "--no-trunc", "--format={{.ID}}", "--filter", "label=io.x-k8s.kind.role").Output()
	if err != nil {
		return ""
	}
	onNode := func(cgroups []byte) bool {
		return slices.ContainsFunc(strings.Fields(string(nodes)), func(id string) bool { return strings.Contains(string(cgroups), id) })
	}
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return ""
	}
	var pids []int
	for _, f := range files {
		is, err := os.ReadFile(f)
		arguments, err2 := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		cgroups, err3 := os.ReadFile(filepath.Join(filepath.Dir(f), "cgroup"))
		if errors.Join(err, err2, err3) != nil || !onNode(cgroups) || strings.TrimSpace(string(is)) != name || !strings.Contains(string(arguments), argument) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return ""
	}
	slices.Sort(pids)
	pid := pids[c.draw.IntN(len(pids))]
	if syscall.Kill(pid, syscall.SIGKILL) != nil {
		return ""
	}
	return fmt.Sprintf("process %d", pid)
}

// killContainer kills the first process of a container, if it runs on this machine.
func killContainer(id string) bool {
	_, id, _ = strings.Cut(id, "://")
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil || id == "" {
		return false
	}
	first := 0
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), id) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && (first == 0 || pid < first) {
				first = pid
			}
		}
	}
	return first != 0 && syscall.Kill(first, syscall.SIGKILL) == nil
}

// tally has the outcomes of trials after some kills.
type tally struct {
	kills, trials, valid, lost, repeated, wrong, left int
	reasons                                           map[string]int // of trials that do not count
}

func (s *tally) add(k killed, kills int) {
	s.kills += kills
	s.trials++
	if k.Reason == v1alpha1.ReasonSucceeded {
		s.valid++
	} else {
		s.reasons[k.Reason]++
	}
	for n, what := range map[*int]string{&s.lost: k.Lost, &s.repeated: k.Repeats, &s.wrong: k.Wrong, &s.left: k.Left} {
		if what != "" {
			*n++
		}
	}
}

func (s *tally) String() string {
	return fmt.Sprintf("%4d kills in %d trials: %d lost, %d repeated, %d wrong, %d left over; %d valid, others %v", s.kills, s.trials, s.lost, s.repeated, s.wrong, s.left, s.valid, s.reasons)
}

// sum prints the outcomes of all trials, by victim and by commit. A trial with several kills is in
// the line of each of its victims. A violation at another commit is printed, but fails no test: it
// may be fixed.
func (c *campaign) sum(t *testing.T) {
	t.Helper()
	all, byVictim, byCommit := &tally{reasons: map[string]int{}}, map[string]*tally{}, map[string]*tally{}
	for _, k := range c.done {
		all.add(k, len(k.Kills))
		byCommit[k.Commit] = cmp.Or(byCommit[k.Commit], &tally{reasons: map[string]int{}})
		byCommit[k.Commit].add(k, len(k.Kills))
		mine := map[string]int{}
		for _, one := range k.Kills {
			mine[one.Victim]++
		}
		for victim, kills := range mine {
			byVictim[victim] = cmp.Or(byVictim[victim], &tally{reasons: map[string]int{}})
			byVictim[victim].add(k, kills)
		}
		for _, what := range []string{k.Lost, k.Repeats, k.Wrong, k.Left} {
			if text := fmt.Sprintf("trial %d at commit %s, %+v: %s", k.Number, k.Commit, k.Kills, what); what != "" && k.Commit == *killCommit {
				t.Error(text)
			} else if what != "" {
				t.Log(text)
			}
		}
	}
	for _, rows := range []map[string]*tally{byVictim, byCommit} {
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			t.Logf("%-12s %v", name, rows[name])
		}
	}
	took, now := time.Since(c.began), len(c.done)-c.old
	t.Logf("all          %v", all)
	t.Logf("%d of %d wanted; %d trials in this run of %v, %.2f a minute", c.count(), *kills, now, took.Round(time.Second), float64(now)/took.Minutes())
}
