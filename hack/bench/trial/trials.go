package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

//go:embed experiment.yaml
var experimentFile []byte

// trialLimit bounds one trial with the time until the next.
const trialLimit = 3 * time.Minute

// timing of a trial: when it was admitted, when all its objects were gone, and how long each phase
// took.
type timing struct {
	name, outcome  string
	admitted, done time.Time
	phases         []phase
}

type phase struct {
	name string
	took time.Duration
}

// timings of trials, and their common schedule.
type timings struct {
	schedule time.Duration
	trials   []timing // in the order of their starts
}

// beyond is the time beyond the schedule of each trial, from its admission until all its objects
// were confirmed gone.
func (t timings) beyond() []time.Duration {
	var out []time.Duration
	for _, one := range t.trials {
		out = append(out, one.done.Sub(one.admitted)-t.schedule)
	}
	return out
}

// between a trial's end and the next one's admission.
func (t timings) between() []time.Duration {
	var out []time.Duration
	for i := 1; i < len(t.trials); i++ {
		out = append(out, t.trials[i].admitted.Sub(t.trials[i-1].done))
	}
	return out
}

// phases by name, in their order. The schedule is subtracted from the run.
func (t timings) phases() (names []string, took map[string][]time.Duration) {
	took = map[string][]time.Duration{}
	for _, one := range t.trials {
		for _, p := range one.phases {
			if !slices.Contains(names, p.name) {
				names = append(names, p.name)
			}
			took[p.name] = append(took[p.name], p.took)
		}
	}
	return names, took
}

// timingOf a finished trial. It leaves out phases that the trial did not reach.
func timingOf(t *v1alpha1.Trial) (timing, error) {
	times := t.Status.Times
	if times.Admitted == nil || times.Done == nil {
		return timing{}, fmt.Errorf("trial %s is over, and does not say when it was admitted and done", t.Name)
	}
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialValid)
	out := timing{name: t.Name, admitted: times.Admitted.Time, done: times.Done.Time, outcome: "unknown"}
	if c != nil {
		out.outcome = c.Reason
	}
	last := times.Admitted
	for _, p := range []struct {
		name string
		at   *metav1.MicroTime
	}{
		{"pods run, files written, names resolve", times.Deployed}, {"network verified", times.NetworkVerified}, {"replicas ready", times.Started},
		{"steps done", times.Loaded}, {"clients ready", times.Barrier}, {"idle machines", times.Released}, {"run, with its schedule", times.Drained},
		{"results collected", times.Collected}, {"everything gone", times.Done},
	} {
		if p.at != nil {
			out.phases = append(out.phases, phase{p.name, p.at.Sub(last.Time)})
			last = p.at
		}
	}
	return out, nil
}

// runTrials runs the experiment to its end. It fails if a trial fails, since a failed trial would
// look cheap.
func (b *bench) runTrials(ctx context.Context) (timings, error) {
	system, exp := &v1alpha1.System{}, &v1alpha1.Experiment{}
	text, err := os.ReadFile(filepath.Join("experiments", "systems", "basil.yaml"))
	if err != nil {
		return timings{}, fmt.Errorf("read the System (run it from the repository's root): %w", err)
	}
	if err := errors.Join(yaml.UnmarshalStrict(text, system), yaml.UnmarshalStrict(experimentFile, exp)); err != nil {
		return timings{}, err
	}
	exp.Spec.Repetitions.Min = int32(b.trials)
	for _, o := range []client.Object{system, exp} {
		o.SetNamespace(namespace)
		if err := b.cluster.Create(ctx, o); err != nil {
			return timings{}, fmt.Errorf("create %s: %w", o.GetName(), err)
		}
	}
	limit := time.Duration(b.trials) * trialLimit
	err = eventually(ctx, limit, time.Second, "the experiment is complete", func(ctx context.Context) (bool, error) {
		err := b.cluster.Get(ctx, client.ObjectKeyFromObject(exp), exp)
		return meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete), err
	})
	if err != nil {
		return timings{}, err
	}
	return b.readTimings(ctx, exp)
}

func (b *bench) readTimings(ctx context.Context, exp *v1alpha1.Experiment) (timings, error) {
	s := exp.Spec.Schedule
	t := timings{schedule: s.WarmUp.OrZero() + s.Measure.OrZero() + s.CoolDown.OrZero() + s.Drain.OrZero()}
	list := &v1alpha1.TrialList{}
	if err := b.cluster.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return t, fmt.Errorf("list trials: %w", err)
	}
	for i := range list.Items {
		one, err := timingOf(&list.Items[i])
		if err != nil {
			return t, err
		}
		if one.outcome != v1alpha1.ReasonSucceeded {
			return t, fmt.Errorf("trial %s ended as %s, and would not show what a trial costs: kubectl get trial -n %s -o yaml, with -keep", one.name, one.outcome, namespace)
		}
		t.trials = append(t.trials, one)
	}
	if len(t.trials) != b.trials {
		return t, fmt.Errorf("the experiment made %d trials, want %d", len(t.trials), b.trials)
	}
	slices.SortFunc(t.trials, func(a, b timing) int { return a.admitted.Compare(b.admitted) })
	return t, nil
}
