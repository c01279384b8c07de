package parsers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// printout has the numbers that a client prints of one run. All of them are true, unless a test has
// spoiled one.
type printout map[string]float64

// ofOneRun draws a run: how long, how many attempts, how many of them failed and how, latencies.
func ofOneRun(rng *rand.Rand) printout {
	seconds := 5 + rng.Float64()*100
	committed := math.Round(math.Exp(5 + 10*rng.Float64()))
	share := func() float64 { return math.Round(committed * rng.Float64() * 0.3) }
	aborted, failed, timedOut := share(), share(), share()
	ended := committed + aborted + failed + timedOut
	p := printout{
		results.NumberCommitted: committed, results.NumberAborted: aborted, results.NumberErrors: failed, results.NumberTimeouts: timedOut,
		results.NumberEnded: ended, results.NumberAnswered: ended - timedOut, results.NumberRunTime: seconds,
		results.NumberThroughput: committed / seconds, results.NumberEndedRate: ended / seconds,
	}
	latency := math.Exp(10 * rng.Float64())
	for _, name := range []string{results.NumberP50, results.NumberP90, results.NumberP99, results.NumberMax} {
		p[name] = latency
		latency *= 1 + 5*rng.Float64()
	}
	return p
}

// some keeps a part of the numbers.
func (p printout) some(rng *rand.Rand) printout {
	part := printout{}
	for _, name := range sortedNames(p) {
		if rng.IntN(2) == 0 {
			part[name] = p[name]
		}
	}
	return part
}

func sortedNames(p printout) []string {
	var names []string
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// read reads the printout as a trial does whose load takes so many seconds.
func (p printout) read(seconds float64) (results.Client, error) {
	o := Options{Clients: 1, Windows: timeline.Windows{Measure: time.Duration(seconds * float64(time.Second))}}
	var text strings.Builder
	for _, name := range sortedNames(p) {
		n := results.SummaryNumber{Name: name, Pattern: "^" + name + " (?P<value>[-+.e0-9]+)$"}
		if n.Kind() == results.NumberTime {
			n.Unit = "s"
		}
		o.Summary = append(o.Summary, n)
		fmt.Fprintf(&text, "%s %.12g\n", name, p[name])
	}
	if err := results.CheckSummary(o.Summary); err != nil {
		return results.Client{}, err
	}
	return Parse(FormatSummary, strings.NewReader(text.String()), o)
}

// contradicts names numbers that contradict each other by more than a tenth. It uses their meaning,
// and no code of the parser. Empty: none do.
func (p printout) contradicts() string {
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := p[name]; !ok {
				return false
			}
		}
		return true
	}
	apart := func(a, b float64) bool { return math.Abs(a-b) > 0.1*max(a, b)+2 }
	c, e, a := p[results.NumberCommitted], p[results.NumberEnded], p[results.NumberAnswered]
	x, r, t := p[results.NumberThroughput], p[results.NumberEndedRate], p[results.NumberRunTime]
	failed := p[results.NumberAborted] + p[results.NumberErrors] + p[results.NumberTimeouts]
	switch {
	case has(results.NumberCommitted, results.NumberThroughput, results.NumberRunTime) && apart(c, x*t):
		return "C = X T"
	case has(results.NumberEnded, results.NumberEndedRate, results.NumberRunTime) && apart(e, r*t):
		return "E = R T"
	case has(results.NumberCommitted, results.NumberThroughput, results.NumberEnded, results.NumberEndedRate) && apart(c*r/x, e):
		return "C / X = E / R"
	case has(results.NumberCommitted, results.NumberEnded) && c+failed > 1.1*e+2:
		return "C + F <= E"
	case has(results.NumberAnswered, results.NumberEnded) && a > 1.1*e+2:
		return "A <= E"
	case has(results.NumberAnswered, results.NumberCommitted) && c > 1.1*a+2:
		return "C <= A"
	case has(results.NumberThroughput, results.NumberEndedRate) && x > 1.1*r:
		return "X <= R"
	case has(results.NumberThroughput, results.NumberEnded, results.NumberRunTime) && x*t > 1.1*e+2:
		return "X T <= E"
	case has(results.NumberThroughput, results.NumberAnswered, results.NumberRunTime) && x*t > 1.1*a+2:
		return "X T <= A"
	case has(results.NumberCommitted, results.NumberEndedRate, results.NumberRunTime) && c > 1.1*r*t+2:
		return "C <= R T"
	}
	last := 0.0
	for _, name := range []string{results.NumberP50, results.NumberP90, results.NumberP99, results.NumberMax} {
		if has(name) && p[name] < 0.9*last {
			return "percentiles rise"
		}
		last = max(last, p[name])
	}
	return ""
}

// TestSummariesSayWhatRan: if the parser accepts a part of a client's numbers, it gives the run's
// own counts and rate.
func TestSummariesSayWhatRan(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 1))
	read := 0
	for i := range 20_000 {
		whole := ofOneRun(rng)
		part := whole.some(rng)
		_, committed := part[results.NumberCommitted]
		_, rate := part[results.NumberEndedRate]
		if !committed || rate { // failures that are not printed count as committed
			for _, name := range failures {
				part[name] = whole[name]
			}
		}
		c, err := part.read(whole[results.NumberRunTime])
		if err != nil {
			if !strings.Contains(err.Error(), "Throughput is missing") {
				t.Fatalf("run %d: %v\n%v", i, err, part)
			}
			continue
		}
		read++
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > tolerated*want+1 {
				t.Fatalf("run %d: %s is read as %g, and was %g\nof %v", i, what, got, want, part)
			}
		}
		near("committed", float64(c.Counters.Committed), whole[results.NumberCommitted])
		if c.Counters.Committed < 0 || c.Counters.Aborted < 0 || c.Counters.Errors < 0 || c.Counters.Timeouts < 0 {
			t.Fatalf("run %d: counts below 0: %+v\nof %v", i, c.Counters, part)
		}
		near("the rate", c.RunSummary.Throughput*whole[results.NumberRunTime], whole[results.NumberCommitted])
	}
	if read < 10_000 {
		t.Errorf("%d of 20000 were read", read)
	}
}

// TestContradictionsAreNeverReadInSilence: one number is three times too large or too small, and
// others contradict it. Then the parser refuses the report, or adds a remark.
func TestContradictionsAreNeverReadInSilence(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 2))
	silent, contradictions := map[string]int{}, map[string]int{}
	for range 40_000 {
		whole := ofOneRun(rng)
		part := whole.some(rng)
		names := sortedNames(part)
		if len(names) == 0 {
			continue
		}
		spoiled := names[rng.IntN(len(names))]
		if part[spoiled] *= 3; rng.IntN(2) == 0 {
			part[spoiled] /= 9
		}
		why := part.contradicts()
		if why == "" {
			continue
		}
		contradictions[why]++
		c, err := part.read(whole[results.NumberRunTime])
		if err == nil && len(c.RunSummary.Remarks) == 0 {
			if silent[why] == 0 {
				t.Errorf("%s is violated, and nothing says so: %v was read as %+v, %+v", why, part, c.Counters, *c.RunSummary)
			}
			silent[why]++
		}
	}
	t.Logf("contradictions: %v; read in silence: %v", contradictions, silent)
}
