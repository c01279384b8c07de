package parsers

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// tolerated is how far a number may differ from the one computed from other numbers of the run,
// beyond rounding.
const tolerated = 0.02

// partOfRun is the least part of the load's time that a run may take without a remark.
const partOfRun = 0.8

// failures are the counts of attempts that did not commit.
var failures = []string{results.NumberAborted, results.NumberErrors, results.NumberTimeouts}

// determination computes the missing numbers of a summary from the present ones. With C committed,
// F failed, W timed-out, E ended and A answered attempts, X and R the rates of committed and ended
// ones, and T the run time:
//
//	E = C + F      A = E - W      C = X T      E = R T      X = R C / E
//
// If present numbers contradict each other, the error names them.
type determination struct {
	said    map[string]quantity
	load    time.Duration // how long clients were to send; 0: not known
	failed  float64
	remarks []string
	// errors is the count of errors that follows from the other numbers; nil: it is given, or does
	// not follow.
	errors *float64
}

func (d *determination) has(name string) bool { _, ok := d.said[name]; return ok }

func (d *determination) remark(format string, args ...any) {
	d.remarks = append(d.remarks, fmt.Sprintf(format, args...))
}

// seconds of the run: the given ones, or a count divided by a rate, or those of the load.
func (d *determination) seconds() float64 {
	if d.has(results.NumberRunTime) {
		return d.said[results.NumberRunTime].value / 1000
	}
	for _, of := range [][2]string{{results.NumberCommitted, results.NumberThroughput}, {results.NumberEnded, results.NumberEndedRate}} {
		if count, rate := d.said[of[0]], d.said[of[1]]; d.has(of[0]) && rate.value > 0 {
			return count.value / rate.value
		}
	}
	switch {
	case d.has(results.NumberCommitted), d.has(results.NumberEnded), d.has(results.NumberAnswered):
		// A rate of one kind of attempts, and a count of the other.
		for _, rate := range []string{results.NumberThroughput, results.NumberEndedRate} {
			if d.said[rate].value > 0 {
				return d.ended().value / d.said[rate].value
			}
		}
	case d.load > 0:
		d.remark("the client says neither a count nor a run time: counts are its rate in %v, the time of the load", d.load)
	default:
		d.remark("the client says neither a count nor a run time: in a trial, counts are its rate in the time of the load")
	}
	return d.load.Seconds()
}

// ended is how many attempts ended, as far as the counts tell.
func (d *determination) ended() quantity {
	switch {
	case d.has(results.NumberEnded):
		return d.said[results.NumberEnded]
	case d.has(results.NumberAnswered):
		a := d.said[results.NumberAnswered]
		return quantity{a.value + d.said[results.NumberTimeouts].value, a.step}
	}
	return quantity{d.said[results.NumberCommitted].value + d.failed, 1}
}

// numbers are the committed transactions, their rate, and the seconds of the run.
func (d *determination) numbers() (committed, throughput, seconds float64, err error) {
	said := false // the client says how many attempts failed
	for _, name := range failures {
		d.failed += d.said[name].value
		said = said || d.has(name)
	}
	seconds = d.seconds()
	ended, counted := d.ended(), d.has(results.NumberEnded) || d.has(results.NumberAnswered)
	if !counted && d.has(results.NumberEndedRate) && !d.has(results.NumberCommitted) {
		ended, counted = quantity{math.Round(d.said[results.NumberEndedRate].value * seconds), 1}, true
	}
	throughput = d.said[results.NumberThroughput].value
	switch {
	case d.has(results.NumberCommitted):
		committed = d.said[results.NumberCommitted].value
	case counted && d.has(results.NumberThroughput) && !said:
		committed = d.fromRate(seconds, ended)
	case counted:
		committed = ended.value - d.failed
	default:
		committed = math.Round(throughput * seconds)
	}
	if committed < 0 {
		return 0, 0, 0, fmt.Errorf("%g attempts ended, and %g of them failed: the failures are more than all", ended.value, d.failed)
	}
	if rest := ended.value - committed - d.failed; counted && rest >= 0 && !d.has(results.NumberErrors) && (rest > 0 || !said) {
		d.errors = &rest
		d.failed += rest
	}
	switch {
	case d.has(results.NumberThroughput):
	case committed == 0:
	case seconds < 1e-9:
		return 0, 0, 0, errors.New("the client says that it ran for no time at all")
	default:
		throughput = committed / seconds
	}
	return committed, throughput, seconds, d.agree()
}

// fromRate computes how many transactions committed, from their rate and the count of all attempts.
// If rounding explains the difference, all of them committed.
func (d *determination) fromRate(seconds float64, ended quantity) float64 {
	rate, run := d.said[results.NumberThroughput], d.said[results.NumberRunTime]
	committed := math.Round(rate.value * seconds)
	if math.Abs(ended.value-committed) <= 1+rate.step*seconds+rate.value*run.step/1000 {
		return ended.value
	}
	return committed
}

