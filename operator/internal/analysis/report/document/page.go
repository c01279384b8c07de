// Package document lays a report out as values: a page with its tables and notes, and plots with
// their points and captions. Package format writes the page, and package plot draws the plots.
//
// The page is written for a reader who doubts it. Verdicts come first. Every number has its unit,
// its n and how far its trials are apart (meanCell), and no more digits than that supports. The
// paper's value stands beside it. The page has the trials that are not in the averages with their
// reasons, and what was left out.
package document

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Page is what a report says, before it is laid out as text or Markdown.
type Page struct {
	Title    string
	imported bool // trials were measured elsewhere
	Facts    []string
	// First has the facts of a page's first screen, and Rest the others.
	First, Rest []string
	Verdicts    []results.ClaimResult
	// preliminary: the experiment still runs.
	Preliminary bool
	Points      Table
	Warnings    []string    // about the table of points
	Noted       []noteGroup // the same by kind
	Failures    Table
	Capacity    Table
	Knees       Table
	KneeNote    string // how to read it
	KneeRest    []string
	Network     Table
	NetNote     string
	Faults      Table
	Recovery    Table
	RecNotes    []string
	Used        Table
	Balance     Table
	Uses        Table // over time
	LatencyBy   Table
	Excluded    Table
	Checks      Table // how often each check said what
	Checked     Table // trials in which one did not hold
	Datasets    Table
	Kept        Table // files of pods' own
	FlameGraphs Table
	Sessions    Table // of scripts
	Trials      Table
	Again       again
	Measured    Table // what the measured columns are
	Lacking     Table // trials that lack one
	Declared    []DeclaredFigure
	Gap         string
	Changes     Table // by the profile
	Origin      [][2]string
	LeftOut     []string
}

// Table is rows of cells, each as long as the columns.
type Table struct {
	Columns []Column
	Rows    [][]string
}

// Column of a table. Numbers are aligned to the right.
type Column struct {
	Name    string
	Numeric bool
}

// NewPage says everything about an experiment that a report shows.
func NewPage(e results.Experiment) Page {
	p := Page{Title: titleOf(e), imported: model.Imported(e), Verdicts: e.Claims, Preliminary: e.Completed == nil, Points: pointsTable(e), Excluded: excludedTable(e), Gap: gap(e.Trials), Origin: origin(e), LeftOut: e.LeftOut}
	p.Capacity = capacityTable(e)
	p.Knees, p.KneeNote, p.KneeRest = kneeTable(e), kneeLegendOf(e), kneeNotes(e)
	p.Network, p.NetNote, p.Faults = networkTable(e), networkNote(e), faultsTable(e)
	p.Recovery, p.RecNotes = recoveryTable(e), recoveryNotes(e)
	p.Used, p.Balance = resourceTable(e), balanceTable(e)
	p.Uses, p.LatencyBy = usesTable(e), latencyByTable(e)
	p.Measured, p.Lacking = measurementTable(e), notMeasuredTable(e)
	p.Declared = DeclaredFigures(e)
	p.Trials, p.Again = trialsTable(e), runAgain(e)
	p.Changes = changesTable(e)
	p.First, p.Rest, p.Facts = factsOf(e)
	p.Failures, p.Checks, p.Checked = failuresTable(e), checksTable(e), checkedTable(e)
	p.Datasets, p.Kept, p.Sessions = datasetsTable(e), collectedTable(e), sessionsTable(e)
	p.FlameGraphs = flameGraphsTable(e)
	p.Noted = notesOf(e)
	for _, g := range p.Noted {
		p.Warnings = append(p.Warnings, g.Notes...)
	}
	return p
}

// factsOf are the facts of a report. The first screen of a page has first: what ran, its safety,
// and repetitions added after a look. The rest follows it. The other forms have all, in their
// order.
func factsOf(e results.Experiment) (first, rest, all []string) {
	ran, unsafe := whatRan(e), violations(e)
	rest = append(compared(e), progress(e))
	if len(e.Claims) > 0 {
		rest = append(rest, tally(e))
	}
	rest = slices.Concat(rest, sealedFacts(e), judgedAnew(e))
	if e.Look != nil {
		rest = append(rest, looked(*e.Look, e.Completed != nil))
	}
	var more []string
	if e.AdditionalRepetitions > 0 {
		more = append(more, continued(e))
	}
	return slices.Concat(ran, unsafe, more), rest, slices.Concat(ran, rest, more, unsafe)
}

