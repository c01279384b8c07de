package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// neverEvaluated warns of claims that no trial can decide, since the clients of a system never
// report the numbers that they read. Such a claim ends as NotEvaluated when all trials are done.
func neverEvaluated(p *Plan, systems map[string]v1alpha1.SystemSpec, checks Checks) (warnings []string) {
	if checks.Functions == nil {
		return nil
	}
	skipped := SkippedClaims(p.Spec)
	for i, c := range p.Spec.Claims {
		if _, skip := skipped[c.Name]; skip {
			continue
		}
		reads := checks.Functions(c.Expr)
		for _, ref := range p.Spec.Systems {
			spec := systems[ref.Name]
			for _, name := range slices.Concat(reads[""], reads[ref.Name]) {
				if why := unreported(&spec, name, p.Spec.Clients.Nodes); why != "" {
					warnings = append(warnings, fmt.Sprintf("spec.claims[%d].expr: claim %q can never be evaluated: it reads %s, and System %q %s", i, c.Name, name, ref.Name, why))
				}
			}
		}
	}
	return append(warnings, neverCounted(p, systems)...)
}

// neverCounted warns of measurements by kind of operation or by node, if the clients of a system do
// not report these separately. It also warns of numbers of checks, if a system has no checks.
func neverCounted(p *Plan, systems map[string]v1alpha1.SystemSpec) (warnings []string) {
	for i, m := range p.Spec.Measurements {
		for _, ref := range p.Spec.Systems {
			spec := systems[ref.Name]
			if len(spec.Checks) == 0 && slices.ContainsFunc([]string{m.Counter, m.Per}, ofCheck.MatchString) {
				warnings = append(warnings, fmt.Sprintf("spec.measurements[%d].counter: measurement %s can never be had of System %q: it has no spec.checks, which print such numbers", i, m.Name, ref.Name))
				continue
			}
			r := spec.Clients.Results
			if spec.Clients.Driver != nil || r == nil || r.Records == nil {
				continue
			}
			lacks := ""
			switch {
			case r.Records.Operation == "" && reads(m, "operation"):
				lacks = "operation, which tells kinds of operations apart"
			case r.Records.Node == "" && reads(m, "node"):
				lacks = "node, which says who answered"
			default:
				continue
			}
			warnings = append(warnings, fmt.Sprintf("spec.measurements[%d].counter: measurement %s can never be had of System %q: its spec.clients.results.records has no %s", i, m.Name, ref.Name, lacks))
		}
	}
	return warnings
}

// byPart matches names of numbers by kind of operation, node or region: operationP99Millis:READ,
// nodeP99MillisVariation.
var byPart = regexp.MustCompile(`^(operation|node|region)(?:(?:Micros|MeanMillis|MaxMillis|P[0-9]+Millis)?:.*|(?:MeanMillis|P[0-9]+Millis)?Variation)$`)

// ofCheck are the names of numbers that checks print.
var ofCheck = regexp.MustCompile(`^check(Sum|Mean|Largest|Deviation|Variation):`)

// reads reports whether a measurement is a number by the given part.
func reads(m v1alpha1.Measurement, part string) bool {
	return slices.ContainsFunc([]string{m.Counter, m.Per}, func(counter string) bool {
		found := byPart.FindStringSubmatch(counter)
		return len(found) > 1 && found[1] == part
	})
}

// unreported says why the clients of a system never report the numbers that a function of claims
// reads. Empty: by the System, they may report them.
func unreported(system *v1alpha1.SystemSpec, function string, nodes int32) string {
	r := system.Clients.Results
	if system.Clients.Driver != nil || r == nil {
		return ""
	}
	if r.Format == v1alpha1.FormatSummary {
		return notInSummary(r.Summary, function, nodes)
	}
	counters := map[string][]string{"abort_rate": {results.CounterAborted}, "error_rate": {results.CounterErrors, results.CounterTimeouts}}[function]
	if counters == nil {
		return ""
	}
	switch r.Format {
	case v1alpha1.FormatTransactionLines:
		return "reports in the format TransactionLines, which has no aborts, errors and timeouts"
	case v1alpha1.FormatHdrHistogram:
		return notInHistograms(r.Histograms, function)
	case v1alpha1.FormatRegularExpression, v1alpha1.FormatCSV, v1alpha1.FormatJSONLines:
		records := Records(r.Records)
		if records != nil && slices.ContainsFunc(counters, records.Outcome.Reads) {
			return ""
		}
		return fmt.Sprintf("says of no outcome that it is one of %s: name some in spec.clients.results.records.outcome", strings.Join(counters, " and "))
	}
	return ""
}

// notInHistograms says which failures a log of histograms does not report.
func notInHistograms(h *v1alpha1.ClientHistograms, function string) string {
	switch {
	case function == "abort_rate":
		return "reports in the format HdrHistogram, which has no aborts"
	case h == nil || len(h.Errors) == 0:
		return "says of no histogram that it is one of errors: name their tags in spec.clients.results.histograms.errors"
	}
	return ""
}

// notInSummary says which number a summary lacks.
func notInSummary(s *v1alpha1.ClientSummary, function string, nodes int32) string {
	has := func(name string) bool {
		return s != nil && slices.ContainsFunc(s.Numbers, func(n v1alpha1.SummaryNumber) bool { return string(n.Name) == name })
	}
	percentile := strings.HasPrefix(function, "p") && strings.HasSuffix(function, "_latency") && function != "peak_latency"
	var needs []string
	switch function {
	case "abort_rate":
		needs = []string{results.NumberAborted}
	case "error_rate":
		// Assay can also compute the errors from all attempts, if they do not follow from the
		// failures.
		needs = []string{results.NumberErrors, results.NumberTimeouts, results.NumberEnded, results.NumberAnswered}
		if !has(results.NumberCommitted) {
			needs = append(needs, results.NumberEndedRate)
		}
	case "mean_latency", "min_latency", "peak_latency", "knee_latency":
		needs = []string{results.NumberMean}
	case "time_to_detect", "dip", "time_to_90", "goodput_lost":
		return "reports in the format Summary, which has no instants: a client that prints a line for each operation can show a recovery"
	}
	if percentile {
		needs = []string{"P" + strings.TrimSuffix(function[1:], "_latency") + "Latency"}
	}
	switch {
	case len(needs) == 0:
		return ""
	case !slices.ContainsFunc(needs, has):
		return fmt.Sprintf("has no %s in spec.clients.results.summary.numbers; add it, or claim what there is", strings.Join(needs, " or "))
	case percentile && nodes > 1:
		return fmt.Sprintf("has the format Summary with %d client pods, whose percentiles cannot be put together: set spec.clients.nodes: 1", nodes)
	}
	return ""
}
