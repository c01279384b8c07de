// Package builders makes valid Systems, Experiments and Trials for tests. Each method changes one
// part of an object. Only _test files import it.
//
// Each method sets one field, resets no other field, and may be called in any order. Obj returns
// the object itself, and Clone an independent builder.
package builders

import (
	"time"

	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Namespace of the objects, unless a test sets another one.
const Namespace = "default"

// Value returns anything as a Value.
func Value(v any) v1alpha1.Value { return v1alpha1.NewValue(fmt.Sprint(v)) }

// Values returns a list of Values.
func Values(vs ...any) []v1alpha1.Value {
	out := make([]v1alpha1.Value, len(vs))
	for i, v := range vs {
		out[i] = Value(v)
	}
	return out
}

// SystemBuilder builds a System.
type SystemBuilder struct{ obj v1alpha1.System }

// System returns a System of 5f+1 replicas with one workload, "echo", and a few parameters.
func System(name string) *SystemBuilder {
	one := Value(1)
	b := &SystemBuilder{obj: v1alpha1.System{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "System"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace},
		Spec: v1alpha1.SystemSpec{
			Description: "A system for tests.",
			Parameters: []v1alpha1.Parameter{
				{Name: "fastPath", Type: v1alpha1.ParameterBoolean, Default: ptr(Value(true)), Doc: "Whether one round trip may commit."},
				{Name: "fastPathTimeout", Type: v1alpha1.ParameterDuration, Default: ptr(Value("4ms")), Doc: "How long the fast path is waited for."},
				{Name: "batch", Type: v1alpha1.ParameterInteger, Default: &one, Minimum: &one, Maximum: ptr(Value(64)), Doc: "Transactions in a batch."},
			},
			Workloads: []v1alpha1.Workload{{Name: "echo", Parameters: []v1alpha1.Parameter{
				{Name: "distribution", Type: v1alpha1.ParameterString, Default: ptr(Value("uniform")),
					Allowed: Values("uniform", "zipf"), Doc: "How keys are chosen."},
			}}},
			Replicas: v1alpha1.ReplicasSpec{
				Count:      "5*f+1",
				Ports:      []v1alpha1.Port{{Name: "peer", Port: 7000}},
				Containers: []v1alpha1.Container{{Name: "replica", Image: "example.org/echo:1", Command: []string{"/echo", "--batch={{.Parameters.batch}}"}}},
				Ready:      []v1alpha1.Gate{{Log: &v1alpha1.LogGate{Pattern: "^ready$"}}},
			},
			Clients: v1alpha1.ClientsTemplate{
				Containers: []v1alpha1.Container{{Name: "client", Image: "example.org/echo:1", Command: []string{"/driver"}}},
				Driver:     &v1alpha1.DriverSpec{Protocol: "Process"},
			},
		},
	}}
	return b
}

// Namespace sets the namespace.
func (b *SystemBuilder) Namespace(ns string) *SystemBuilder { b.obj.Namespace = ns; return b }

// Count sets the expression that gives the number of replicas.
func (b *SystemBuilder) Count(expr string) *SystemBuilder { b.obj.Spec.Replicas.Count = expr; return b }

// Parameter adds a parameter.
func (b *SystemBuilder) Parameter(p v1alpha1.Parameter) *SystemBuilder {
	b.obj.Spec.Parameters = append(b.obj.Spec.Parameters, p)
	return b
}

// Set makes any other change.
func (b *SystemBuilder) Set(change func(*v1alpha1.SystemSpec)) *SystemBuilder {
	change(&b.obj.Spec)
	return b
}

// Clone returns an independent copy.
func (b *SystemBuilder) Clone() *SystemBuilder { return &SystemBuilder{obj: *b.obj.DeepCopy()} }

// Obj returns the System.
func (b *SystemBuilder) Obj() *v1alpha1.System { return b.obj.DeepCopy() }

// ExperimentBuilder builds an Experiment.
type ExperimentBuilder struct{ obj v1alpha1.Experiment }

// Experiment returns an experiment of the workload "echo" without systems and axes, with three
// repetitions and every default filled in.
func Experiment(name string) *ExperimentBuilder {
	return &ExperimentBuilder{obj: v1alpha1.Experiment{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Experiment"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace},
		Spec: v1alpha1.ExperimentSpec{
			Topology: v1alpha1.Topology{F: 1, Shards: 1},
			Network:  v1alpha1.Network{Profile: "lan"},
			Workload: v1alpha1.WorkloadReference{Name: "echo"},
			Clients: v1alpha1.Clients{Loop: v1alpha1.LoopClosed, Nodes: 1, Count: 1, Timeout: "10s",
				Retry: v1alpha1.Retry{Backoff: "2ms", MaxBackoff: "300ms"}, ThinkTime: "0s"},
			Schedule:    v1alpha1.Schedule{WarmUp: "5s", Measure: "20s", CoolDown: "2s", Drain: "10s"},
			Repetitions: v1alpha1.Repetitions{Min: 3},
			Order:       v1alpha1.OrderRandomizedInterleaved,
			Retries:     ptr(int32(2)),
			Tolerances: v1alpha1.Tolerances{
				FaultLateness: "20ms", StartSpread: "100ms", LinkLoss: "5%", Throttling: "1%", Steal: "1%", Contention: "5%", GeneratorLag: "10ms", ClockError: "10ms", OutOfRange: "0%",
			},
		},
	}}
}

