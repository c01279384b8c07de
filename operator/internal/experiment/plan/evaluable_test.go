package plan_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// A claim on a number that clients never report was once found only when all trials were done.
func TestClaimsThatCanNeverBeEvaluated(t *testing.T) {
	summary := &v1alpha1.ClientResults{Format: v1alpha1.FormatSummary, Source: "Stdout", Summary: &v1alpha1.ClientSummary{Numbers: []v1alpha1.SummaryNumber{
		{Name: "Committed", Pattern: "c (?P<value>[0-9]+)"}, {Name: "RunTime", Unit: "s", Pattern: "t (?P<value>[0-9]+)"},
		{Name: "P99Latency", Unit: "us", Pattern: "p (?P<value>[0-9]+)"}, {Name: "Timeouts", Pattern: "o (?P<value>[0-9]+)"},
	}}}
	lines := &v1alpha1.ClientResults{Format: v1alpha1.FormatTransactionLines, Source: "Stdout"}
	records := &v1alpha1.ClientResults{Format: v1alpha1.FormatCSV, Source: "Stdout", Records: &v1alpha1.ClientRecords{
		Latency: v1alpha1.RecordLatency{From: "l", Unit: "us"}, Instant: v1alpha1.RecordInstant{From: "i", Unit: "ms"},
		Outcome: &v1alpha1.RecordOutcome{From: "o", Committed: []string{"ok"}, Aborted: []string{"no"}, Others: "Skipped"},
	}}
	others := records.DeepCopy()
	others.Records.Outcome.Others = ""
	histograms := &v1alpha1.ClientResults{Format: v1alpha1.FormatHdrHistogram, Source: "Stdout", Histograms: &v1alpha1.ClientHistograms{Unit: "us"}}
	tagged := histograms.DeepCopy()
	tagged.Histograms.Errors = []string{"failed"}
	rate := &v1alpha1.ClientResults{Format: v1alpha1.FormatSummary, Source: "Stdout", Summary: &v1alpha1.ClientSummary{Numbers: []v1alpha1.SummaryNumber{
		{Name: "EndedRate", Path: "$.rate"}, {Name: "P9999Latency", Unit: "us", Path: "$.p9999"}, {Name: "hitRate", Path: "$.hits"},
	}}}
	committed := rate.DeepCopy()
	committed.Summary.Numbers = append(committed.Summary.Numbers, v1alpha1.SummaryNumber{Name: "Committed", Path: "$.committed"})
	ended := committed.DeepCopy()
	ended.Summary.Numbers = append(ended.Summary.Numbers, v1alpha1.SummaryNumber{Name: "Ended", Path: "$.ended"})
	for name, tc := range map[string]struct {
		results *v1alpha1.ClientResults
		expr    string
		nodes   int32
		want    string // of the warning; empty: none
	}{
		"percentile that is there":     {summary, "p99_latency() < 5ms", 1, ""},
		"percentile that is not":       {summary, "p50_latency() < 5ms", 1, `claim "c" can never be evaluated: it reads p50_latency, and System "basil" has no P50Latency in spec.clients.results.summary.numbers`},
		"mean":                         {summary, "min_latency() < 5ms", 1, "has no MeanLatency"},
		"aborts":                       {summary, "abort_rate() < 0.1", 1, "has no Aborted"},
		"timeouts are errors":          {summary, "error_rate() < 0.1", 1, ""},
		"percentiles of several pods":  {summary, "p99_latency() < 5ms", 2, "whose percentiles cannot be put together"},
		"throughput of several pods":   {summary, "throughput() > 5", 2, ""},
		"aborts of lines":              {lines, "abort_rate() < 0.1", 1, "the format TransactionLines, which has no aborts"},
		"latency of lines":             {lines, "p50_latency() < 5ms", 1, ""},
		"aborts that records name":     {records, "abort_rate() < 0.1", 1, ""},
		"errors that records do not":   {records, "error_rate() < 0.1", 1, "says of no outcome that it is one of errors and timeouts"},
		"errors that others are":       {others, "error_rate() < 0.1", 1, ""},
		"aborts of histograms":         {histograms, "abort_rate() < 0.1", 1, "the format HdrHistogram, which has no aborts"},
		"errors of histograms":         {histograms, "error_rate() < 0.1", 1, "says of no histogram that it is one of errors"},
		"errors with a tag":            {tagged, "error_rate() < 0.1", 1, ""},
		"percentile beyond the usual":  {rate, "p9999_latency() < 5ms", 1, ""},
		"percentile and own numbers":   {rate, "p75_latency() < 5ms", 1, "has no P75Latency"},
		"throughput without a count":   {rate, "throughput() > 5", 1, ""},
		"errors by the rate of all":    {rate, "error_rate() < 0.1", 1, ""},
		"errors by no count of all":    {committed, "error_rate() < 0.1", 1, "has no Errors or Timeouts or Ended or Answered"},
		"errors by a count of all":     {ended, "error_rate() < 0.1", 1, ""},
		"another system's, not at all": {summary, "p50_latency(system='other') < 5ms", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			system := builders.System("basil")
			system.Set(func(s *v1alpha1.SystemSpec) { s.Clients.Driver, s.Clients.Results = nil, tc.results })
			exp := builders.Experiment("e").System("basil").Set(func(s *v1alpha1.ExperimentSpec) {
				s.Clients.Nodes, s.Clients.Count = tc.nodes, tc.nodes
				s.Claims = []v1alpha1.Claim{{Name: "c", Statement: "s", Expr: tc.expr}}
			}).Obj()
			p, errs := plan.Validate(exp, systems(system), plan.Checks{Functions: claims.FunctionsOf})
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			said := strings.Join(p.Warnings, "\n")
			if (tc.want == "") != !strings.Contains(said, "never be evaluated") || !strings.Contains(said, tc.want) {
				t.Errorf("warnings %q, want %q", said, tc.want)
			}
		})
	}
}

