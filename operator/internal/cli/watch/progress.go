package watch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// progress is what is shown of one look.
type progress struct {
	name    string
	counts  v1alpha1.TrialCounts
	state   string        // of the experiment
	left    time.Duration // until the end, about; 0: not known
	trial   string        // the current trial, its point and phase; empty: none
	live    string        // what only a terminal shows: seconds and throughput
	refused string

	// A terminal alone draws the current trial's throughput and the claims.
	spark  string
	claims []results.ClaimResult
}

// newProgress reads off a look what there is to show.
func newProgress(exp *v1alpha1.Experiment, trials []v1alpha1.Trial, now time.Time) progress {
	p := progress{name: exp.Name, counts: exp.Status.Trials, state: "running"}
	if exp.Status.Trials.Planned == 0 {
		p.state = "waiting for the controller"
	}
	if c := current(exp, v1alpha1.ExperimentAccepted); c != nil && c.Status == metav1.ConditionFalse {
		p.state, p.refused = "not accepted", c.Reason+": "+c.Message
	}
	if c := current(exp, v1alpha1.ExperimentComplete); c != nil {
		switch {
		case c.Reason == v1alpha1.ReasonBudgetExhausted:
			p.state, p.refused = "complete", c.Reason+": "+c.Message
		case c.Status == metav1.ConditionTrue:
			p.state = "complete"
		case c.Reason == v1alpha1.ReasonSuspended:
			p.state = "suspended"
		case c.Reason == v1alpha1.ReasonInsufficientResources, c.Reason == v1alpha1.ReasonUnschedulable, c.Reason == v1alpha1.ReasonQuotaExceeded:
			p.state, p.refused = "waiting", c.Reason+": "+c.Message
		}
	}
	if t := running(trials); t != nil && p.state != "complete" {
		phase, detail := phaseOf(t, now)
		p.trial = fmt.Sprintf("trial %s: %s, repetition %d%s: %s", t.Name, point(t), t.Spec.Repetition, attempt(t), phase)
		p.live = detail
		if why := waitsFor(t); why != "" {
			p.trial += ", " + why
		}
	}
	if p.state == "running" && p.counts.Succeeded < p.counts.Planned {
		p.left = remaining(p.counts, trials, now)
	}
	return p
}

// running is the first trial that is not over; nil: there is none.
func running(trials []v1alpha1.Trial) *v1alpha1.Trial {
	i := slices.IndexFunc(trials, func(t v1alpha1.Trial) bool {
		return plan.Outcome(&t) == v1alpha1.ReasonInProgress && t.DeletionTimestamp == nil
	})
	if i < 0 {
		return nil
	}
	return &trials[i]
}

// Left is about how long an experiment still takes; 0: it does not run, or it is not known.
func Left(exp *v1alpha1.Experiment, trials []v1alpha1.Trial, now time.Time) time.Duration {
	return newProgress(exp, trials, now).left
}

// point of a trial; the order of the axes is not in it, so they are in the order of their names.
func point(t *v1alpha1.Trial) string {
	var parts []string
	for axis, value := range t.Spec.Point.Coordinates {
		parts = append(parts, axis+"="+value)
	}
	slices.Sort(parts)
	if t.Spec.Script != nil {
		rows := "1 row"
		if n := len(t.Spec.Script.Rows); n != 1 {
			rows = fmt.Sprintf("%d rows", n)
		}
		parts = append(parts, rows)
	}
	if len(parts) == 0 {
		return "the only point"
	}
	return strings.Join(parts, ", ")
}

func attempt(t *v1alpha1.Trial) string {
	if t.Spec.Attempt == 0 {
		return ""
	}
	return fmt.Sprintf(", attempt %d", t.Spec.Attempt)
}

// phases in the order of a trial's life: what it does until the condition is True.
var phases = []struct{ condition, doing string }{
	{v1alpha1.TrialAdmitted, "waiting for the machines"},
	{v1alpha1.TrialDeployed, "deploying"},
	{v1alpha1.TrialNetworkVerified, "proving the network"},
	{v1alpha1.TrialStarted, "starting replicas"},
	{v1alpha1.TrialLoaded, "loading"},
	{v1alpha1.TrialRunning, "waiting for the clients"},
	{v1alpha1.TrialCollected, "collecting"},
	{v1alpha1.TrialValid, "judging"},
	{v1alpha1.TrialCleanedUp, "cleaning up"},
}

// longest that a line says of what a pod waits for.
const longest = 400

