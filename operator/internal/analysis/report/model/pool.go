package model

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// PooledEffects are the combined effects of several runs of one evaluation, each on machines of its
// own.
type PooledEffects struct {
	// Sites are the runs, in the order in which they were given.
	Sites []PooledSite `json:"sites"`
	// Effects are what the claims measure, in the order of the first run's claims.
	Effects []PooledEffect `json:"effects"`
	// Notes say what was left out.
	Notes []string `json:"notes,omitempty"`
}

// PooledSite is one run.
type PooledSite struct {
	Name  string   `json:"name"`
	UID   string   `json:"uid,omitempty"`
	Began string   `json:"began,omitempty"` // the day, in UTC
	CPUs  []string `json:"cpus,omitempty"`
	Nodes []string `json:"nodes,omitempty"`
}

// PooledEffect is one effect. Quotients are pooled by their logarithm, and shown as quotients.
type PooledEffect struct {
	Claim string `json:"claim"`
	What  string `json:"what"`
	Unit  string `json:"unit,omitempty"`
	// OfSites are the findings of each run, by its place in Sites; null: the run has no effect with
	// an interval.
	OfSites []*results.Interval `json:"ofSites"`
	// Mean over sites with its 95% interval, and the range in which another site's effect lies in
	// 95% of cases.
	Mean       results.Interval  `json:"mean"`
	Prediction *results.Interval `json:"prediction,omitempty"`
	// Tau2 is the variance between sites, of the logarithm where Log is set.
	Log  bool    `json:"log,omitempty"`
	Tau2 float64 `json:"tau2"`
	Q    float64 `json:"q"`
	QP   float64 `json:"qP"`
	I2   float64 `json:"i2"`
}

// Pool combines the effects of the claims of several runs (stats.Pool). The claims are those of the
// first run. If a run's claim of that name has another expression, the run is left out for this
// claim, with a note.
func Pool(runs []results.Experiment) (PooledEffects, error) {
	var p PooledEffects
	effects := make([][]claims.Effect, len(runs))
	for i, e := range runs {
		site := PooledSite{Name: e.Name, UID: e.UID}
		if !e.Started.IsZero() {
			site.Began = e.Started.UTC().Format(time.DateOnly)
		}
		if e.Provenance != nil {
			site.CPUs, site.Nodes = e.Provenance.CPUs, e.Provenance.Nodes
		}
		p.Sites = append(p.Sites, site)
		var spec v1alpha1.ExperimentSpec
		if err := json.Unmarshal(e.Spec, &spec); err != nil {
			return p, fmt.Errorf("run %d, %s: its results have no spec that can be read: %w", i+1, e.Name, err)
		}
		effects[i] = claims.Effects(judgedClaims(spec), e.Points, e.Trials)
	}
	for _, first := range everyEffect(effects) {
		p.pool(first, effects)
	}
	if len(p.Effects) == 0 {
		return p, fmt.Errorf("no claim of %s measures the same in two runs with an interval", runs[0].Name)
	}
	return p, nil
}

// judgedClaims are the claims of a spec that its profile judges.
func judgedClaims(spec v1alpha1.ExperimentSpec) (all []v1alpha1.Claim) {
	skipped := plan.SkippedClaims(spec)
	for _, c := range plan.ApplyProfile(spec).Claims {
		if _, skip := skipped[c.Name]; !skip {
			all = append(all, c)
		}
	}
	return all
}

// everyEffect returns the effects of all runs, each once, in order.
func everyEffect(effects [][]claims.Effect) (all []claims.Effect) {
	for _, e := range slices.Concat(effects...) {
		if !slices.ContainsFunc(all, func(f claims.Effect) bool { return sameEffect(e, f) }) {
			all = append(all, e)
		}
	}
	return all
}

func sameEffect(e, f claims.Effect) bool {
	return e.Claim == f.Claim && e.What == f.What && e.Unit == f.Unit
}

// pool adds one effect, where two runs have it.
func (p *PooledEffects) pool(effect claims.Effect, effects [][]claims.Effect) {
	out := PooledEffect{Claim: effect.Claim, What: effect.What, Unit: effect.Unit, OfSites: make([]*results.Interval, len(effects)), Log: effect.Value > 0 && effect.Unit == ""}
	var sites []stats.Measured
	for i, ofRun := range effects {
		at := slices.IndexFunc(ofRun, func(f claims.Effect) bool { return sameEffect(effect, f) })
		if at < 0 {
			continue
		}
		e := ofRun[at]
		out.OfSites[i] = &results.Interval{Value: e.Value, Low: &e.Low, High: &e.High}
		out.Log = out.Log && e.Low > 0
		sites = append(sites, stats.Measured{Value: e.Value, SE: (e.High - e.Low) / 2 / e.Quantile()})
	}
	if out.Log {
		sites = sites[:0]
		for _, ofRun := range effects {
			if at := slices.IndexFunc(ofRun, func(f claims.Effect) bool { return sameEffect(effect, f) }); at >= 0 {
				e := ofRun[at]
				sites = append(sites, stats.Measured{Value: math.Log(e.Value), SE: math.Log(e.High/e.Low) / 2 / e.Quantile()})
			}
		}
	}
	if len(sites) < 2 {
		p.Notes = append(p.Notes, fmt.Sprintf("Left out: %s. One run alone measures it with an interval: %s.", effect.Claim, effect.What))
		return
	}
	pooled, err := stats.Pool(sites)
	if err != nil {
		p.Notes = append(p.Notes, fmt.Sprintf("%s, %s: %v.", effect.Claim, effect.What, err))
		return
	}
	back := func(x float64) *float64 {
		if out.Log {
			x = math.Exp(x)
		}
		return &x
	}
	out.Mean = results.Interval{Value: *back(pooled.Value), Low: back(pooled.Low), High: back(pooled.High)}
	if pooled.Predicted {
		out.Prediction = &results.Interval{Value: out.Mean.Value, Low: back(pooled.PredictionLow), High: back(pooled.PredictionHigh)}
	}
	out.Tau2, out.Q, out.QP, out.I2 = pooled.Tau2, pooled.Q, pooled.QP, pooled.I2
	p.Effects = append(p.Effects, out)
}

// Lead says what was pooled, and what so few sites cannot show.
func (p PooledEffects) Lead() string {
	var names []string
	for _, s := range p.Sites {
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	text := fmt.Sprintf("%s: %d runs, each taken for a site of its own. That their machines differ is for the table of sites to show.", strings.Join(names, ", "), len(p.Sites))
	if len(p.Sites) == 2 {
		text += " Two sites say little of how much sites differ. The interval of the mean rests on one degree of freedom, and an I² of 0% is no sign of agreement."
	}
	return text
}
