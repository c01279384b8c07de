package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

// trialAt is a trial whose phases take a second each, except for the run.
func trialAt(begun time.Time, run time.Duration) *v1alpha1.Trial {
	at := begun
	next := func(d time.Duration) *metav1.MicroTime {
		at = at.Add(d)
		return &metav1.MicroTime{Time: at}
	}
	t := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
	t.Status.Times = v1alpha1.TrialTimes{
		Admitted: next(0), Deployed: next(time.Second), NetworkVerified: next(time.Second), Started: next(time.Second), Loaded: next(time.Second),
		Barrier: next(time.Second), Released: next(time.Second), Drained: next(run), Collected: next(time.Second), Done: next(time.Second),
	}
	t.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TrialValid, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded}}
	return t
}

func TestTimings(t *testing.T) {
	begun := time.Unix(1000, 0)
	got := timings{schedule: 15 * time.Second}
	for i, run := range []time.Duration{16 * time.Second, 15 * time.Second} {
		one, err := timingOf(trialAt(begun.Add(time.Duration(i)*25*time.Second), run))
		if err != nil {
			t.Fatal(err)
		}
		if one.outcome != v1alpha1.ReasonSucceeded {
			t.Errorf("outcome %s", one.outcome)
		}
		got.trials = append(got.trials, one)
	}
	if diff := cmp.Diff([]time.Duration{9 * time.Second, 8 * time.Second}, got.beyond()); diff != "" {
		t.Errorf("beyond the schedule (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{time.Second}, got.between()); diff != "" {
		t.Errorf("between trials (-want +got):\n%s", diff)
	}
	names, took := got.phases()
	if len(names) != 9 || names[0] != "pods run, files written, names resolve" || took["run, with its schedule"][0] != 16*time.Second || len(took[names[8]]) != 2 {
		t.Errorf("phases %v: %v", names, took)
	}
	unfinished := trialAt(begun, time.Second)
	unfinished.Status.Times.Done = nil
	if _, err := timingOf(unfinished); err == nil {
		t.Error("a trial without an end was timed")
	}
}

func TestTheTable(t *testing.T) {
	one, err := timingOf(trialAt(time.Unix(1000, 0), 16*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	two := one
	two.admitted, two.done = one.admitted.Add(30*time.Second), one.done.Add(30*time.Second)
	row := func(d time.Duration) map[string]time.Duration {
		return map[string]time.Duration{rowRuntime: d, rowEtcd: d}
	}
	used := row(20 * time.Second)
	used[rowSystem] = 8 * time.Second
	var out bytes.Buffer
	(&bench{}).show(&out, spent{wall: 10 * time.Second, rows: row(time.Second)}, spent{rows: row(4 * time.Second)},
		spent{wall: 60 * time.Second, rows: used, kernel: time.Second},
		[]floorTimes{{2 * time.Second, time.Second}, {3 * time.Second, time.Second}}, timings{schedule: 15 * time.Second, trials: []timing{one, two}})
	text := regexp.MustCompile(` +`).ReplaceAllString(out.String(), " ")
	for _, want := range []string{
		"etcd 10.00 3.00 2.00\n", "total 24.00 6.00 4.00\n", "the idle cluster 14.00 4.00 ratio 3.50\n", "threads of the kernel, whole machine 0.50 0.00 0.00\n",
		"a trial beyond its schedule 9.00 9.00 9.00\n", "between two trials 6.00 6.00 6.00\n", "floor: every pod runs 2.50 2.00 3.00\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestTheExperimentIsOneTrialOfSixReplicasAndTwoClients(t *testing.T) {
	exp := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict(experimentFile, exp); err != nil {
		t.Fatal(err)
	}
	replicas := int32(0)
	for _, r := range exp.Spec.Topology.Regions {
		replicas += r.Replicas
	}
	if replicas != floorReplicas || exp.Spec.Clients.Nodes != floorClients || len(exp.Spec.Sweep) != 0 {
		t.Errorf("%d replicas, %d client pods, a sweep of %d axes; the floor has %d and %d", replicas, exp.Spec.Clients.Nodes, len(exp.Spec.Sweep), floorReplicas, floorClients)
	}
}
