package plan

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// CheckResults refuses results of a client that cannot be read, as admission of a System does. It
// does not repeat the checks of the schema.
func CheckResults(r *v1alpha1.ClientResults) field.ErrorList {
	return checkResults(field.NewPath("results"), r)
}

func checkResults(at *field.Path, r *v1alpha1.ClientResults) field.ErrorList {
	return slices.Concat(checkRecords(at.Child("records"), r), checkSummary(at.Child("summary"), r), checkHistograms(at.Child("histograms"), r))
}

// checkSummary checks the declared content of a client's summary.
func checkSummary(at *field.Path, r *v1alpha1.ClientResults) (errs field.ErrorList) {
	if r.Summary == nil {
		return nil // the schema says whether it is needed
	}
	numbers := Summary(r.Summary)
	if err := results.CheckSummary(numbers); err != nil {
		errs = append(errs, field.Invalid(at.Child("numbers"), "", err.Error()))
	}
	for i, n := range numbers {
		at := at.Child("numbers").Index(i)
		if n.Path != "" {
			if _, err := n.CompilePath(); err != nil {
				errs = append(errs, field.Invalid(at.Child("path"), n.Path, err.Error()))
			}
		} else if _, err := n.Compile(); err != nil {
			errs = append(errs, field.Invalid(at.Child("pattern"), n.Pattern, err.Error()))
		}
	}
	return errs
}

// Summary returns the numbers that the agent reads from a summary. It is nil without a summary.
func Summary(c *v1alpha1.ClientSummary) []results.SummaryNumber {
	if c == nil {
		return nil
	}
	var out []results.SummaryNumber
	for _, n := range c.Numbers {
		out = append(out, results.SummaryNumber{Name: string(n.Name), Pattern: n.Pattern, Path: n.Path, Unit: n.Unit, Of: cmp.Or(n.Of, results.OfOnly)})
	}
	return out
}

// Histograms says how the agent reads a log of histograms. It is nil without such a log.
func Histograms(h *v1alpha1.ClientHistograms) *results.Histograms {
	if h == nil {
		return nil
	}
	return &results.Histograms{Unit: string(h.Unit), Tags: h.Tags, Errors: h.Errors}
}

// checkHistograms checks the declared content of a log of histograms.
func checkHistograms(at *field.Path, r *v1alpha1.ClientResults) (errs field.ErrorList) {
	if r.Histograms == nil {
		return nil // the schema says whether it is needed
	}
	if err := Histograms(r.Histograms).Check(); err != nil {
		errs = append(errs, field.Invalid(at, "", err.Error()))
	}
	return errs
}

// checkRecords checks the declared content of the lines of a client's report.
func checkRecords(at *field.Path, r *v1alpha1.ClientResults) (errs field.ErrorList) {
	if r.Records == nil {
		return nil // the schema says whether it is needed
	}
	records := Records(r.Records)
	if err := records.Check(); err != nil {
		errs = append(errs, field.Invalid(at, "", err.Error()))
	}
	switch {
	case r.Format == v1alpha1.FormatCSV && records.Pattern != "":
		errs = append(errs, field.Invalid(at.Child("pattern"), records.Pattern, "must not be set for the format CSV, whose columns have names"))
	case r.Format != v1alpha1.FormatJSONLines && len(r.Records.Where) > 0:
		errs = append(errs, field.Invalid(at.Child("where"), "", "must not be set but for the format JSONLines"))
	case r.Format == v1alpha1.FormatJSONLines:
		errs = append(errs, checkJSONLines(at, records)...)
	case r.Format == v1alpha1.FormatCSV:
	case r.Records.Separator != "":
		errs = append(errs, field.Invalid(at.Child("separator"), r.Records.Separator, "must not be set but for the format CSV"))
	case records.Pattern == "":
		errs = append(errs, field.Required(at.Child("pattern"), "the format RegularExpression matches each line of an operation with pattern"))
	default:
		if _, err := records.CompilePattern(); err != nil {
			errs = append(errs, field.Invalid(at.Child("pattern"), records.Pattern, err.Error()))
		}
	}
	return errs
}

// checkJSONLines checks the paths of records of JSON.
func checkJSONLines(at *field.Path, r *results.Records) (errs field.ErrorList) {
	if r.Pattern != "" {
		errs = append(errs, field.Invalid(at.Child("pattern"), r.Pattern, "must not be set for the format JSONLines, whose members have paths"))
	}
	if r.Separator != "" {
		errs = append(errs, field.Invalid(at.Child("separator"), r.Separator, "must not be set but for the format CSV"))
	}
	for _, path := range r.Fields() {
		if _, err := results.MemberPath(path); err != nil {
			errs = append(errs, field.Invalid(at, path, err.Error()))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(r.Where)) {
		if _, err := results.MemberPath(path); err != nil {
			errs = append(errs, field.Invalid(at.Child("where").Key(path), path, err.Error()))
		}
	}
	return errs
}

// Records says how the agent reads a report, with the defaults. It is nil without records.
func Records(r *v1alpha1.ClientRecords) *results.Records {
	if r == nil {
		return nil
	}
	i := r.Instant
	out := &results.Records{
		Pattern: r.Pattern, Separator: r.Separator, Where: r.Where, Operation: r.Operation, Node: r.Node,
		Latency: results.RecordLatency{From: r.Latency.From, Unit: string(r.Latency.Unit), Since: r.Latency.Since},
		Instant: results.RecordInstant{
			From: i.From, Unit: string(i.Unit), Layout: i.Layout, Zone: i.Zone,
			Clock: cmp.Or(i.Clock, results.ClockWall), Of: cmp.Or(i.Of, results.OfEnd),
		},
	}
	if i.Fraction != nil {
		out.Instant.Fraction = &results.RecordLatency{From: i.Fraction.From, Unit: string(i.Fraction.Unit)}
	}
	if o := r.Outcome; o != nil {
		out.Outcome = &results.RecordOutcome{From: o.From, Committed: o.Committed, Aborted: o.Aborted, Errors: o.Errors, Timeouts: o.Timeouts,
			Others: cmp.Or(o.Others, results.OthersErrors)}
	}
	return out
}
