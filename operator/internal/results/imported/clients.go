package imported

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// client is the label that tells the clients of a run apart. It is no axis.
const client = "client"

// mergeClients merges results that differ in their client alone: {client} in the names of files. It
// adds up rates and counts, and computes the mean of all operations. It cannot merge percentiles of
// several clients: it leaves them out, and names them. A run is as long as its longest client. A
// number that some clients report and others do not is an error, since the sum would be too small.
func (s *Set) mergeClients() error {
	var merged []Result
	runs := map[string][]Result{}
	var order []string
	for _, r := range s.Results {
		if _, told := r.Labels[client]; !told {
			merged = append(merged, r)
			continue
		}
		labels := maps.Clone(r.Labels)
		delete(labels, client)
		key := labelsText(labels)
		if runs[key] == nil {
			order = append(order, key)
		}
		runs[key] = append(runs[key], r)
	}
	for _, key := range order {
		r, left, err := ofClients(runs[key])
		if err != nil {
			return err
		}
		if len(left) > 0 {
			s.Skipped = append(s.Skipped, fmt.Sprintf("of the %d clients of %s: %s, which cannot be put together", len(runs[key]), key, strings.Join(left, ", ")))
		}
		merged = append(merged, r)
	}
	s.Results = merged
	return nil
}

// ofClients merges the clients of a run. The result left names the numbers that were left out.
func ofClients(clients []Result) (run Result, left []string, err error) {
	run = Result{From: clients[0].From, Labels: maps.Clone(clients[0].Labels)}
	delete(run.Labels, client)
	seen := map[string]bool{}
	for _, c := range clients {
		name := c.Labels[client]
		if seen[name] {
			return run, nil, fmt.Errorf("%s: client %s of %s is there twice", c, name, labelsText(run.Labels))
		}
		seen[name] = true
	}
	if len(clients) == 1 {
		run.Numbers = clients[0].Numbers
		return run, nil, nil
	}
	for _, number := range []struct {
		name string
		of   func(*Numbers) **float64
		add  func(a, b float64) float64 // nil: it cannot be merged
	}{
		{"throughput", func(n *Numbers) **float64 { return &n.Throughput }, plus},
		{"committed", func(n *Numbers) **float64 { return &n.Committed }, plus},
		{"aborted", func(n *Numbers) **float64 { return &n.Aborted }, plus},
		{"errors", func(n *Numbers) **float64 { return &n.Errors }, plus},
		{"timeouts", func(n *Numbers) **float64 { return &n.Timeouts }, plus},
		{"the maximum", func(n *Numbers) **float64 { return &n.Max }, larger},
		{"the run time", func(n *Numbers) **float64 { return &n.RunMillis }, larger},
		{"p10", func(n *Numbers) **float64 { return &n.P10 }, nil},
		{"p50", func(n *Numbers) **float64 { return &n.P50 }, nil},
		{"p90", func(n *Numbers) **float64 { return &n.P90 }, nil},
		{"p99", func(n *Numbers) **float64 { return &n.P99 }, nil},
		{"p99.9", func(n *Numbers) **float64 { return &n.P999 }, nil},
	} {
		with := slices.DeleteFunc(slices.Clone(clients), func(c Result) bool { return *number.of(&c.Numbers) == nil })
		switch {
		case len(with) == 0:
		case number.add == nil:
			left = append(left, number.name)
		case len(with) < len(clients):
			return run, nil, fmt.Errorf("%s has %s, and another client of the same run does not: %s", with[0], number.name, labelsText(run.Labels))
		default:
			sum := **number.of(&with[0].Numbers)
			for _, c := range with[1:] {
				sum = number.add(sum, **number.of(&c.Numbers))
			}
			*number.of(&run.Numbers) = &sum
		}
	}
	var all bool
	if run.Mean, all = meanOf(clients); !all {
		left = append(left, "the mean")
	}
	return run, left, nil
}

// meanOf returns the mean of all operations. It is nil if some client reports no mean or no count.
// The result is false if a client has a mean without a count.
func meanOf(clients []Result) (*float64, bool) {
	sum, n := 0.0, 0.0
	for _, c := range clients {
		if c.Mean == nil || c.Committed == nil {
			return nil, c.Mean == nil
		}
		sum, n = sum+*c.Mean**c.Committed, n+*c.Committed
	}
	if n == 0 {
		return nil, true
	}
	mean := sum / n
	return &mean, true
}

func plus(a, b float64) float64   { return a + b }
func larger(a, b float64) float64 { return max(a, b) }
