package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

//go:embed experiment.yaml
var experimentFile []byte

// trialResult has the needed fields of a trial's results. Programs outside of operator/ may not
// import the package of results.
type trialResult struct {
	Name, Outcome, Reason, Message string
	Faults                         []record
}

// record is the record of one pod's action for a fault. Times are in ms from t = 0.
type record struct {
	trial                                         string
	ID, Fault, Pod, Kind, Error                   string
	PlannedMillis, StartedMillis, ConfirmedMillis float64
	ReapedMillis                                  float64
	Skipped                                       bool
}

// measureFaults runs the experiment and returns the records of its faults.
func (b *bench) measureFaults(ctx context.Context) ([]record, error) {
	system := &v1alpha1.System{}
	if err := readYAML(filepath.Join("experiments", "systems", "basil.yaml"), system); err != nil {
		return nil, err
	}
	if b.cpu != "" {
		request, err := resource.ParseQuantity(b.cpu)
		if err != nil {
			return nil, fmt.Errorf("-cpu: %w", err)
		}
		system.Spec.Replicas.Containers[0].Resources.Requests[corev1.ResourceCPU] = request
	}
	exp := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict(experimentFile, exp); err != nil {
		return nil, err
	}
	exp.Spec.Repetitions.Min = int32(b.trials)
	exp.Spec.Schedule.Measure = duration(time.Duration(b.times+4) * time.Second)
	for i := range exp.Spec.Faults {
		exp.Spec.Faults[i].Repeat.Times = int32(b.times)
	}
	if b.shaped {
		delay := v1alpha1.Duration("1ms")
		exp.Spec.Network.Links = []v1alpha1.RegionLink{{From: "local", To: "local", LinkEffect: v1alpha1.LinkEffect{Delay: &delay}}}
	}
	for _, o := range []client.Object{system, exp} {
		o.SetNamespace(namespace)
		if err := b.cluster.Create(ctx, o); err != nil {
			return nil, fmt.Errorf("create %s: %w", o.GetName(), err)
		}
	}
	each := time.Duration(b.times)*time.Second + time.Minute
	err := eventually(ctx, time.Duration(b.trials)*each, "the experiment is complete", func(ctx context.Context) (bool, error) {
		err := b.cluster.Get(ctx, client.ObjectKeyFromObject(exp), exp)
		return meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete), err
	})
	if err != nil {
		return nil, err
	}
	return b.records(ctx)
}

// records of all trials. A failed action fails the measurement: the remaining ones would look
// better than they are.
func (b *bench) records(ctx context.Context) ([]record, error) {
	list := &corev1.ConfigMapList{}
	if err := b.cluster.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelResults: "trial"}); err != nil {
		return nil, fmt.Errorf("list results: %w", err)
	}
	var all []record
	for _, cm := range list.Items {
		var r trialResult
		if err := json.Unmarshal([]byte(cm.Data["trial.json"]), &r); err != nil {
			return nil, fmt.Errorf("results in %s: %w", cm.Name, err)
		}
		fmt.Printf("%s: %s %s %s, %d records of faults\n", r.Name, r.Outcome, r.Reason, r.Message, len(r.Faults))
		if r.Outcome != v1alpha1.ReasonSucceeded {
			return nil, fmt.Errorf("trial %s: %s: %s", r.Name, r.Reason, r.Message)
		}
		for _, f := range r.Faults {
			if f.Error != "" || f.Skipped {
				return nil, fmt.Errorf("trial %s: %s was not done: %s", r.Name, f.ID, f.Error)
			}
			f.trial = r.Name
			all = append(all, f)
		}
	}
	return all, nil
}

func readYAML(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("run this from the repository's root: %w", err)
	}
	if bytes.Contains(text, []byte("\n---\n")) {
		return fmt.Errorf("%s has more than one document", file)
	}
	return yaml.UnmarshalStrict(text, into)
}

func (b *bench) makeNamespace(ctx context.Context) error {
	b.removeNamespace() // a leftover of an interrupted run
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "privileged", // agents need NET_ADMIN
	}}}
	return b.cluster.Create(ctx, ns)
}

// removeNamespace removes the experiment first, since its finalizers need their manager.
func (b *bench) removeNamespace() {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	err := errors.Join(
		client.IgnoreNotFound(b.cluster.DeleteAllOf(ctx, &v1alpha1.Experiment{}, client.InNamespace(namespace))),
		client.IgnoreNotFound(b.cluster.Delete(ctx, ns)),
		eventually(ctx, 2*time.Minute, "namespace "+namespace+" is gone", func(ctx context.Context) (bool, error) {
			err := b.cluster.Get(ctx, client.ObjectKeyFromObject(ns), ns)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}))
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-faults:", err)
	}
}

// eventually waits until the condition holds. It retries after errors, and reports the last one at
// the end.
func eventually(ctx context.Context, within time.Duration, what string, holds func(context.Context) (bool, error)) error {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	for {
		ok, err := holds(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %s (last error: %w)", within, what, errors.Join(err, ctx.Err()))
		case <-time.After(200 * time.Millisecond):
		}
	}
}
