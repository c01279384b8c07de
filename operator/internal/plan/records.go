package plan

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// records checks what the lines of a client's report are said to hold.
func (s *systemCheck) records(at *field.Path, r *v1alpha1.ClientResults) {
	if r.Records == nil {
		return // needed or not, the schema says
	}
	records := Records(r.Records)
	if err := records.Check(); err != nil {
		s.add(field.Invalid(at, "", err.Error()))
	}
	switch {
	case r.Format == v1alpha1.FormatCSV && records.Pattern != "":
		s.add(field.Invalid(at.Child("pattern"), records.Pattern, "must not be set for the format CSV, whose columns have names"))
	case r.Format == v1alpha1.FormatCSV:
	case r.Records.Separator != "":
		s.add(field.Invalid(at.Child("separator"), r.Records.Separator, "must not be set but for the format CSV"))
	case records.Pattern == "":
		s.add(field.Required(at.Child("pattern"), "the format RegularExpression reads each operation's line by it"))
	default:
		if _, err := records.CompilePattern(); err != nil {
			s.add(field.Invalid(at.Child("pattern"), records.Pattern, err.Error()))
		}
	}
}

// Records are what the agent reads a report by, with the defaults in place. Nil without records.
func Records(r *v1alpha1.ClientRecords) *results.Records {
	if r == nil {
		return nil
	}
	out := &results.Records{
		Pattern: r.Pattern, Separator: r.Separator,
		Latency: results.RecordLatency{From: r.Latency.From, Unit: string(r.Latency.Unit)},
		Instant: results.RecordInstant{
			From: r.Instant.From, Unit: string(r.Instant.Unit),
			Clock: cmp.Or(r.Instant.Clock, results.ClockWall), Of: cmp.Or(r.Instant.Of, results.OfEnd),
		},
	}
	if o := r.Outcome; o != nil {
		out.Outcome = &results.RecordOutcome{From: o.From, Committed: o.Committed, Aborted: o.Aborted, Errors: o.Errors, Timeouts: o.Timeouts}
	}
	return out
}
