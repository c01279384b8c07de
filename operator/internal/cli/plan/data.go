package plan

import (
	"cmp"
	"context"
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
	// Points in the order of their index. A search has a point for each load that it may try.
	Points []plannedPoint `json:"points"`
	// Trials is the least number of trials, MostTrials the greatest, without retries.
	Trials     int `json:"trials"`
	MostTrials int `json:"mostTrials"`
	// Sets are the names of the sets of nodes (spec.placement.sets). Each set runs one trial at a
	// time. Left out without sets: trials run one after the other.
	Sets []string `json:"sets,omitempty"`
	// TrialSeconds is how long a trial takes: its schedule and Overhead. TotalSeconds is how long
	// MostTrials take, if each set runs one at a time.
	TrialSeconds float64 `json:"trialSeconds"`
	TotalSeconds float64 `json:"totalSeconds"`
	// Cost of the trials, without retries.
	Cost plannedCost `json:"cost"`
	// Budget is spec.budget; left out without one.
	Budget *plannedBudget `json:"budget,omitempty"`
	// Claims are the names of the claims that are judged.
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
	// Set of nodes that the trial runs on; left out without sets.
	Set string `json:"set,omitempty"`
}

type plannedCost struct {
	LargestTrialNodes     int     `json:"largestTrialNodes"`
	LargestTrialNodeHours float64 `json:"largestTrialNodeHours"`
	// NodeHours are those of Trials, MostNodeHours those of MostTrials.
	NodeHours     float64 `json:"nodeHours"`
	MostNodeHours float64 `json:"mostNodeHours"`
	// NodesKnown: the cluster has the nodes. Otherwise each pod counts as one node.
	NodesKnown bool `json:"nodesKnown"`
	// AtMost: the trials may cost less than these numbers.
	AtMost bool `json:"atMost"`
	// Money by the price list of --prices; left out without one.
	Money *plannedMoney `json:"money,omitempty"`
}

// plannedMoney is in units of Currency. It is empty if the price list has none.
type plannedMoney struct {
	Currency   string  `json:"currency,omitempty"`
	Amount     float64 `json:"amount"`
	MostAmount float64 `json:"mostAmount"`
}

type plannedBudget struct {
	// NodeHours of the budget, and about how many of Trials they pay for. Left out without such a
	// bound.
	NodeHours  *float64 `json:"nodeHours,omitempty"`
	TrialsPaid *int     `json:"trialsPaid,omitempty"`
	// Until is the instant at which the last trial must be over; left out without one.
	Until *time.Time `json:"until,omitempty"`
}

// print writes the plan in a form of -o.
func (o Options) print(ctx context.Context, s *session.Session, set *manifest.Set, p *planner.Plan) error {
	if o.Output == "name" {
		return session.PrintNames(s.Out, "experiment.assay.dev/"+set.Experiment.Name)
	}
	d := o.data(set, p)
	largest, all, err := demandsOf(p, set)
	if err != nil {
		return err
	}
	cost, err := costOf(p, largest[0], all, nodesToFit(ctx, s, o), o)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // Ctrl-C while the cluster was asked
		return err
	}
	d.Cost, d.Budget = cost.data(p), cost.budget(p)
	return session.Print(s.Out, o.Output, d)
}

func (c cost) data(p *planner.Plan) plannedCost {
	d := plannedCost{
		LargestTrialNodes: c.largest, LargestTrialNodeHours: (time.Duration(c.largest) * c.each).Hours(),
		NodeHours: c.takes(p.Trials()).Hours(), MostNodeHours: c.takes(p.MostTrials()).Hours(), NodesKnown: c.known, AtMost: c.atMost,
	}
	if c.list != nil {
		d.Money = &plannedMoney{Currency: c.list.Currency, Amount: c.price(p.Trials()), MostAmount: c.price(p.MostTrials())}
	}
	return d
}

func (c cost) budget(p *planner.Plan) *plannedBudget {
	budget := p.Spec.Budget
	if budget == nil {
		return nil
	}
	d := &plannedBudget{}
	if budget.NodeHours != nil {
		d.NodeHours, d.TrialsPaid = new(budget.NodeHours.AsApproximateFloat64()), new(c.fitting(p))
	}
	if budget.Until != nil {
		d.Until = new(budget.Until.UTC())
	}
	return d
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
	for _, set := range p.Spec.Placement.Sets {
		d.Sets = append(d.Sets, set.Name)
	}
	run, _, _ := timeOf(p)
	each := run + o.Overhead
	d.TrialSeconds, d.TotalSeconds = each.Seconds(), (time.Duration(longestSet(p, p.MostTrials())) * each).Seconds()
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
			d.Order = append(d.Order, plannedTrial{Number: len(d.Order), Round: round, Point: slot.Point, Repetition: slot.Repetition, Set: p.SetOf(slot.Repetition)})
		}
	}
	return d
}
