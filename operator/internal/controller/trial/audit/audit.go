// Package audit tells of the faults of a trial in events of its Experiment.
package audit

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/timeline"
	"assay.dev/assay/operator/internal/validity"
)

// Reasons of the events that tell of faults.
const (
	faultCarriedOut = "FaultCarriedOut"
	faultFailed     = "FaultFailed"
)

// Limit is how many events one trial may make of its faults: a partition that flaps comes and goes
// thousands of times. All are in its results.
const Limit = 200

// Teller sends the events.
type Teller struct {
	Client   client.Client
	Recorder events.EventRecorder
}

// Run is a released trial, as observed.
type Run struct {
	Trial   *v1alpha1.Trial
	Actions []timeline.Action
	Record  func(timeline.Action) *protocol.ActionRecord // what became of an action, or nil
	Now     time.Time
	// Over: nothing more will be told, so that an action whose time has come and of which nothing
	// is known is told of as failed.
	Over bool
	// Told are the actions that events have told of, by their ID. It is kept in memory only: a
	// manager that takes over tells of them again rather than never.
	Told map[string]bool
}

// Tell makes an event, on the Experiment, of every action of a fault as soon as its agent has told
// what became of it: which pod, what, when, and whether it was seen to hold.
func (t Teller) Tell(ctx context.Context, r Run) {
	told := r.Told
	var exp *v1alpha1.Experiment
	for _, a := range r.Actions {
		done := r.Record(a)
		missed := r.Over && r.Now.UnixNano() > r.Trial.Status.ZeroUnixNanos+int64(a.At)
		if told[a.ID] || len(told) > Limit || done == nil && !missed {
			continue
		}
		if done != nil && done.Skipped { // it was for whoever has a role, and this was another one
			told[a.ID] = true
			continue
		}
		if exp == nil {
			exp = &v1alpha1.Experiment{}
			if err := t.Client.Get(ctx, client.ObjectKey{Namespace: r.Trial.Namespace, Name: r.Trial.Spec.Experiment}, exp); err != nil {
				log.FromContext(ctx).Info("The Experiment that faults are told of cannot be read", "err", err.Error())
				return
			}
		}
		if told[a.ID] = true; len(told) > Limit {
			t.Recorder.Eventf(exp, r.Trial, corev1.EventTypeNormal, faultCarriedOut, "Audit", "%s", full(r.Trial.Name))
			return
		}
		kind, reason := corev1.EventTypeNormal, faultCarriedOut
		ok, note := validity.Note(r.Trial.Name, a, done)
		if !ok {
			kind, reason = corev1.EventTypeWarning, faultFailed
		}
		t.Recorder.Eventf(exp, r.Trial, kind, reason, string(a.Kind), "%s", note)
	}
}

func full(trial string) string {
	return fmt.Sprintf("Trial %s has had more than %d actions of faults. The others are in its results only.", trial, Limit)
}
