package imported

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/parsers"
	"assay.dev/assay/operator/internal/results/stats"
)

// FormatResults is Assay's own format, which report -o json and import results write.
const FormatResults = "Results"

// reader of a format.
type reader struct {
	// About says what files of the format are, for the help.
	About string
	// read returns the results of a file, and names the parts that were not read.
	read func(name string, data []byte, o Options) ([]Result, []string, error)
}

var readers = map[string]reader{
	parsers.FormatCSV:          {"a line for each run under a header, with a column for each axis", readCSV},
	parsers.FormatYCSB:         {"what YCSB prints at the end of a run, a file for each", readYCSB},
	parsers.FormatHATSTable:    {"exp#_summary.txt of HATS", tableOf(parsers.FormatHATSTable, nil)},
	parsers.FormatDMTreeTable:  {"simple_results.csv of DMTree", tableOf(parsers.FormatDMTreeTable, map[string]string{"Total": "throughput"})},
	parsers.FormatELECTSummary: {"Exp#-*.log of ELECT and DMTree", tableOf(parsers.FormatELECTSummary, map[string]string{"Throughput average": "throughput"})},
	parsers.FormatEigerGraph:   {"combined.graph of Eiger-PORT", tableOf(parsers.FormatEigerGraph, nil)},
	parsers.FormatHdrHistogram: {"logs of HdrHistograms (.hlog); --unit says their unit", readHdrHistogram},
	FormatHdrPercentiles:       {"tables of percentiles (.hgrm) of HdrHistogram's libraries; --unit says their unit", readHdrPercentiles},
	FormatHotStuffBench:        {"bench-*.txt of HotStuff, Narwhal and what came of them", readHotStuffBench},
	parsers.FormatSummary:      {"what a client prints, read by the clients.results of the System in -f", readSummary},
	FormatResults:              {"what kubectl assay report -o json and import results write", readResults},
}

// About says what files of a format are.
func About(format string) string { return readers[format].About }

// tableOf reads a summary with labels for its rows and names for its values. Rows with the same
// labels are one result: HATS has a table of throughput and one of latencies.
func tableOf(format string, names map[string]string) func(string, []byte, Options) ([]Result, []string, error) {
	return func(name string, data []byte, _ Options) ([]Result, []string, error) {
		t, err := parsers.ReadTable(format, name, bytes.NewReader(data), parsers.Spec{})
		if err != nil {
			return nil, nil, err
		}
		var all []Result
		unread := map[string]bool{}
		for _, row := range t.Rows {
			labels := maps.Clone(row.Labels)
			delete(labels, "experiment") // the heading of a table
			i := slices.IndexFunc(all, func(r Result) bool { return maps.Equal(r.Labels, labels) && disjoint(r, row, names) })
			if i < 0 {
				i = len(all)
				all = append(all, Result{From: results.Imported{Line: row.Line}, Labels: labels})
			}
			for _, v := range row.Values {
				known, err := all[i].set(nameOf(v, names), v.Unit, v.Number)
				if err != nil {
					return nil, nil, fmt.Errorf("%s:%d: %w", name, row.Line, err)
				}
				if !known {
					unread[v.Name] = true
				}
			}
		}
		skipped := skippedOf(name, t)
		if len(unread) > 0 {
			skipped = append(skipped, fmt.Sprintf("of %s: the numbers %s, which no claim can be about", name, strings.Join(slices.Sorted(maps.Keys(unread)), ", ")))
		}
		all, without, err := completeAll(name, all)
		return all, append(skipped, without...), err
	}
}

func nameOf(v parsers.Value, names map[string]string) string {
	if other, ok := names[v.Name]; ok {
		return other
	}
	return v.Name
}

// disjoint reports whether a result has none of the numbers of a row.
func disjoint(r Result, row parsers.Row, names map[string]string) bool {
	return !slices.ContainsFunc(row.Values, func(v parsers.Value) bool {
		to, what := r.place(nameOf(v, names))
		return what != unknown && *to != nil
	})
}

// completeAll completes results, and names the results of a summary without a usable number.
func completeAll(name string, all []Result) (with []Result, skipped []string, err error) {
	for _, r := range all {
		if r.Numbers == (Numbers{}) {
			skipped = append(skipped, fmt.Sprintf("%s:%d, which has no throughput and no latency", name, r.From.Line))
			continue
		}
		if err := r.complete(); err != nil {
			return nil, nil, fmt.Errorf("%s:%d: %w", name, r.From.Line, err)
		}
		with = append(with, r)
	}
	return with, skipped, nil
}

// skippedOf says what a parser left out.
func skippedOf(name string, t *parsers.Table) []string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(t.Skipped)) {
		all = append(all, fmt.Sprintf("of %s: %d %s", name, t.Skipped[what], what))
	}
	return append(all, t.Warnings...)
}

