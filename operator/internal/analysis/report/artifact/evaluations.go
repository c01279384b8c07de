package artifact

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// overhead is the time of a trial beside its schedule that estimates assume: pods, readiness,
// collecting, cleaning up. It is the default of kubectl assay plan.
const overhead = 15 * time.Second

// evaluation is the experiment with one of its profiles, or without: an experiment of the appendix.
type evaluation struct {
	// label is E1, E2, ...; profile is empty for the full evaluation.
	label, profile, doc string
	// ran: it is the one of the bundle.
	ran bool
	// trials in words, and the time of all of them: as it was, or as planned. problem says why it
	// cannot be planned.
	trials   string
	duration time.Duration
	measured bool
	problem  string
	judges   []string // claims, as C1
	// cluster: one machine cannot carry it out.
	cluster bool
}

// fullName is the name of the evaluation without a profile, for the scripts.
const fullName = "full"

// name of the evaluation for people and scripts.
func (e evaluation) name() string { return cmp.Or(e.profile, fullName) }

// evaluations plans the experiment with each profile, that of the bundle first.
func (a *facts) evaluations() {
	profiles := []v1alpha1.Profile{{Doc: "The full evaluation."}}
	profiles = append(profiles, a.spec.Profiles...)
	slices.SortStableFunc(profiles, func(x, y v1alpha1.Profile) int {
		return cmp.Compare(rank(x.Name == a.results.Profile), rank(y.Name == a.results.Profile))
	})
	for i, p := range profiles {
		e := evaluation{label: fmt.Sprintf("E%d", i+1), profile: p.Name, doc: p.Doc, ran: p.Name == a.results.Profile}
		exp := &v1alpha1.Experiment{Spec: a.spec}
		exp.Name, exp.Spec.Profile = a.results.Name, p.Name
		skipped := plan.SkippedClaims(exp.Spec)
		for j, c := range a.results.Claims {
			if _, skip := skipped[c.Name]; !skip {
				e.judges = append(e.judges, fmt.Sprintf("C%d", j+1))
			}
		}
		if planned, errs := plan.Expand(exp, a.systems); len(errs) > 0 {
			e.problem = errs[0].Error()
		} else {
			s := planned.Spec.Schedule
			e.trials = planned.DescribeTrials()
			e.cluster = a.in.OnOneMachine != nil && len(a.in.OnOneMachine(planned.Spec, a.systems)) > 0
			e.duration = time.Duration(planned.Trials()) * (s.WarmUp.OrZero() + s.Measure.OrZero() + s.CoolDown.OrZero() + s.Drain.OrZero() + overhead)
		}
		if e.ran && a.results.Completed != nil && a.results.Completed.After(a.results.Started) && !a.results.Started.IsZero() {
			e.trials, e.duration, e.measured, e.problem = fmt.Sprint(len(a.results.Trials)), a.results.Completed.Sub(a.results.Started), true, ""
		}
		a.runs = append(a.runs, e)
	}
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// time of the evaluation in words.
func (e evaluation) time() string {
	switch {
	case e.measured:
		return "took " + inWords(e.duration) + " for " + e.trials + " trials"
	case e.problem != "":
		return "takes a time that is not known: " + e.problem
	}
	return "takes about " + inWords(e.duration) + " for " + e.trials + " trials, as planned"
}

// inWords rounds a duration to what a reader plans with.
func inWords(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%d seconds", int(d.Round(time.Second).Seconds()))
	case d < 100*time.Minute:
		return fmt.Sprintf("%d minutes", int(d.Round(time.Minute).Minutes()))
	case d < 48*time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Hours()), ".0") + " hours"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Hours()/24), ".0") + " days"
}

// verdicts counts the claims that the trials support, refute, leave open, and that the run did not
// judge.
func (a *facts) verdicts() (supported, refuted, open, skipped int) {
	for _, c := range a.results.Claims {
		switch v := v1alpha1.Verdict(c.Verdict); {
		case v.Supports():
			supported++
		case v.Refutes():
			refuted++
		case c.Skipped != "":
			skipped++
		default:
			open++
		}
	}
	return supported, refuted, open, skipped
}
