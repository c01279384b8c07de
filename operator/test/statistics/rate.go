package main

import (
	"fmt"
	"math"
	"strings"
)

// simulation is one table. run draws the same experiments each time; scale sets how many.
type simulation struct {
	name, title string
	run         func(scale float64) []rate
}

var simulations = []simulation{
	{"comparisons", "Equal variants and their quotient (3.1 and 3.2 of the review)", comparisons},
	{"trends", "Trends of equal points (findings 7 and 17)", trends},
	{"sequential", "Messages that say that drift counts, with order: Sequential and a drift of 10% (finding 7)", sequential},
	{"percentiles", "Percentiles of survivors (findings 4 and 5)", percentiles},
	{"capacity", "Coverage of the 95% interval of a search (finding 3)", capacities},
	{"selection", "The best of several points (finding 8)", selection},
	{"effects", "Tolerances that hold no effect (finding 6)", effects},
	{"recoveries", "Dips that no fault made (finding 11)", recoveries},
	{"windows", "Windows that are not steady (findings 9 and 19)", windows},
	{"failures", "Rates of failures that come in bursts (finding 12)", failures},
	{"sessions", "Single means where trials depend on each other (finding 10)", sessions},
	{"stopping", "Repetitions until claims are decided: wrong decisions", stopping},
	{"shipped", "Repetitions until claims are decided, in experiments drawn from the shipped evidence", shipped},
	{"exclusions", "Disturbances that hit one side more (finding 13)", exclusions},
}

// rate is how often an event happened in simulated experiments.
type rate struct {
	what string
	// review is the rate that the review measured, in percent; empty: it measured none.
	review   string
	hits, of int
	// least and most bound the rate, in percent. If most is 0, there is no bound.
	least, most float64
	// value and off are a share that is not a count of hits, and its standard error, in percent.
	value, off float64
}

// experiments is how many to simulate.
func experiments(scale float64, n int) int { return max(20, int(scale*float64(n))) }

func (r *rate) see(hit bool) {
	r.of++
	if hit {
		r.hits++
	}
}

// percent and its standard error. The error counts one more hit and one more miss, so that it is
// never 0.
func (r rate) percent() (value, standardError float64) {
	switch {
	case r.of == 0:
		return math.NaN(), math.NaN()
	case r.value > 0:
		return r.value, r.off
	}
	p := (float64(r.hits) + 1) / (float64(r.of) + 2)
	return 100 * float64(r.hits) / float64(r.of), 100 * math.Sqrt(p*(1-p)/float64(r.of))
}

// beyond reports whether the rate is beyond a bound by more than two standard errors.
func (r rate) beyond() bool {
	value, off := r.percent()
	return math.IsNaN(value) || value < r.least-2*off || r.most > 0 && value > r.most+2*off
}

func (r rate) bound() string {
	switch {
	case r.least > 0:
		return fmt.Sprintf("at least %g", r.least)
	case r.most > 0:
		return fmt.Sprintf("at most %g", r.most)
	}
	return ""
}

// table writes rates as Markdown.
func table(s simulation, rates []rate) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s\n\n| what | review, %% | today, %% | of | bound | |\n|---|---|---|---|---|---|\n", s.name, s.title)
	for _, r := range rates {
		value, off := r.percent()
		mark := ""
		if r.beyond() {
			mark = "beyond"
		}
		fmt.Fprintf(&b, "| %s | %s | %.1f ± %.1f | %d | %s | %s |\n", r.what, r.review, value, off, r.of, r.bound(), mark)
	}
	return b.String() + "\n"
}
