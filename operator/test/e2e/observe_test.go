package e2e

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/testseries"
)

// complete waits until the experiment is complete and its results are stored. It returns the
// experiment, and the results of its trials in order. An experiment whose data set fails has no
// results.
func (e *env) complete(t *testing.T, exp *v1alpha1.Experiment, within time.Duration) []results.Trial {
	t.Helper()
	told := ""
	e.eventually(t, within, "experiment "+exp.Name+" is complete", func(ctx context.Context) (bool, error) {
		if err := e.Get(ctx, client.ObjectKeyFromObject(exp), exp); err != nil {
			return false, err
		}
		if state := e.state(ctx, exp); state != told {
			t.Log(state)
			told = state
		}
		c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentComplete)
		if c != nil && c.Reason == v1alpha1.ReasonDataFailed {
			t.Fatalf("experiment %s: %s: %s", exp.Name, c.Reason, c.Message)
		}
		return meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete) &&
			meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentResultsStored), nil
	})
	var all []results.Trial
	for _, trial := range e.trials(t, exp) {
		all = append(all, e.result(t, &trial))
	}
	for _, r := range all {
		t.Logf("%s %v: %s %s %s; %d committed, mean %.2f ms, gap %.1f s, phases %v", r.Name, r.Coordinates, r.Outcome, r.Reason, r.Message,
			r.Summary.Committed, r.Summary.MeanMillis, r.GapSeconds, r.PhaseSeconds)
	}
	return all
}

// state is the experiment's state, for the log.
func (e *env) state(ctx context.Context, exp *v1alpha1.Experiment) string {
	n := exp.Status.Trials
	s := fmt.Sprintf("%d planned, %d active, %d succeeded, %d invalid, %d failed", n.Planned, n.Active, n.Succeeded, n.Invalid, n.Failed)
	list := &v1alpha1.TrialList{}
	if err := e.List(ctx, list, client.InNamespace(e.namespace)); err != nil {
		return s
	}
	for _, trial := range list.Items {
		if meta.IsStatusConditionTrue(trial.Status.Conditions, v1alpha1.TrialComplete) {
			continue
		}
		for _, c := range trial.Status.Conditions {
			if c.Status == metav1.ConditionFalse && c.Type != v1alpha1.TrialComplete {
				s += fmt.Sprintf("; %s %s: %s", trial.Name, c.Reason, c.Message)
			}
		}
	}
	return s
}

// trials of the experiment, in the order of their creation.
func (e *env) trials(t *testing.T, exp *v1alpha1.Experiment) []v1alpha1.Trial {
	t.Helper()
	list := &v1alpha1.TrialList{}
	if err := e.List(t.Context(), list, client.InNamespace(e.namespace), client.MatchingLabels{v1alpha1.LabelExperiment: exp.Name}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Trial) int { return cmp.Compare(a.Spec.Number, b.Spec.Number) })
	return list.Items
}

// result reads the results of a trial.
func (e *env) result(t *testing.T, trial *v1alpha1.Trial) results.Trial {
	t.Helper()
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: e.namespace, Name: trial.Status.ResultsConfigMap}
	if err := e.Get(t.Context(), key, cm); err != nil {
		t.Fatalf("results of %s: %v", trial.Name, err)
	}
	r, err := results.DecodeStored(cm.Data, cm.BinaryData)
	if err != nil {
		t.Fatalf("results of %s: %v", trial.Name, err)
	}
	return r
}

// experimentResult reads the results of the experiment.
func (e *env) experimentResult(t *testing.T, exp *v1alpha1.Experiment) results.Experiment {
	t.Helper()
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: e.namespace, Name: exp.Status.ResultsConfigMap}
	if err := e.Get(t.Context(), key, cm); err != nil {
		t.Fatalf("results of the experiment: %v", err)
	}
	r, err := results.DecodeExperiment([]byte(cm.Data["results.json"]))
	if err != nil {
		t.Fatalf("results of the experiment: %v", err)
	}
	return r
}

// running waits until the n-th trial of the experiment is at the instant, and returns it.
func (e *env) running(t *testing.T, exp *v1alpha1.Experiment, n int32, at, within time.Duration) *v1alpha1.Trial {
	t.Helper()
	var found *v1alpha1.Trial
	e.eventually(t, within, fmt.Sprintf("trial %d of %s runs", n, exp.Name), func(context.Context) (bool, error) {
		for _, trial := range e.trials(t, exp) {
			if meta.IsStatusConditionTrue(trial.Status.Conditions, v1alpha1.TrialComplete) && trial.Spec.Number == n {
				t.Fatalf("trial %s is over before its run was seen: %+v", trial.Name, trial.Status.Conditions)
			}
			if meta.IsStatusConditionTrue(trial.Status.Conditions, v1alpha1.TrialRunning) && trial.Spec.Number == n {
				found = &trial
			}
		}
		return found != nil, nil
	})
	time.Sleep(time.Until(time.Unix(0, found.Status.ZeroUnixNanos).Add(at)))
	return found
}

// succeeded fails the test unless all trials succeeded at the first attempt and no container
// restarted.
func succeeded(t *testing.T, trials []results.Trial, want int) {
	t.Helper()
	if len(trials) != want {
		t.Errorf("%d trials, want %d", len(trials), want)
	}
	for _, r := range trials {
		if r.Outcome != v1alpha1.ReasonSucceeded || r.Attempt != 0 {
			t.Errorf("%s: %s, attempt %d: %s %s %v", r.Name, r.Outcome, r.Attempt, r.Reason, r.Message, r.Logs)
		}
		undisturbed(t, r)
	}
}