// agree refuses numbers that contradict each other.
func (d *determination) agree() error {
	for _, of := range [][2]string{{results.NumberCommitted, results.NumberThroughput}, {results.NumberEnded, results.NumberEndedRate}} {
		count, rate, run := d.said[of[0]], d.said[of[1]], d.said[results.NumberRunTime]
		if !d.has(of[0]) || !d.has(of[1]) || !d.has(results.NumberRunTime) {
			continue
		}
		product := rate.value * run.value / 1000
		rounding := count.step + (rate.step*run.value+rate.value*run.step)/1000
		if far(count.value, product, rounding) {
			return fmt.Errorf("%s %g per second in %s %g s are %g, and %s is %g: they differ by %.3g%%. A rate that counts failures, too, is %s",
				of[1], rate.value, results.NumberRunTime, run.value/1000, product, of[0], count.value, apart(count.value, product), results.NumberEndedRate)
		}
	}
	if err := d.sameRun(); err != nil {
		return err
	}
	if err := d.partsOfAll(); err != nil {
		return err
	}
	return d.latenciesRise()
}

// sameRun refuses counts and rates that give two different run times, if the client gives none.
func (d *determination) sameRun() error {
	committed, throughput := d.said[results.NumberCommitted], d.said[results.NumberThroughput]
	ended, rate := d.said[results.NumberEnded], d.said[results.NumberEndedRate]
	if d.has(results.NumberRunTime) || committed.value <= 0 || throughput.value <= 0 || ended.value <= 0 || rate.value <= 0 {
		return nil
	}
	a, b := committed.value/throughput.value, ended.value/rate.value
	rounding := a*(committed.step/committed.value+throughput.step/throughput.value) + b*(ended.step/ended.value+rate.step/rate.value)
	if far(a, b, rounding) {
		return fmt.Errorf("%s %g at %s %g per second is a run of %.4g s, and %s %g at %s %g per second one of %.4g s: they differ by %.3g%%",
			results.NumberCommitted, committed.value, results.NumberThroughput, throughput.value, a, results.NumberEnded, ended.value, results.NumberEndedRate, rate.value, b, apart(a, b))
	}
	return nil
}

// amount is a number of attempts, and what it was made from.
type amount struct {
	what string
	quantity
}

// amounts are the counts of these names, and the rate times the run time, as far as the client
// gives them.
func (d *determination) amounts(rate string, counts ...string) (all []amount) {
	for _, name := range counts {
		if d.has(name) {
			all = append(all, amount{name, d.said[name]})
		}
	}
	if x, run := d.said[rate], d.said[results.NumberRunTime]; d.has(rate) && d.has(results.NumberRunTime) {
		seconds := run.value / 1000
		all = append(all, amount{rate + " in " + results.NumberRunTime, quantity{x.value * seconds, x.step*seconds + x.value*run.step/1000}})
	}
	return all
}

// partsOfAll refuses a part that is more than all attempts: the committed ones with the failed
// ones, or the answered ones.
func (d *determination) partsOfAll() error {
	failed := 0.0 // only given ones: a count that is computed from the rest contradicts nothing
	for _, name := range failures {
		failed += d.said[name].value
	}
	less := func(part, all amount, others float64) error {
		if part.value+others <= all.value*(1+tolerated)+part.step+all.step {
			return nil
		}
		text := fmt.Sprintf("%s %g", part.what, part.value)
		if others > 0 {
			text += fmt.Sprintf(" and %g failures", others)
		}
		return fmt.Errorf("%s are more than %s, %g", text, all.what, all.value)
	}
	ended := d.amounts(results.NumberEndedRate, results.NumberEnded)
	answered := d.amounts("", results.NumberAnswered)
	for _, part := range d.amounts(results.NumberThroughput, results.NumberCommitted) {
		for _, all := range ended {
			if err := less(part, all, failed); err != nil {
				return err
			}
		}
		for _, all := range answered { // those that timed out had no answer
			if err := less(part, all, failed-d.said[results.NumberTimeouts].value); err != nil {
				return err
			}
		}
	}
	for _, part := range answered {
		for _, all := range ended {
			if err := less(part, all, d.said[results.NumberTimeouts].value); err != nil {
				return err
			}
		}
	}
	throughput, rate := amount{results.NumberThroughput, d.said[results.NumberThroughput]}, amount{results.NumberEndedRate, d.said[results.NumberEndedRate]}
	if d.has(results.NumberEndedRate) {
		return less(throughput, rate, 0)
	}
	return nil
}

// far reports whether two numbers differ by more than is tolerated.
func far(a, b, rounding float64) bool {
	return math.Abs(a-b) > tolerated*max(a, b)+rounding
}

// apart is how far two numbers differ, in percent of the smaller one.
func apart(a, b float64) float64 {
	return 100 * math.Abs(a-b) / max(min(a, b), math.SmallestNonzeroFloat64)
}