// noteGroup are notes about the points of one kind.
type noteGroup struct {
	Title string
	Notes []string
}

// notesOf are what the numbers of points cannot show, by kind.
func notesOf(e results.Experiment) []noteGroup {
	all := []noteGroup{
		{"Few trials", warnings(e)}, {"Trials that are all alike", equalTrials(e)}, {"Trials in groups", trialsApart(e)},
		{"Failures", failureNotes(e)}, {"Windows that are not steady", windowWarnings(e)}, {"Saturated clients", saturatedClients(e)},
		{"Sets of nodes", setNotes(e)}, {"Drift", drifts(e)}, {"Numbers of the source", paperNotes(e)},
	}
	return slices.DeleteFunc(all, func(g noteGroup) bool { return len(g.Notes) == 0 })
}

// progress says how far the experiment is. All its trials share one allocation of machines, so that
// no interval of it says what other machines would do (kubectl assay pool combines several).
func progress(e results.Experiment) string {
	if model.Imported(e) {
		return importedProgress(e)
	}
	valid, invalid, failed := 0, 0, 0
	for _, p := range e.Points {
		valid, invalid, failed = valid+p.Valid, invalid+p.Invalid, failed+p.Failed
	}
	state := "Not complete"
	if e.Completed != nil {
		state = "Complete"
	}
	text := fmt.Sprintf("%s: %d of %s valid, over %s", state, valid, model.Count(e.Planned, "planned trial"), model.Count(len(e.Points), "point"))
	if sets := setsOf(e); len(sets) > 0 {
		text += ", " + sets
	} else if valid > 0 {
		text += ", on one allocation of machines"
	}
	if invalid+failed > 0 {
		text += fmt.Sprintf("; %d invalid and %d failed trials are excluded", invalid, failed)
	}
	if e.Completed == nil {
		text += "; as of " + e.Written.Format(time.RFC3339)
	}
	text += "."
	if e.Stopped != "" {
		text += " The budget ended it before all trials: " + e.Stopped
	}
	return text
}

// continued explains what repetitions that were added after a look mean for the verdicts.
func continued(e results.Experiment) string {
	return fmt.Sprintf("%s of each point were added when the experiment was complete (kubectl assay run --continue). If they were added because of what the results showed, the verdicts' 5%% is more: "+
		"who continues once where nothing is decided finds a difference between identical variants in up to 9%% of experiments.", model.Count(e.AdditionalRepetitions, "repetition"))
}