// undisturbed fails the test when a container of the trial was restarted.
func undisturbed(t *testing.T, r results.Trial) {
	t.Helper()
	if len(r.Pods) == 0 {
		t.Errorf("%s: no pods in its results", r.Name)
	}
	for _, p := range r.Pods {
		if p.Restarts != 0 {
			t.Errorf("%s: %s was restarted %d times", r.Name, p.Name, p.Restarts)
		}
	}
}

// environment are the reasons for which a trial may be repeated: the kernel gave an agent no
// processor for so long that too few samples are left. The tolerances of onSharedMachine cover all
// other effects of a shared machine; what exceeds them is a defect.
var environment = []string{v1alpha1.ReasonResourcesNotMeasured}

// elected are the reasons of a trial in which the system elected another leader at the instant of a
// fault.
var elected = []string{v1alpha1.ReasonRoleNotFound, v1alpha1.ReasonRoleAmbiguous}

// lastValid returns the last trial, which must have succeeded. See valid.
func lastValid(t *testing.T, trials []results.Trial, reasons ...string) results.Trial {
	t.Helper()
	ok := valid(t, trials, reasons...)
	if len(ok) == 0 {
		t.Fatalf("none of %d trials succeeded", len(trials))
	}
	return ok[len(ok)-1]
}

// valid returns the trials that succeeded. Other trials fail the test, unless they are Invalid
// because of the environment, or for one of the reasons.
func valid(t *testing.T, trials []results.Trial, reasons ...string) []results.Trial {
	t.Helper()
	var ok []results.Trial
	for _, r := range trials {
		switch {
		case r.Outcome == v1alpha1.ReasonSucceeded:
			undisturbed(t, r)
			ok = append(ok, r)
		case r.Outcome == v1alpha1.ReasonInvalid && slices.Contains(append(reasons, environment...), r.Reason):
			t.Logf("%s was repeated: %s", r.Name, r.Message)
		default:
			t.Errorf("%s: %s: %s %s %v", r.Name, r.Outcome, r.Reason, r.Message, r.Logs)
		}
	}
	return ok
}

// low is the latency, in ms, below which 2% of a trial's transactions lie, some four of them. A
// busy machine slows down some transactions, and the system's own delay is in all of them. Under
// hack/bench/steal.sh 30, the quantile of a tenth still was too high: a timeout of 4 ms then cost
// 1.5, 1.9 and 6.4 ms.
func low(t *testing.T, r results.Trial) float64 {
	t.Helper()
	ms, err := testseries.Quantile(r, 2)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

// mostLate bounds how late the most punctual kill of a test may be, in ms. A machine that stalls
// now and then does not exceed it. The VM has the other bounds.
const mostLate = 50.0

// kills compares the fault records of a trial with the planned instant. It returns the pods that
// were killed, and how late the first kill was, in ms.
func kills(t *testing.T, r results.Trial, plannedMillis float64) (pods []string, late float64) {
	t.Helper()
	late = math.Inf(1)
	for _, f := range r.Faults {
		late = min(late, f.StartedMillis-f.PlannedMillis)
		t.Logf("%s: %s on %s planned at %.0f ms, started %+.2f ms later, confirmed %+.2f ms later", r.Name, f.Kind, f.Pod, f.PlannedMillis, f.StartedMillis-f.PlannedMillis, f.ConfirmedMillis-f.PlannedMillis)
		if f.Kind != "Kill" || f.Error != "" || f.PlannedMillis != plannedMillis {
			t.Errorf("%s: fault %+v, want a Kill at %v ms without an error", r.Name, f, plannedMillis)
		}
		if f.StartedMillis < f.PlannedMillis-1 || f.ConfirmedMillis < f.StartedMillis {
			t.Errorf("%s: fault %+v began before its plan, or was confirmed before it began", r.Name, f)
		}
		pods = append(pods, f.Pod)
	}
	return pods, late
}

// left lists the remaining objects of an experiment, without its results.
func (e *env) left(ctx context.Context, exp *v1alpha1.Experiment) ([]string, error) {
	var left []string
	for _, kind := range []string{
		"v1 Pod", "v1 Service", "v1 Secret", "v1 ConfigMap", "v1 ServiceAccount", "v1 PersistentVolumeClaim", "apps/v1 StatefulSet",
		"apps/v1 ControllerRevision", "batch/v1 Job", "discovery.k8s.io/v1 EndpointSlice", "assay.dev/v1alpha1 Trial", "assay.dev/v1alpha1 Experiment",
	} {
		version, name, _ := strings.Cut(kind, " ")
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: name + "List"}}
		if err := e.List(ctx, list, client.InNamespace(e.namespace)); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind, err)
		}
		for _, o := range list.Items {
			if o.Labels[v1alpha1.LabelResults] == "" && belongs(o, exp.Name) {
				left = append(left, name+" "+o.Name)
			}
		}
	}
	return left, nil
}

// belongs reports whether the object is part of the experiment: by its label, or by its name if
// labels are missing.
func belongs(o metav1.PartialObjectMetadata, experiment string) bool {
	return o.Labels[v1alpha1.LabelExperiment] != "" || o.Labels[v1alpha1.LabelTrial] != "" || strings.HasPrefix(o.Name, experiment)
}