// latenciesRise refuses percentiles that do not rise, and a mean above the maximum: their units are
// wrong, or they are not of the same transactions.
func (d *determination) latenciesRise() error {
	type ranked struct {
		name string
		rank float64
	}
	var all []ranked
	for name := range d.said {
		if rank := results.Percentile(name); rank > 0 {
			all = append(all, ranked{name, rank})
		}
	}
	if d.has(results.NumberMax) {
		all = append(all, ranked{results.NumberMax, 100})
		if mean := d.said[results.NumberMean]; far2(mean, d.said[results.NumberMax]) {
			return fmt.Errorf("%s is %g ms, more than %s, %g ms: look at their units", results.NumberMean, mean.value, results.NumberMax, d.said[results.NumberMax].value)
		}
	}
	slices.SortFunc(all, func(a, b ranked) int { return int(1000 * (a.rank - b.rank)) })
	for i := range max(0, len(all)-1) {
		low, high := d.said[all[i].name], d.said[all[i+1].name]
		if far2(low, high) {
			return fmt.Errorf("%s is %g ms, more than %s, %g ms: look at their units, and whether they are of the same transactions",
				all[i].name, low.value, all[i+1].name, high.value)
		}
	}
	return nil
}

// far2 reports whether the first is greater by more than is tolerated.
func far2(low, high quantity) bool {
	return low.value > high.value && far(low.value, high.value, low.step+high.step)
}

// client makes a report of what was read.
func (s *summaryText) client(o Options) (results.Client, error) {
	c := results.Client{
		Format: results.ClientFormat, Index: o.Index, FirstClient: o.FirstClient, Clients: o.Clients, MeasureNanos: int64(o.Windows.Measure),
		NothingSent: true, // a summary does not say when the first request was sent
		Timeline:    results.NewTimeline(0, 0), RunSummary: &results.RunSummary{},
		Unreported: []string{
			results.CounterAborted, results.CounterErrors, results.CounterGivenUp, results.CounterLateSends, results.CounterOffered,
			results.CounterRetries, results.CounterTimeouts, results.CounterUnsent,
		},
	}
	if o.Misbehaving > 0 && o.Misbehaving == o.Clients { // there is nothing to print
		return c, nil
	}
	d := determination{said: map[string]quantity{}, load: o.Windows.WarmUp + o.Windows.LastRequest()}
	for i := range s.readers {
		if err := s.put(&s.readers[i], &c, &d); err != nil {
			return c, err
		}
		if said := s.readers[i].oneOfMany(); said != "" {
			d.remark("%s", said)
		}
	}
	committed, throughput, seconds, err := d.numbers()
	if err != nil {
		return c, err
	}
	if d.errors != nil {
		c.Counters.Errors = int64(math.Round(*d.errors))
		c.Unreported = slices.DeleteFunc(c.Unreported, func(name string) bool { return name == results.CounterErrors })
	}
	c.Counters.Committed, c.RunSummary.Throughput = int64(math.Round(committed)), throughput
	if d.load > 0 && seconds < partOfRun*d.load.Seconds() {
		d.remark("the numbers account for %.3g s of the %.3g s that clients were to send for: the client ended early, or its count or rate is of a part only", seconds, d.load.Seconds())
	}
	c.RunSummary.Remarks = d.remarks
	return c, nil
}

// put takes in one number.
func (s *summaryText) put(n *numberReader, c *results.Client, d *determination) error {
	counter, failed := map[string]string{
		results.NumberAborted: results.CounterAborted, results.NumberErrors: results.CounterErrors, results.NumberTimeouts: results.CounterTimeouts,
	}[n.Name]
	if n.times == 0 && !failed {
		return s.missing(n)
	}
	q := n.number()
	d.said[n.Name] = q
	switch {
	case failed:
		*map[string]*int64{
			results.NumberAborted: &c.Counters.Aborted, results.NumberErrors: &c.Counters.Errors, results.NumberTimeouts: &c.Counters.Timeouts,
		}[n.Name] = int64(q.value)
		c.Unreported = slices.DeleteFunc(c.Unreported, func(name string) bool { return name == counter })
	case n.IsLatency():
		c.RunSummary.SetLatency(n.Name, q.value)
	case n.Kind() == results.NumberOwn:
		c.RunSummary.SetNumber(n.Name, q.value)
	}
	return nil
}

// missing says that a number is missing, with possible reasons.
func (s *summaryText) missing(n *numberReader) error {
	what := "no line of the client's output matches the pattern of " + n.Name + ", " + n.Pattern
	if n.Path != "" {
		what = "no JSON document of the client's output has the path of " + n.Name + ", " + n.Path
	}
	if s.cut != nil {
		what += "; its last line, " + strconv.Quote(string(short(s.cut))) + ", has no newline and was dropped, since the client did not end by itself with exit code 0"
	}
	if s.long > 0 {
		what += fmt.Sprintf("; %d lines are longer than %d bytes and were skipped", s.long, maxLine)
	}
	return errors.New(what)
}