// tally counts the verdicts.
func tally(e results.Experiment) string {
	counts := map[string]int{}
	for _, c := range e.Claims {
		counts[c.Verdict]++
	}
	var parts []string
	for _, v := range strip.Words {
		if n := counts[string(v)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	words := model.Count(len(e.Claims), "claim")
	if e.Completed == nil {
		words += ", preliminary"
	}
	return fmt.Sprintf("%s: %s.", words, strings.Join(parts, ", "))
}

// shownMetric is a metric in the table of points.
type shownMetric struct {
	metric, name string
	scale        float64
	always       bool // also where the paper reports nothing of it
}

var shownMetrics = []shownMetric{
	{stats.Throughput, "throughput tx/s", 1, true},
	{stats.PerCorrectClientThroughput, "tx/s per correct client", 1, false},
	{stats.MeanLatency, "mean latency ms", 1, true},
	{stats.P50Latency, "p50 ms", 1, false},
	{stats.P90Latency, "p90 ms", 1, false},
	{stats.P95Latency, "p95 ms", 1, false},
	{stats.P99Latency, "p99 ms", 1, true},
	{stats.P999Latency, "p99.9 ms", 1, false},
	{stats.AbortRate, "aborts %", 100, true},
}

// pointsTable has a row for each point: its coordinates, n, and every metric beside the paper's
// value where some point has one.
func pointsTable(e results.Experiment) Table {
	var t Table
	for _, a := range e.Axes {
		t.Columns = append(t.Columns, Column{Name: a.Name, Numeric: !slices.ContainsFunc(a.Values, notANumber)})
	}
	t.Columns = append(t.Columns, Column{"n", true})
	var metrics []shownMetric
	papers := map[string]bool{}
	for _, m := range shownMetrics {
		papers[m.metric] = slices.ContainsFunc(e.Points, func(p results.PointResult) bool {
			_, ok := model.PaperValue(e, m.metric, p.Coordinates)
			return ok
		})
		if !m.always && !papers[m.metric] {
			continue
		}
		metrics = append(metrics, m)
		t.Columns = append(t.Columns, Column{m.name, true})
		if papers[m.metric] {
			t.Columns = append(t.Columns, Column{"paper", true}, Column{"ratio", true})
		}
	}
	t.Columns = append(t.Columns, Column{"failed %", true})
	for _, m := range e.Measurements {
		t.Columns = append(t.Columns, Column{measurementTitle(m), true})
		papers[m.Name] = slices.ContainsFunc(e.Points, func(p results.PointResult) bool {
			_, ok := model.PaperValue(e, m.Name, p.Coordinates)
			return ok
		})
		if papers[m.Name] {
			t.Columns = append(t.Columns, Column{"paper", true}, Column{"ratio", true})
		}
	}
	for _, p := range e.Points {
		var row []string
		for _, a := range e.Axes {
			row = append(row, p.Coordinates[a.Name])
		}
		row = append(row, triedCell(p))
		for _, m := range metrics {
			row = append(row, atLeast(meanCell(p.Metrics[m.metric], m.scale), m.metric, e, p))
			if papers[m.metric] {
				row = append(row, paperCells(e, m.metric, p)...)
			}
		}
		row = append(row, failedCell(e, p))
		for _, m := range e.Measurements {
			row = append(row, measurementCell(p, m.Name))
			if papers[m.Name] {
				row = append(row, paperCells(e, m.Name, p)...)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func notANumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err != nil
}

// meanCell writes the result of trials, as the artifacts of ELECT and DMTree do. One trial has its
// value, two to four the mean with the minimum and the maximum. Five and more have the mean with
// the half-width of its interval. The decimals are those that the half-width, or half of the span,
// supports.
func meanCell(a results.Aggregate, scale float64) string {
	if a.N == 0 {
		return "-"
	}
	low, high := spread(a)
	mean, half := a.Mean*scale, (high-low)/2*scale
	decimals := stats.Decimals(mean, half)
	switch {
	case a.N == 1 || mean == 0 && half == 0: // all trials have 0: "0 (0 to 0)" says no more
		return stats.Fixed(mean, decimals)
	case stats.Few(a.N):
		return fmt.Sprintf("%s (%s to %s)", stats.Fixed(mean, decimals), stats.Fixed(low*scale, decimals), stats.Fixed(high*scale, decimals))
	}
	return stats.Fixed(mean, decimals) + " ± " + stats.Fixed(half, decimals)
}

// spread is what stands beside a mean in tables: the minimum and the maximum of two to four trials,
// the 95% interval of more. Both are the mean for one.
func spread(a results.Aggregate) (low, high float64) {
	if stats.Few(a.N) {
		return a.Min, a.Max
	}
	return a.Low, a.High
}

// paperCell writes the paper's value, by PaperText.
func paperCell(y float64, has bool) string {
	if !has {
		return "-"
	}
	return PaperText(y)
}

// PaperText writes a number of the paper in tables and plots. It keeps the rule of all numbers
// without an interval (stats.Rounded), and leaves out zeros at the end, which the paper may not
// have printed.
func PaperText(y float64) string {
	text := stats.Rounded(y, 0)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func ratioCell(measured results.Aggregate, paper float64, has bool) string {
	if !has || measured.N == 0 || paper == 0 {
		return "-"
	}
	return Tick3(measured.Mean / paper)
}

// warnings say what the numbers of points cannot show, once for each n.
func warnings(e results.Experiment) []string {
	points := map[int]int{}
	for _, p := range e.Points {
		points[p.Valid]++
	}
	var ws []string
	for _, n := range slices.Sorted(maps.Keys(points)) {
		if len(e.Capacities) > 0 {
			break // a search gives a load as many trials as it asks of it
		}
		if w := stats.Warning(n); w != "" {
			ws = append(ws, fmt.Sprintf("n=%d at %s: %s.", n, model.Count(points[n], "point"), strings.TrimPrefix(w, fmt.Sprintf("%d trials: ", n))))
		}
	}
	return ws
}

// trialsApart names the points whose trials lie in groups, with their trials.
func trialsApart(e results.Experiment) []string {
	var ws []string
	for _, m := range shownMetrics {
		if !m.always || m.metric == stats.AbortRate {
			continue
		}
		samples := make([][]float64, len(e.Points))
		for i, p := range e.Points {
			samples[i] = model.SamplesOf(e, p, m.metric)
		}
		for _, i := range stats.Groups(samples) {
			var trials []string
			for _, x := range slices.Sorted(slices.Values(samples[i])) {
				trials = append(trials, Tick3(x))
			}
			ws = append(ws, fmt.Sprintf("%s at %s: %s. They are %s.", m.name, cmp.Or(model.At(e.Axes, e.Points[i].Coordinates), "the only point"), stats.ApartTrials.Text(), strings.Join(trials, ", ")))
		}
	}
	return ws
}

// equalTrials names the metrics of points whose trials all gave the same value, which intervals and
// tests treat as certain. It is common that no attempt aborted, and needs no warning.
func equalTrials(e results.Experiment) []string {
	var notes sharedNotes
	for _, p := range e.Points {
		for _, m := range shownMetrics {
			s, ok := model.SummaryOf(e, p, m.metric)
			if ok && m.always && m.metric != stats.AbortRate && slices.Contains(s.Cautions, stats.NoVariation) {
				notes.add(cmp.Or(model.At(e.Axes, p.Coordinates), "the only point"), m.name)
			}
		}
	}
	var ws []string
	for _, metric := range notes.texts {
		ws = append(ws, fmt.Sprintf("%s at %s: %s.", metric, strings.Join(notes.series[metric], "; "), stats.NoVariation.Text()))
	}
	return ws
}

// excludedTable lists the trials that are excluded, with the reason.
func excludedTable(e results.Experiment) Table {
	t := Table{Columns: []Column{{"trial", false}, {"point", false}, {"repetition", true}, {"attempt", true}, {"outcome", false}, {"reason", false}, {"message", false}}}
	for _, l := range e.Trials {
		if l.Outcome == stats.Succeeded {
			continue
		}
		t.Rows = append(t.Rows, []string{l.Name, model.At(e.Axes, l.Coordinates), strconv.Itoa(int(l.Repetition)), strconv.Itoa(int(l.Attempt)), l.Outcome, l.Reason, l.Message})
	}
	return t
}

// gap says how much time passes between trials because of Assay itself.
func gap(lines []results.TrialLine) string {
	var gaps []float64
	for i, l := range lines {
		if i > 0 && l.Script != "" && l.Script == lines[i-1].Script {
			continue // another row of the same run
		}
		if l.GapSeconds > 0 {
			gaps = append(gaps, l.GapSeconds)
		}
	}
	if len(gaps) == 0 {
		return ""
	}
	slices.SortFunc(gaps, cmp.Compare)
	median := gaps[len(gaps)/2]
	if len(gaps)%2 == 0 {
		median = (gaps[len(gaps)/2-1] + gaps[len(gaps)/2]) / 2
	}
	return fmt.Sprintf("Between trials: median %.1f s, max %.1f s, n=%d (from the end of one trial's drain to the next one's warm-up).", median, gaps[len(gaps)-1], len(gaps))
}

// origin is where the numbers come from.
func origin(e results.Experiment) [][2]string {
	rows := [][2]string{{"experiment", strings.TrimSuffix(e.Name+", UID "+e.UID, ", UID ")}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, [2]string{name, value})
		}
	}
	add("paper", e.Source["url"])
	add("profile", cmp.Or(e.Profile, "none: the full evaluation"))
	if e.Seed != 0 {
		add("seed", strconv.FormatInt(e.Seed, 10))
	}
	if e.SpecSHA256 != "" {
		add("spec", "sha256:"+e.SpecSHA256)
	}
	add("imported", importedFrom(e))
	if !e.Started.IsZero() {
		add("started", e.Started.Format(time.RFC3339))
	}
	if e.Completed != nil {
		add("completed", e.Completed.Format(time.RFC3339))
	}
	if !e.Written.IsZero() {
		add("results of", e.Written.Format(time.RFC3339))
	}
	rows = append(rows, sealRows(e)...)
	rows = append(rows, judgedRows(e)...)
	if v := e.Provenance; v != nil {
		for _, part := range slices.Sorted(maps.Keys(v.Images)) {
			add("image of "+part, strings.Join(v.Images[part], ", "))
		}
		for _, row := range model.SoftwareRows(*v) {
			add(row[0], row[1])
		}
		add("kernel", strings.Join(v.Kernels, ", "))
		add("CPU", strings.Join(v.CPUs, ", "))
		add("nodes", strings.Join(v.Nodes, ", "))
		add("machines", strings.Join(v.Machines, "; "))
	}
	return rows
}