// A number that a check prints can never be had of a System without checks.
func TestNumbersOfChecksThatCanNeverBeMeasured(t *testing.T) {
	checks := []v1alpha1.SafetyCheck{{Name: "counted", RunsOn: v1alpha1.StepEveryReplica, Command: []string{"/count"}, ViolatedExitCode: 1, Timeout: "30s"}}
	for name, tc := range map[string]struct {
		checks       []v1alpha1.SafetyCheck
		counter, per string
		want         bool
	}{
		"no check":           {nil, "checkSum:reads", "", true},
		"no check, per":      {nil, "reads", "checkSum:reads", true},
		"a check":            {checks, "checkVariation:reads", "checkSum:reads", false},
		"a counter's letter": {nil, "checksSum", "checked:reads", false},
	} {
		t.Run(name, func(t *testing.T) {
			system := builders.System("basil")
			system.Set(func(s *v1alpha1.SystemSpec) { s.Checks = tc.checks })
			exp := builders.Experiment("e").System("basil").Set(func(s *v1alpha1.ExperimentSpec) {
				s.Measurements = []v1alpha1.Measurement{{Name: "reads", Counter: tc.counter, Per: tc.per}}
			}).Obj()
			p, errs := plan.Validate(exp, systems(system), plan.Checks{Functions: claims.FunctionsOf})
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			said := strings.Join(p.Warnings, "\n")
			if got := strings.Contains(said, `measurement reads can never be had of System "basil": it has no spec.checks`); got != tc.want {
				t.Errorf("warnings %q; of checks that are missing: want %v", said, tc.want)
			}
		})
	}
}

// There can be no measurement of a kind of operations that the clients do not report.
func TestKindsOfOperationsThatCanNeverBeMeasured(t *testing.T) {
	for name, tc := range map[string]struct{ operation, counter, want string }{
		"no kinds":      {"", "operationP99Millis:READ", `measurement readP99 can never be had of System "basil"`},
		"kinds":         {"kind", "operationP99Millis:READ", ""},
		"other counter": {"", "operations", ""},
	} {
		t.Run(name, func(t *testing.T) {
			system := builders.System("basil")
			system.Set(func(s *v1alpha1.SystemSpec) {
				s.Clients.Driver, s.Clients.Results = nil, &v1alpha1.ClientResults{Format: v1alpha1.FormatCSV, Source: "Stdout", Records: &v1alpha1.ClientRecords{
					Latency: v1alpha1.RecordLatency{From: "l", Unit: "us"}, Instant: v1alpha1.RecordInstant{From: "i", Unit: "ms"}, Operation: tc.operation,
				}}
			})
			exp := builders.Experiment("e").System("basil").Set(func(s *v1alpha1.ExperimentSpec) {
				s.Measurements = []v1alpha1.Measurement{{Name: "readP99", Unit: "ms", Counter: tc.counter}}
			}).Obj()
			p, errs := plan.Validate(exp, systems(system), plan.Checks{Functions: claims.FunctionsOf})
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			said := strings.Join(p.Warnings, "\n")
			if (tc.want == "") != !strings.Contains(said, "can never be had") || !strings.Contains(said, tc.want) {
				t.Errorf("warnings %q, want %q", said, tc.want)
			}
		})
	}
}
