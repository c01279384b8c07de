package imported

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
)

// Numbers of a result. Nil: not known. Latencies are in milliseconds, throughput in operations per
// second.
type Numbers struct {
	Throughput, Mean, P10, P50, P90, P99, P999, Max *float64
	Committed, Aborted, Errors, Timeouts            *float64
	// RunMillis is how long the run took.
	RunMillis *float64
}

// quantity is the kind of number that a name stands for.
type quantity int

const (
	unknown quantity = iota
	rate
	latency
	counted
	duration
)

// place finds the number of a column or a line by its name. Latencies and rates have units.
func (n *Numbers) place(name string) (**float64, quantity) {
	switch simple(name) {
	case "throughput", "tput", "goodput", "tps", "qps", "txs", "opss", "opssec":
		return &n.Throughput, rate
	case "mean", "avg", "average":
		return &n.Mean, latency
	case "p10":
		return &n.P10, latency
	case "p50", "median":
		return &n.P50, latency
	case "p90":
		return &n.P90, latency
	case "p99":
		return &n.P99, latency
	case "p999":
		return &n.P999, latency
	case "max":
		return &n.Max, latency
	case "committed", "commits":
		return &n.Committed, counted
	case "aborted", "aborts":
		return &n.Aborted, counted
	case "errors", "failed", "failures":
		return &n.Errors, counted
	case "timeouts":
		return &n.Timeouts, counted
	case "runtime":
		return &n.RunMillis, duration
	}
	return nil, unknown
}

var (
	percentile = regexp.MustCompile(`^(?:p|)([0-9]{2})(?:\.?(9)|)(?:th|)(?:percentile|)$`)
	notSimple  = regexp.MustCompile(`[^a-z0-9.]`)
)

// simple gives different names of one number the same form: p99Latency, "P99",
// 99thPercentileLatency, latency_p99.
func simple(name string) string {
	s := notSimple.ReplaceAllString(strings.ToLower(name), "")
	for _, word := range []string{"latency", "responsetime"} {
		if without := strings.Replace(s, word, "", 1); without != "" {
			s = without
		}
	}
	if m := percentile.FindStringSubmatch(s); m != nil {
		return "p" + m[1] + m[2]
	}
	return strings.ReplaceAll(s, ".", "")
}

// millisOf has the milliseconds of each unit of time, and perSecond the operations per second of
// each unit of rates.
var (
	millisOf  = map[string]float64{"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1000, "sec": 1000}
	perSecond = map[string]float64{
		"tx/s": 1, "tx_s": 1, "tps": 1, "ops/s": 1, "op/s": 1, "ops_s": 1, "ops/sec": 1, "ops": 1, "req/s": 1, "requests/s": 1,
		"kops/s": 1e3, "ktx/s": 1e3, "mops/s": 1e6, "mops": 1e6, "tx/min": 1.0 / 60, "ops/min": 1.0 / 60,
	}
)

// set stores a number by its name and unit. It reports false for a name that it does not know.
func (n *Numbers) set(name, unit string, x float64) (bool, error) {
	to, what := n.place(name)
	if what == unknown {
		return false, nil
	}
	factor := 1.0
	switch what {
	case latency, duration:
		f, ok := millisOf[strings.ToLower(unit)]
		if !ok {
			return true, fmt.Errorf("%s has the unit %q; a time has one of ns, us, ms, s, as in %s_ms or %s(ms)", name, unit, name, name)
		}
		factor = f
	case rate:
		f, ok := perSecond[strings.ToLower(unit)]
		if !ok && unit != "" {
			return true, fmt.Errorf("%s has the unit %q; a rate has one of tx/s, ops/s, kops/s, Mops/s, tx/min", name, unit)
		}
		if ok {
			factor = f
		}
	}
	if x < 0 || what == counted && x != math.Trunc(x) {
		return true, fmt.Errorf("%s is %g, which is no number of that kind", name, x)
	}
	if *to != nil {
		return true, fmt.Errorf("%s is there twice", name)
	}
	x *= factor
	*to = &x
	return true, nil
}

// total is how many operations throughput and run time give, where both are known.
func (n *Numbers) total() (float64, bool) {
	if n.Throughput == nil || n.RunMillis == nil {
		return 0, false
	}
	return *n.Throughput * *n.RunMillis / 1000, true
}

// complete computes a missing throughput from count and time, and refuses numbers that contradict
// each other.
func (n *Numbers) complete() error {
	if n.Committed != nil && n.RunMillis != nil && *n.RunMillis > 0 {
		per := *n.Committed / *n.RunMillis * 1000
		if n.Throughput == nil {
			n.Throughput = &per
		}
		all := per
		for _, failed := range []*float64{n.Errors, n.Aborted, n.Timeouts} {
			if failed != nil {
				all += *failed / *n.RunMillis * 1000
			}
		}
		switch {
		case within(*n.Throughput, per): // it counts as we do
		case within(*n.Throughput, all): // it counts what failed, too
			n.Throughput = &per
		default:
			return fmt.Errorf("%g operations in %g s are %.1f per second, and the throughput is said to be %.1f", *n.Committed, *n.RunMillis/1000, per, *n.Throughput)
		}
	}
	last, name := 0.0, ""
	for _, p := range []struct {
		name string
		x    *float64
	}{{"p10", n.P10}, {"p50", n.P50}, {"p90", n.P90}, {"p99", n.P99}, {"p99.9", n.P999}, {"the maximum", n.Max}} {
		if p.x == nil {
			continue
		}
		if *p.x < last {
			return fmt.Errorf("%s is %g ms and %s is %g ms: percentiles rise; look at their units", name, last, p.name, *p.x)
		}
		last, name = *p.x, p.name
	}
	if n.Throughput == nil && n.Mean == nil && name == "" {
		return errNoNumber
	}
	return nil
}

// errNoNumber is the error of a result without any number that a claim could be about.
var errNoNumber = errors.New("there is neither a throughput nor a latency")

// agreement is how far count, time and rate may differ, as a share. Programs print few digits, and
// count the last second in full.
const agreement = 0.02

func within(a, b float64) bool { return math.Abs(a-b) <= agreement*math.Max(a, b) }
