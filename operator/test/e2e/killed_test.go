package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

var (
	killEvery = flag.Int("kill-every", 12, "kill the manager as soon as each so-many-th of its writes is seen")
	killFrom  = flag.Int("kill-from", 1, "the first of these writes")
)

// When a manager is killed, no trial is lost, repeated or hangs, whatever the manager's last write
// was. Here all parts are real: the agents, the API server, and SIGKILL for the leader's process.
// The kill comes as soon as a watch shows the leader's n-th write about a trial with a fault. By
// then the manager may have made another write. TestAManagerKilledAfterAnyWrite of the controller
// kills exactly after a write, and plays the agents.
//
// Each point takes some 35 s. For all of them, or for those from the 15th on:
//
//	go test ./operator/test/e2e -run TestManagerKilledAfterWrites -timeout 2h -args -kill-every=1
//	go test ./operator/test/e2e -run TestManagerKilledAfterWrites -timeout 2h -args -kill-every=1 -kill-from=15
func TestManagerKilledAfterWrites(t *testing.T) {
	e := newEnv(t)
	e.apply(t, basilFile, nil)
	points, valid := 0, 0
	reasons := map[string]int{}
	for point := *killFrom; point < 200; point += *killEvery {
		killed := false
		ok := t.Run(fmt.Sprint(point), func(t *testing.T) {
			var r results.Trial
			r, killed = e.killAfter(t, point)
			if r.Outcome == v1alpha1.ReasonSucceeded {
				valid++
			} else {
				reasons[r.Reason]++
			}
		})
		if !ok || !killed {
			break
		}
		points++
	}
	t.Logf("killed at %d points of a trial: %d trials valid, the others %v", points, valid, reasons)
	if least := (24 - *killFrom) / *killEvery; points < least {
		t.Errorf("the manager was killed at %d points, want %d at least: it writes 24 times and more", points, least)
	}
}

// killAfter runs a trial with a fault, and kills the leader as soon as that many of its writes are
// seen. It reports whether there were so many writes.
func (e *env) killAfter(t *testing.T, writes int) (r results.Trial, killed bool) {
	t.Helper()
	leader := e.leader(t)
	pid := e.hostProcess(t, leader)
	single := one("failure-fp", "2s", v1alpha1.Schedule{WarmUp: "1s", Measure: "4s", CoolDown: "1s", Drain: "1s"})
	name := fmt.Sprintf("killed-%d", writes)
	seen := e.afterWrites(t, name, writes, func() {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Errorf("kill the manager's process %d: %v", pid, err)
		}
	})
	exp := e.apply(t, failureFile, func(o client.Object) {
		single(o)
		o.SetName(name)
		onceOnly(&o.(*v1alpha1.Experiment).Spec)
	})
	trials := e.complete(t, exp, 3*time.Minute)
	last, killed := seen()
	if len(trials) != 1 {
		t.Fatalf("%d trials, want 1: none is lost, and none repeated", len(trials))
	}
	r = trials[0]
	t.Logf("killed: %v, after %s: %s %s", killed, last, r.Outcome, r.Reason)
	if killed {
		if now := e.leader(t); now == leader && e.hostProcess(t, leader) == pid {
			t.Errorf("%s still leads with process %d: nobody was killed", leader, pid)
		}
	}
	switch {
	case r.Outcome == v1alpha1.ReasonSucceeded:
		if pods, _ := kills(t, r, 2000); len(pods) != 1 || r.Summary.Committed == 0 {
			t.Errorf("%d kills, %d transactions committed; want 1, and some", len(pods), r.Summary.Committed)
		}
	case r.Outcome != v1alpha1.ReasonInvalid || r.Reason == "" || v1alpha1.CausedBy(r.Reason) != v1alpha1.CausedByEnvironment:
		t.Errorf("%s %s %s: want valid, or Invalid by the environment", r.Outcome, r.Reason, r.Message)
	}
	e.oneResult(t, r.Name)
	e.replace(t, leader)
	return r, killed
}

// oneResult checks that the measurements of a trial are stored once.
func (e *env) oneResult(t *testing.T, trial string) {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := e.List(t.Context(), list, client.InNamespace(e.namespace), client.MatchingLabels{v1alpha1.LabelTrial: trial, v1alpha1.LabelResults: "trial"}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Errorf("%d ConfigMaps hold the results of %s, want one", len(list.Items), trial)
	}
}

// replace replaces this manager's pod by a new one, since the kubelet would restart the old one
// later and later.
func (e *env) replace(t *testing.T, manager string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: manager}}
	if err := e.Delete(t.Context(), pod); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	e.eventually(t, time.Minute, "all managers are ready", func(ctx context.Context) (bool, error) {
		d, err := e.clientset.AppsV1().Deployments(systemNamespace).Get(ctx, "assay-manager", metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas, err
	})
}

// hostProcess is the manager's process ID on this machine, if the cluster's nodes run here.
func (e *env) hostProcess(t *testing.T, manager string) int {
	t.Helper()
	pod, err := e.clientset.CoreV1().Pods(systemNamespace).Get(t.Context(), manager, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, container, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || container == "" || !strings.Contains(string(text), container) {
			continue // in another container, or gone meanwhile
		}
		var pid int
		if _, err := fmt.Sscanf(f, "/proc/%d/cgroup", &pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	t.Skipf("the process of %s is not seen from here: the cluster's nodes run elsewhere", manager)
	return 0
}

// afterWrites calls do once, as soon as that many writes of the manager about the experiment are
// seen. The returned function ends the watch, and returns the last write before do.
//
// Only the manager writes Trials and Experiments. It makes and deletes each object of a trial;
// other programs change these meanwhile.
func (e *env) afterWrites(t *testing.T, experiment string, writes int, do func()) (seen func() (last string, done bool)) {
	t.Helper()
	events := make(chan string)
	ctx, stop := context.WithCancel(t.Context())
	for kind, changes := range map[string]bool{
		"assay.dev/v1alpha1 Experiment": true, "assay.dev/v1alpha1 Trial": true,
		"apps/v1 StatefulSet": false, "batch/v1 Job": false, "v1 Service": false, "v1 ConfigMap": false,
	} {
		version, name, _ := strings.Cut(kind, " ")
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: name + "List"}}
		w, err := e.watching.Watch(ctx, list, client.InNamespace(e.namespace))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer w.Stop()
			for event := range w.ResultChan() {
				if object, counts := written(event, experiment, changes); counts {
					select {
					case events <- fmt.Sprintf("%s %s %s", event.Type, name, object):
					case <-ctx.Done():
						return
					}
				}
			}
		}()
	}
	var last string
	var done atomic.Bool
	over := make(chan struct{})
	go func() {
		defer close(over)
		for n := 0; ; {
			select {
			case what := <-events:
				if n++; n == writes {
					do()
					last = what
					done.Store(true)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(stop)
	return func() (string, bool) {
		stop()
		<-over
		return last, done.Load()
	}
}

// written names the object, and reports whether the manager wrote it for the experiment.
func written(event watch.Event, experiment string, changes bool) (string, bool) {
	o, err := meta.Accessor(event.Object)
	if err != nil || event.Type == watch.Bookmark || event.Type == watch.Error || event.Type == watch.Modified && !changes {
		return "", false
	}
	return o.GetName(), strings.HasPrefix(o.GetName(), experiment)
}