// waitsFor are the cluster's words for pods that do not come up, such as a missing image; empty:
// there are none.
func waitsFor(t *v1alpha1.Trial) string {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialDeployed)
	if c == nil || c.Status == metav1.ConditionTrue || c.Reason != v1alpha1.ReasonPodsPending || !strings.Contains(c.Message, " (") {
		return ""
	}
	text := strings.ToLower(c.Message[:1]) + c.Message[1:]
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "..."
	}
	return text
}

// phaseOf says what a trial does, and what changes while it does it.
func phaseOf(t *v1alpha1.Trial, now time.Time) (phase, detail string) {
	for _, p := range phases {
		c := meta.FindStatusCondition(t.Status.Conditions, p.condition)
		// A trial that is judged invalid is past that phase.
		if c != nil && (c.Status == metav1.ConditionTrue || p.condition == v1alpha1.TrialValid && c.Status == metav1.ConditionFalse) {
			continue
		}
		if p.condition == v1alpha1.TrialCollected && t.Status.ZeroUnixNanos != 0 {
			return windowOf(t, now)
		}
		if c != nil && c.Reason == v1alpha1.ReasonWaitingForIdle {
			return "waiting for idle machines", ""
		}
		return p.doing, ""
	}
	return "finishing", ""
}

// windowOf says in which part of its schedule a running trial is, by this machine's clock, which
// may differ from the manager's.
func windowOf(t *v1alpha1.Trial, now time.Time) (phase, detail string) {
	s := t.Spec.Schedule
	at := now.Sub(time.Unix(0, t.Status.ZeroUnixNanos))
	measure, coolDown, drain := s.Measure.OrZero(), s.CoolDown.OrZero(), s.Drain.OrZero()
	switch {
	case at < 0:
		phase, detail = "warming up", fmt.Sprintf("%.0f s to go", (-at).Seconds())
	case at < measure:
		phase, detail = "measuring", fmt.Sprintf("%.0f s of %.0f s", at.Seconds(), measure.Seconds())
	case at < measure+coolDown:
		phase = "cooling down"
	case at < measure+coolDown+drain:
		return "draining", ""
	default:
		return "collecting", ""
	}
	if rate := throughput(t); rate != "" {
		detail = strings.TrimPrefix(detail+", "+rate, ", ")
	}
	return phase, detail
}

// throughput of the running clients, as the controller notes it on the Trial now and then.
func throughput(t *v1alpha1.Trial) string {
	rate, known := rateOf(t)
	if !known {
		return ""
	}
	return fmt.Sprintf("%.0f tx/s", rate)
}

// rateOf the running clients, in transactions a second. It is not known before a client tells it.
func rateOf(t *v1alpha1.Trial) (rate float64, known bool) {
	var noted protocol.TrialProgress
	text, ok := t.Annotations[v1alpha1.AnnotationProgress]
	if !ok || json.Unmarshal([]byte(text), &noted) != nil || !noted.Known() {
		return 0, false
	}
	return float64(noted.PerSecond), true
}

// overhead of a trial beside its schedule until one is done, as plan assumes: pods, readiness,
// collecting, cleaning up.
const overhead = 15 * time.Second

// remaining estimates how long the planned trials still take, if as many run at once as do now.
// Each takes the average of the finished trials; the current one has its time so far taken off.
// Before one is done it goes by the current trial's schedule, unless that runs a script. 0: it is
// not known.
func remaining(counts v1alpha1.TrialCounts, trials []v1alpha1.Trial, now time.Time) time.Duration {
	var took, running, planned time.Duration
	done, active := 0, 0
	for i := range trials {
		t := &trials[i]
		if plan.Outcome(t) == v1alpha1.ReasonInProgress {
			active++
			s := t.Spec.Schedule
			running = max(running, now.Sub(startOf(t)))
			if t.Spec.Script != nil {
				continue // its schedule has the longest that it may take, and nothing says what it takes
			}
			planned = s.WarmUp.OrZero() + s.Measure.OrZero() + s.CoolDown.OrZero() + s.Drain.OrZero() + overhead
			continue
		}
		c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialComplete)
		took += c.LastTransitionTime.Sub(startOf(t))
		done++
	}
	each := planned
	if done > 0 {
		each = took / time.Duration(done)
	}
	if each <= 0 {
		return 0
	}
	atOnce := max(1, active)
	left := time.Duration((int(counts.Planned-counts.Succeeded)+atOnce-1)/atOnce) * each
	return max(left-min(running, each), time.Second)
}

// startOf a trial: when it got its machines, since it may have waited for them for hours; before
// that, when it was made.
func startOf(t *v1alpha1.Trial) time.Time {
	if at := t.Status.Times.Admitted; at != nil {
		return at.Time
	}
	return t.CreationTimestamp.Time
}
