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

// progress has what the display shows of one look.
type progress struct {
	name    string
	counts  v1alpha1.TrialCounts
	state   string        // of the experiment
	left    time.Duration // until the end, about; 0: not known
	trial   string        // the current trial, its point and phase; empty: none
	live    string        // for terminals only: seconds and throughput
	refused string

	// Only a terminal draws the current trial's throughput and the claims.
	spark  string
	claims []results.ClaimResult
}

// newProgress makes the progress of one look.
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

// running returns the first trial that is not over, or nil.
func running(trials []v1alpha1.Trial) *v1alpha1.Trial {
	i := slices.IndexFunc(trials, func(t v1alpha1.Trial) bool {
		return plan.Outcome(&t) == v1alpha1.ReasonInProgress && t.DeletionTimestamp == nil
	})
	if i < 0 {
		return nil
	}
	return &trials[i]
}

// Left is about how long an experiment still takes. 0: the experiment does not run, or the time is
// not known.
func Left(exp *v1alpha1.Experiment, trials []v1alpha1.Trial, now time.Time) time.Duration {
	return newProgress(exp, trials, now).left
}

// point writes the point of a trial. Axes are in the order of their names, since the trial does not
// know another order.
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

// phases in the order of a trial's life. Each says what the trial does until the condition is True.
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

// longest is how many characters a line has at most for what a pod waits for.
const longest = 400

// waitsFor returns the cluster's message about pods that do not start, such as a missing image.
// Empty: there is none.
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

// phaseOf returns what a trial does, and its progress in doing so.
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

// windowOf says in which part of its schedule a running trial is. It uses this machine's clock,
// which may differ from that of the manager.
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

// throughput writes the throughput of the running clients, which the controller notes on the Trial
// from time to time.
func throughput(t *v1alpha1.Trial) string {
	rate, known := rateOf(t)
	if !known {
		return ""
	}
	return fmt.Sprintf("%.0f tx/s", rate)
}

// rateOf returns the rate of the running clients, in transactions per second. It is unknown until a
// client reports it.
func rateOf(t *v1alpha1.Trial) (rate float64, known bool) {
	var noted protocol.TrialProgress
	text, ok := t.Annotations[v1alpha1.AnnotationProgress]
	if !ok || json.Unmarshal([]byte(text), &noted) != nil || !noted.Known() {
		return 0, false
	}
	return float64(noted.PerSecond), true
}

// overhead is the assumed time of a trial beside its schedule before the first one is done, as in
// plan: pods, readiness, collecting, cleaning up.
const overhead = 15 * time.Second

// remaining estimates how long the planned trials still take, if as many run at once as now. Each
// trial takes as long as the average finished one, and the current trial is already partly done.
// Before the first is done, the estimate uses the current trial's schedule, but not for a script.
// 0: the time is not known.
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
				continue // the schedule of a script only has the longest time that it may take
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

// startOf returns when a trial got its machines, since it may have waited for them for hours.
// Before that, it returns when the trial was made.
func startOf(t *v1alpha1.Trial) time.Time {
	if at := t.Status.Times.Admitted; at != nil {
		return at.Time
	}
	return t.CreationTimestamp.Time
}
