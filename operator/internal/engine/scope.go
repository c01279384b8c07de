package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine/conditions"
	"assay.dev/assay/operator/internal/engine/incarnation"
	"assay.dev/assay/operator/internal/engine/instants"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// scope has all that one call of Advance observes, once. Phases read it. They change trial.Status
// only, and no condition in it.
type scope struct {
	status
	members

	cache    *entry
	rendered *rendered             // nil until every pod has an address
	inForce  []timeline.Action     // see actions
	later    []timeline.Action     // see laterActions
	observed *validity.Observation // see observation
	answered []results.Measurement // by Prometheus, in the order of the spec

	injection    Injection              // the faults that an injector carries out
	history      *incarnation.History   // which pods have had a name
	replacements map[string]*render.Pod // rendered pods that replaced others
}

// status is the trial, with the changes to its conditions.
type status struct {
	trial  *v1alpha1.Trial
	before *v1alpha1.Trial // as read
	now    time.Time
	seen   *instants.Seen
	events []Event
}

// members are the pods that take part, with the last reports of their agents.
type members struct {
	key     types.NamespacedName
	system  *v1alpha1.SystemSpec
	layout  *placement.Layout
	pods    map[string]*corev1.Pod // by name in the layout
	reports map[string]agentReport // by name in the layout, and by name of the agents that reset nodes
}

// agentReport is the last report of an agent, and when it came.
type agentReport struct {
	*protocol.Report
	at time.Time
}

func newScope(trial *v1alpha1.Trial, kept *entry, now time.Time) *scope {
	if kept.since.IsZero() {
		kept.since = now
	}
	return &scope{
		status: status{trial: trial, before: trial.DeepCopy(), now: now, seen: &kept.seen}, members: members{key: kept.key},
		cache: kept, injection: noInjection{}, history: &incarnation.History{},
	}
}

// readRelease returns the data with which the run was released.
func (s *scope) readRelease(ctx context.Context, record Record) (*Release, error) {
	if s.cache.release == nil {
		r, err := record.Release(ctx, s.subject())
		if err != nil {
			return nil, err
		}
		s.cache.release = &r
	}
	return s.cache.release, nil
}

// lost gives the trial up if err is a LostError. It returns any other error.
func (s *status) lost(reason string, err error) error {
	var lost *LostError
	if !errors.As(err, &lost) {
		return err
	}
	if !s.outcomeKnown() {
		s.fail(reason, "Somebody has deleted what the trial needs to go on: "+err.Error())
	}
	return nil
}

func (s *scope) subject() *Subject {
	return &Subject{Trial: s.trial, System: s.system, Layout: s.layout}
}

// occurrences returns the times of faults that an injector carries out. They follow from the
// trial's spec and layout, so they are known while a pod has no address. If they cannot be
// computed, there are none: such a trial is given up when it is rendered, before any fault happens.
func (s *scope) occurrences() []*fault.Occurrence {
	if s.cache.occurrences == nil {
		all, err := fault.Occurrences(s.trial.Spec.Faults, timeline.FromSchedule(s.trial.Spec.Schedule), s.layout)
		if err != nil {
			return nil
		}
		s.cache.occurrences = all
	}
	return s.cache.occurrences
}

// readReports reads the last report of every agent once, so that all phases judge by the same
// reports.
func (s *members) readReports(agents Agents, resetters []string) {
	s.reports = map[string]agentReport{}
	for _, name := range append(append(s.everyName(), s.layout.PrepareJob()), resetters...) {
		if rep, at := agents.Report(s.key, name); rep != nil {
			s.reports[name] = agentReport{rep, at}
		}
	}
}

// report returns the last report of a pod's agent, or nil.
func (s *members) report(pod string) *protocol.Report { return s.reports[pod].Report }

// agreedZero returns t = 0 by the clock of the manager that released the trial.
func (s *status) agreedZero() time.Time { return time.Unix(0, s.trial.Status.ZeroUnixNanos) }

// zero returns t = 0 by the clock of this manager. At the agreement t = 0 lay in the future, so
// zero translates the instant of the agreement.
func (s *status) zero() time.Time {
	zero, released := s.agreedZero(), s.trial.Status.Times.Released
	if released == nil {
		return zero
	}
	return s.date(released.Time).Add(zero.Sub(released.Time))
}

// date returns when an event in the status happened, by the clock of this manager. Each wait from
// such an instant uses it, since the clock of an earlier manager may have been ahead.
func (s *status) date(at time.Time) time.Time { return s.seen.Date(s.trial.UID, at, s.now) }

// serverNames, clientNames and everyName list the pods that take part in the run, in the order of
// the layout. Servers are replicas and components.
func (s *members) serverNames() []string { return s.layout.ServerPods() }

func (s *members) clientNames() []string { return s.layout.ClientPods() }

func (s *members) everyName() []string { return append(s.serverNames(), s.clientNames()...) }

// outcomeKnown reports whether the trial is judged or given up.
func (s *status) outcomeKnown() bool { return outcomeKnown(s.trial) }

func outcomeKnown(t *v1alpha1.Trial) bool {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialValid)
	return c != nil && c.Status != metav1.ConditionUnknown
}

func (s *status) isTrue(condition string) bool {
	return meta.IsStatusConditionTrue(s.trial.Status.Conditions, condition)
}

func (s *status) unchanged() bool {
	return equality.Semantic.DeepEqual(s.before.Status, s.trial.Status)
}

// told are the conditions whose changes are reported to users as events. Users see the other
// conditions in the status.
var told = map[string]bool{v1alpha1.TrialAdmitted: true, v1alpha1.TrialRunning: true, v1alpha1.TrialValid: true, v1alpha1.TrialComplete: true}

// set changes one condition. The message is a sentence that names the awaited thing, or the next
// step of the user.
func (s *status) set(condition string, status metav1.ConditionStatus, reason, message string) {
	message = conditions.Truncate(message, conditions.MaxMessage)
	changed := meta.SetStatusCondition(&s.trial.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message,
		ObservedGeneration: s.trial.Generation, LastTransitionTime: metav1.NewTime(s.now),
	})
	if !changed || !told[condition] || status == metav1.ConditionFalse && condition != v1alpha1.TrialValid {
		return
	}
	s.events = append(s.events, Event{Warning: status == metav1.ConditionFalse, Reason: reason, Action: condition, Message: message})
}

// fail ends the trial: as Failed before the run was released, as Invalid after.
func (s *status) fail(reason, message string) {
	s.set(v1alpha1.TrialValid, metav1.ConditionFalse, reason, message)
}

// outcome returns the outcome of a trial whose Valid condition is known: Succeeded; Invalid if it
// ran; Failed if it never ran.
func outcome(t *v1alpha1.Trial) (reason, message string) {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialValid)
	switch {
	case c.Status == metav1.ConditionTrue:
		return v1alpha1.ReasonSucceeded, c.Message
	case t.Status.ZeroUnixNanos != 0:
		return v1alpha1.ReasonInvalid, fmt.Sprintf("%s: %s", c.Reason, c.Message)
	default:
		return v1alpha1.ReasonFailed, fmt.Sprintf("%s: %s", c.Reason, c.Message)
	}
}
