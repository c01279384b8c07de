package plan

import (
	"cmp"
	"time"

	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/session"
	planner "assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/seal"
)

// planned is a plan as data.
type planned struct {
	Experiment string `json:"experiment"`
	Profile    string `json:"profile,omitempty"`
	// Seal is the digest of claims, tolerances and profile, sha256:HEX; left out without claims.
	Seal string `json:"seal,omitempty"`
	// Points in the order of their index. For a search, those along its axis are the loads that it
	// may try.
	Points []plannedPoint `json:"points"`
	// Trials at least and at most, retries not counted.
	Trials     int `json:"trials"`
	MostTrials int `json:"mostTrials"`
	// TrialSeconds is how long a trial takes: its schedule and Overhead. TotalSeconds is that of
	// MostTrials, one after the other.
	TrialSeconds float64 `json:"trialSeconds"`
	TotalSeconds float64 `json:"totalSeconds"`
	// Claims are the names of those that are judged.
	Claims  []string `json:"claims,omitempty"`
	Skipped []string `json:"skippedClaims,omitempty"`
	// Seed and Order of the trials. The run chooses its own seed unless the experiment fixes one
	// (SeedFixed). Left out for a search: its trials depend on the measurements of earlier ones.
	Seed      int64          `json:"seed"`
	SeedFixed bool           `json:"seedFixed"`
	Order     []plannedTrial `json:"order,omitempty"`
	Warnings  []string       `json:"warnings,omitempty"`
}

type plannedPoint struct {
	Index       int32             `json:"index"`
	Coordinates map[string]string `json:"coordinates,omitempty"`
}

type plannedTrial struct {
	Number     int   `json:"number"`
	Round      int   `json:"round"`
	Point      int32 `json:"point"`
	Repetition int32 `json:"repetition"`
}

// print writes the plan in a form of -o.
func (o Options) print(s *session.Session, set *manifest.Set, p *planner.Plan) error {
	if o.Output == "name" {
		return session.PrintNames(s.Out, "experiment.assay.dev/"+set.Experiment.Name)
	}
	return session.Print(s.Out, o.Output, o.data(set, p))
}

func (o Options) data(set *manifest.Set, p *planner.Plan) planned {
	d := planned{
		Experiment: set.Experiment.Name, Profile: set.Experiment.Spec.Profile, Points: []plannedPoint{}, Trials: p.Trials(), MostTrials: p.MostTrials(),
		Seed: cmp.Or(o.Seed, seedOf(set.Experiment)), SeedFixed: o.Seed != 0 || p.Spec.Seed != nil, Warnings: p.Warnings,
	}
	for i := range p.Points {
		t := &p.Points[i].Template
		d.Points = append(d.Points, plannedPoint{Index: t.Point.Index, Coordinates: t.Point.Coordinates})
	}
	schedule := p.Spec.Schedule
	if len(p.Points) > 0 && p.Points[0].Template.Script != nil {
		schedule = p.Points[0].Template.Schedule
	}
	each := schedule.WarmUp.OrZero() + schedule.Measure.OrZero() + schedule.CoolDown.OrZero() + schedule.Drain.OrZero() + o.Overhead
	d.TrialSeconds, d.TotalSeconds = each.Seconds(), (time.Duration(p.MostTrials()) * each).Seconds()
	skipped := planner.SkippedClaims(p.Spec)
	for _, c := range p.Spec.Claims {
		if _, skip := skipped[c.Name]; skip {
			d.Skipped = append(d.Skipped, c.Name)
			continue
		}
		d.Claims = append(d.Claims, c.Name)
	}
	if len(p.Spec.Claims) > 0 {
		d.Seal = "sha256:" + seal.Of(set.Experiment.Spec)
	}
	if p.Search != nil {
		return d
	}
	for round, slots := range planner.Rounds(p, d.Seed) {
		for _, slot := range slots {
			d.Order = append(d.Order, plannedTrial{Number: len(d.Order), Round: round, Point: slot.Point, Repetition: slot.Repetition})
		}
	}
	return d
}