// readYCSB makes one result of a report. Operations of several kinds are counted together, and
// their means are weighted by their counts; percentiles of several kinds cannot be put together.
func readYCSB(name string, data []byte, o Options) ([]Result, []string, error) {
	t, err := parsers.ReadTable(parsers.FormatYCSB, name, bytes.NewReader(data), parsers.Spec{})
	if err != nil {
		return nil, nil, err
	}
	r := Result{Labels: map[string]string{}}
	skipped := skippedOf(name, t)
	var kinds []parsers.Row
	committed, failed, weighted := 0.0, 0.0, 0.0
	for _, row := range t.Rows {
		kind := row.Labels["operation"]
		n, counted := row.Get("Operations")
		switch {
		case kind == "OVERALL":
			for _, v := range row.Values {
				if _, err := r.set(v.Name, v.Unit, v.Number); err != nil {
					return nil, nil, fmt.Errorf("%s: %w", name, err)
				}
			}
		case !counted || kind == "CLEANUP" || strings.HasPrefix(kind, "TOTAL_"):
			skipped = append(skipped, fmt.Sprintf("of %s: [%s]", name, kind))
		case strings.HasSuffix(kind, "-FAILED"):
			failed += n.Number
		default:
			mean, _ := row.Get("AverageLatency")
			committed, weighted = committed+n.Number, weighted+n.Number*mean.Number
			kinds = append(kinds, row)
		}
	}
	if o.ByOperation {
		all, err := byOperation(name, r, kinds, t.Rows)
		return all, skipped, err
	}
	if total, said := r.total(); said && !within(total, committed) && !within(total, committed+failed) {
		// The report lacks a kind of operation, or is of a fork that counts otherwise.
		skipped = append(skipped, fmt.Sprintf("of %s: its counts of operations, %g, since throughput and run time give %.0f", name, committed+failed, total))
	} else {
		r.Committed, r.Errors = &committed, &failed
	}
	if len(kinds) == 1 {
		for _, v := range kinds[0].Values {
			if strings.Contains(v.Name, "Latency") {
				if known, err := r.set(v.Name, v.Unit, v.Number); err != nil {
					return nil, nil, fmt.Errorf("%s: %w", name, err)
				} else if !known {
					skipped = append(skipped, fmt.Sprintf("of %s: %s", name, v.Name))
				}
			}
		}
	} else if committed > 0 {
		mean := weighted / committed / 1000
		r.Mean = &mean
		skipped = append(skipped, fmt.Sprintf("of %s: the percentiles of %d kinds of operations, which cannot be put together", name, len(kinds)))
	}
	if err := r.complete(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return []Result{r}, skipped, nil
}

// byOperation makes a result of each kind of operation, with its percentiles. Its throughput is its
// count in the time of the whole run.
func byOperation(name string, run Result, kinds, rows []parsers.Row) (all []Result, err error) {
	if run.RunMillis == nil || len(kinds) == 0 {
		return nil, fmt.Errorf("%s: it has no run time, or no kind of operation, so that no rate of a kind is known", name)
	}
	for _, kind := range kinds {
		operation := kind.Labels["operation"]
		r := Result{From: results.Imported{Line: kind.Line}, Labels: map[string]string{"operation": operation}}
		millis, failed := *run.RunMillis, 0.0
		r.RunMillis = &millis
		for _, row := range rows {
			if n, counted := row.Get("Operations"); counted && row.Labels["operation"] == operation+"-FAILED" {
				failed = n.Number
			}
		}
		n, _ := kind.Get("Operations")
		r.Committed, r.Errors = &n.Number, &failed
		for _, v := range kind.Values {
			if !strings.Contains(v.Name, "Latency") {
				continue
			}
			if _, err := r.set(v.Name, v.Unit, v.Number); err != nil {
				return nil, fmt.Errorf("%s: [%s]: %w", name, operation, err)
			}
		}
		if err := r.complete(); err != nil {
			return nil, fmt.Errorf("%s: [%s]: %w", name, operation, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// readCSV reads a line for each run. A column with the name of a number holds that number. All
// other columns are labels.
func readCSV(name string, data []byte, _ Options) ([]Result, []string, error) {
	in := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	in.TrimLeadingSpace = true
	header, err := in.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: read the header: %w", name, err)
	}
	var all []Result
	invalid := 0
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := in.FieldPos(0)
		r, counts, err := csvResult(header, record)
		if err != nil {
			return nil, nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		if !counts {
			invalid++
			continue
		}
		r.From.Line = line
		all = append(all, r)
	}
	if len(all) == 0 && invalid == 0 {
		return nil, nil, fmt.Errorf("%s: there is no line under the header", name)
	}
	var skipped []string
	if invalid > 0 {
		skipped = append(skipped, fmt.Sprintf("of %s: %s whose outcome is not %s", name, count(invalid, "line"), stats.Succeeded))
	}
	return all, skipped, nil
}

// outcome is the column of trials.csv that says whether a trial counts.
const outcome = "outcome"

func csvResult(header, record []string) (r Result, counts bool, err error) {
	r.Labels = map[string]string{}
	for i, column := range header {
		cell := strings.TrimSpace(record[i])
		base, unit := splitColumn(strings.TrimSpace(column))
		if _, what := r.place(base); what == unknown {
			r.Labels[strings.TrimSpace(column)] = cell
			continue
		}
		if cell == "" { // not known
			continue
		}
		x, err := strconv.ParseFloat(cell, 64)
		if err != nil {
			return r, false, fmt.Errorf("column %s: %q is no number", column, cell)
		}
		if _, err := r.set(base, unit, x); err != nil {
			return r, false, err
		}
	}
	if o, ok := r.Labels[outcome]; ok && o != stats.Succeeded {
		return r, false, nil
	}
	if err = r.complete(); errors.Is(err, errNoNumber) {
		err = fmt.Errorf("%w in the columns %s%s", err, strings.Join(header, ", "), emptyOf(header, record))
	}
	return r, true, err
}

// emptyOf names the columns of numbers in which a line has nothing.
func emptyOf(header, record []string) string {
	var empty []string
	for i, column := range header {
		base, _ := splitColumn(strings.TrimSpace(column))
		if _, what := (&Numbers{}).place(base); what != unknown && strings.TrimSpace(record[i]) == "" {
			empty = append(empty, column)
		}
	}
	if len(empty) == 0 {
		return ""
	}
	return "; the line has nothing under " + strings.Join(empty, ", ")
}

// splitColumn takes the unit off the name of a column: p99_ms, p99(ms), p99 [ms].
func splitColumn(column string) (base, unit string) {
	for _, ends := range []string{"()", "[]"} {
		if open := strings.LastIndexByte(column, ends[0]); open > 0 && strings.HasSuffix(column, ends[1:]) {
			return strings.TrimSpace(column[:open]), column[open+1 : len(column)-1]
		}
	}
	for _, units := range []map[string]float64{perSecond, millisOf} {
		for unit := range units {
			if base, ok := strings.CutSuffix(strings.ToLower(column), "_"+unit); ok {
				return column[:len(base)], unit
			}
		}
	}
	return column, ""
}

// readSummary reads what a client of a System prints.
func readSummary(name string, data []byte, o Options) ([]Result, []string, error) {
	c, err := parsers.Parse(parsers.FormatSummary, bytes.NewReader(data), parsers.Options{Clients: 1, Summary: o.Summary})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	float := func(n int64) *float64 { x := float64(n); return &x }
	r := Result{Labels: map[string]string{}, Numbers: Numbers{
		Committed: float(c.Counters.Committed), Mean: c.RunSummary.MeanMillis, P10: c.RunSummary.P10Millis, P50: c.RunSummary.P50Millis, P90: c.RunSummary.P90Millis,
		P99: c.RunSummary.P99Millis, P999: c.RunSummary.P999Millis, Max: c.RunSummary.MaxMillis, Throughput: &c.RunSummary.Throughput,
	}}
	for counter, to := range map[string]struct {
		to *(*float64)
		n  int64
	}{
		results.CounterAborted: {&r.Aborted, c.Counters.Aborted}, results.CounterErrors: {&r.Errors, c.Counters.Errors}, results.CounterTimeouts: {&r.Timeouts, c.Counters.Timeouts},
	} {
		if !slices.Contains(c.Unreported, counter) {
			*to.to = float(to.n)
		}
	}
	if err := r.complete(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return []Result{r}, nil, nil
}

// readResults reads results of Assay's own format. Trials that do not count are named.
func readResults(name string, data []byte, _ Options) ([]Result, []string, error) {
	e, err := results.DecodeExperiment(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	var all []Result
	invalid := 0
	for _, l := range e.Trials {
		if l.Outcome != stats.Succeeded {
			invalid++
			continue
		}
		r := Result{Labels: maps.Clone(l.Coordinates)}
		if l.Imported != nil {
			r.From.Line = l.Imported.Line
		}
		known := func(to **float64, x float64, is bool) {
			if is {
				*to = &x
			}
		}
		known(&r.Throughput, l.Throughput, l.Throughput > 0)
		for _, p := range []struct {
			to **float64
			x  float64
		}{{&r.Mean, l.MeanMillis}, {&r.P10, l.P10Millis}, {&r.P50, l.P50Millis}, {&r.P90, l.P90Millis}, {&r.P99, l.P99Millis}, {&r.P999, l.P999Millis}} {
			known(p.to, p.x, p.x > 0)
		}
		known(&r.Committed, float64(l.Committed), l.Committed > 0)
		known(&r.Aborted, float64(l.Aborted), stats.Reports(l, results.CounterAborted) && stats.Ended(l) > 0)
		known(&r.Errors, float64(l.Errors), stats.Reports(l, results.CounterErrors) && stats.Ended(l) > 0)
		known(&r.Timeouts, float64(l.Timeouts), stats.Reports(l, results.CounterTimeouts) && stats.Ended(l) > 0)
		if err := r.complete(); err != nil {
			return nil, nil, fmt.Errorf("%s: trial %s: %w", name, l.Name, err)
		}
		all = append(all, r)
	}
	var skipped []string
	if invalid > 0 {
		skipped = append(skipped, fmt.Sprintf("of %s: %s that did not count there", name, count(invalid, "trial")))
	}
	return all, skipped, nil
}