// Namespace sets the namespace.
func (b *ExperimentBuilder) Namespace(ns string) *ExperimentBuilder { b.obj.Namespace = ns; return b }

// System adds a system.
func (b *ExperimentBuilder) System(name string) *ExperimentBuilder {
	b.obj.Spec.Systems = append(b.obj.Spec.Systems, v1alpha1.SystemReference{Name: name})
	return b
}

// Parameter sets a parameter of all points.
func (b *ExperimentBuilder) Parameter(name string, v any) *ExperimentBuilder {
	if b.obj.Spec.Parameters == nil {
		b.obj.Spec.Parameters = map[string]v1alpha1.Value{}
	}
	b.obj.Spec.Parameters[name] = Value(v)
	return b
}

// Values adds an axis with values.
func (b *ExperimentBuilder) Values(axis string, values ...any) *ExperimentBuilder {
	b.obj.Spec.Sweep = append(b.obj.Spec.Sweep, v1alpha1.Axis{Axis: axis, Values: Values(values...)})
	return b
}

// Points adds an axis with named points.
func (b *ExperimentBuilder) Points(axis string, points ...v1alpha1.AxisPoint) *ExperimentBuilder {
	b.obj.Spec.Sweep = append(b.obj.Spec.Sweep, v1alpha1.Axis{Axis: axis, Points: points})
	return b
}

// Search adds an axis that is searched.
func (b *ExperimentBuilder) Search(axis string, search v1alpha1.CapacitySearch) *ExperimentBuilder {
	b.obj.Spec.Sweep = append(b.obj.Spec.Sweep, v1alpha1.Axis{Axis: axis, Search: &search})
	return b
}

// NodeKill adds a fault that kills the replicas of these indexes.
func (b *ExperimentBuilder) NodeKill(name, at string, replicas ...int32) *ExperimentBuilder {
	b.obj.Spec.Faults = append(b.obj.Spec.Faults, v1alpha1.Fault{Name: name, At: v1alpha1.Duration(at),
		NodeKill: &v1alpha1.NodeKill{Mode: "Pods", Target: v1alpha1.Target{Replicas: replicas}}})
	return b
}

// Repetitions sets how many valid trials a point gets.
func (b *ExperimentBuilder) Repetitions(n int32) *ExperimentBuilder {
	b.obj.Spec.Repetitions.Min = n
	return b
}

// Retries sets how many additional trials a repetition may take.
func (b *ExperimentBuilder) Retries(n int32) *ExperimentBuilder { b.obj.Spec.Retries = &n; return b }

// Order sets the order of the trials.
func (b *ExperimentBuilder) Order(o v1alpha1.TrialOrder) *ExperimentBuilder {
	b.obj.Spec.Order = o
	return b
}

// Set makes any other change.
func (b *ExperimentBuilder) Set(change func(*v1alpha1.ExperimentSpec)) *ExperimentBuilder {
	change(&b.obj.Spec)
	return b
}

// Clone returns an independent copy.
func (b *ExperimentBuilder) Clone() *ExperimentBuilder {
	return &ExperimentBuilder{obj: *b.obj.DeepCopy()}
}

// Obj returns the Experiment.
func (b *ExperimentBuilder) Obj() *v1alpha1.Experiment { return b.obj.DeepCopy() }

// TrialBuilder builds a Trial.
type TrialBuilder struct{ obj v1alpha1.Trial }

// Trial returns a trial of point 0 that is not complete.
func Trial(name string) *TrialBuilder {
	return &TrialBuilder{obj: v1alpha1.Trial{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Trial"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, UID: types.UID(name)},
	}}
}

// Spec sets the whole spec.
func (b *TrialBuilder) Spec(spec v1alpha1.TrialSpec) *TrialBuilder {
	b.obj.Spec = *spec.DeepCopy()
	return b
}

// Complete ends the trial with an outcome: Succeeded, Invalid or Failed.
func (b *TrialBuilder) Complete(outcome string) *TrialBuilder {
	b.obj.Status.Conditions = append(b.obj.Status.Conditions, metav1.Condition{
		Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: outcome, Message: "As the test says."})
	return b
}

// Because says why the trial is not valid.
func (b *TrialBuilder) Because(reason string) *TrialBuilder {
	b.obj.Status.Conditions = append(b.obj.Status.Conditions, metav1.Condition{
		Type: v1alpha1.TrialValid, Status: metav1.ConditionFalse, Reason: reason, Message: "As the test says."})
	return b
}

// Took sets how long the trial held its machines.
func (b *TrialBuilder) Took(d time.Duration) *TrialBuilder {
	admitted := metav1.NewMicroTime(time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC))
	done := metav1.NewMicroTime(admitted.Add(d))
	b.obj.Status.Times.Admitted, b.obj.Status.Times.Done = &admitted, &done
	return b
}

// RetryFor sets how long trials are retried after a disturbance by the environment.
func (b *ExperimentBuilder) RetryFor(d v1alpha1.Duration) *ExperimentBuilder {
	b.obj.Spec.Disturbances.RetryFor = d
	return b
}

// Clone returns an independent copy.
func (b *TrialBuilder) Clone() *TrialBuilder { return &TrialBuilder{obj: *b.obj.DeepCopy()} }

// Obj returns the Trial.
func (b *TrialBuilder) Obj() *v1alpha1.Trial { return b.obj.DeepCopy() }

func ptr[T any](v T) *T { return &v }
