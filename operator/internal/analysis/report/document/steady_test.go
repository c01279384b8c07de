package document_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/reports"
)

// timed is a trial of build with a window of 20 s after a warm-up of 2 s. So many transactions are
// committed in each bin of the window, at a latency in ms.
func timed(name string, committed func(bin int) int64, latency func(bin int) float64) results.Trial {
	t := results.NewTimeline(-2000, 230)
	for i := range t.Committed {
		n := committed(i - 20)
		t.Committed[i], t.LatencySumMicros[i] = n, int64(float64(n)*1000*latency(i-20))
	}
	return results.Trial{Name: name, Outcome: "Succeeded", Timeline: &t, MeasureNanos: (20 * time.Second).Nanoseconds()}
}

func constant[T any](x T) func(int) T { return func(int) T { return x } }

// slowFirst is x/2 for the first 4 s of the window and x after.
func slowFirst(x int64) func(int) int64 {
	return func(bin int) int64 {
		if bin < 40 {
			return x / 2
		}
		return x
	}
}

// checks of the windows of trials with these results, by name, through all that a report does.
func checked(trials ...results.Trial) results.Experiment {
	e := reports.Build()
	var d model.Details
	for _, t := range trials {
		d.Add(t)
	}
	d.Into(&e)
	return e
}

func windowOf(e results.Experiment, name string) *results.WindowCheck {
	return e.Trials[slices.IndexFunc(e.Trials, func(l results.TrialLine) bool { return l.Name == name })].Window
}

func TestWindowsAreCheckedForTransients(t *testing.T) {
	fault := func(started, confirmed float64, change func(*results.FaultRecord)) results.FaultRecord {
		f := results.FaultRecord{ID: "crash/1/kill/a", Fault: "crash", Kind: "Kill", Pod: "a", StartedMillis: started, ConfirmedMillis: confirmed}
		if change != nil {
			change(&f)
		}
		return f
	}
	with := func(f results.FaultRecord) results.Trial {
		trial := timed("failure-fp-0", constant(int64(100)), constant(5.0))
		trial.Faults = []results.FaultRecord{f}
		return trial
	}
	short := timed("failure-fp-0", constant(int64(100)), constant(5.0))
	short.MeasureNanos = (4 * time.Second).Nanoseconds()
	cut := timed("failure-fp-0", constant(int64(100)), constant(5.0))
	cut.Timeline = nil
	for name, tc := range map[string]struct {
		trial results.Trial
		want  string
	}{
		"steady":                    {timed("failure-fp-0", constant(int64(100)), constant(5.0)), "steady"},
		"slow at first":             {timed("failure-fp-0", slowFirst(100), constant(5.0)), "throughput false 4000, latency true"},
		"late at first":             {timed("failure-fp-0", constant(int64(100)), func(bin int) float64 { return 5 + 5*float64(max(0, 40-bin))/40 }), "throughput true, latency false"},
		"slow in the warm-up only":  {timed("failure-fp-0", func(bin int) int64 { return 10 + 90*int64(min(1, max(0, bin+1))) }, constant(5.0)), "steady"},
		"bins without transactions": {timed("failure-fp-0", func(bin int) int64 { return 100 * int64(bin&1) }, constant(5.0)), "throughput only"},
		"a fault in the window":     {with(fault(5000, 5001, nil)), "a fault began or ended in the window"},
		"a fault that ends in it":   {with(fault(19_000, 19_001, func(f *results.FaultRecord) { f.Kind = "Revive" })), "a fault began or ended in the window"},
		"a fault that began before": {with(fault(-1500, -1499, nil)), "steady"},
		"a fault after it":          {with(fault(20_000, 20_001, nil)), "steady"},
		"a fault that was skipped":  {with(fault(0, 0, func(f *results.FaultRecord) { f.Skipped = true })), "steady"},
		"a fault that did not come": {with(fault(0, 0, func(f *results.FaultRecord) { f.Error = "not needed any more" })), "steady"},
		"clients end 3 s early":     {timed("failure-fp-0", func(bin int) int64 { return 100 * int64(min(1, max(0, 170-bin))) }, constant(5.0)), "throughput only, less than half in its last 3 s"},
		"slower after 15 s":         {timed("failure-fp-0", func(bin int) int64 { return 100 - 30*int64(min(1, max(0, bin-149))) }, constant(5.0)), "throughput false by changes at 15 s, latency true"},
		"a short window":            {short, "there are 40 observations; it needs 50"},
		"no timeline":               {cut, "the trial has no timeline"},
	} {
		t.Run(name, func(t *testing.T) {
			w := windowOf(checked(tc.trial), "failure-fp-0")
			if got := windowText(w); got != tc.want {
				t.Errorf("the check is %q (%+v), want %q", got, w, tc.want)
			}
		})
	}
}

func windowText(w *results.WindowCheck) string {
	steady, known := w.Steady()
	switch {
	case w == nil:
		return "nil"
	case !known:
		return w.Unchecked
	case w.Latency == nil && w.Throughput.Change != nil:
		return fmt.Sprintf("throughput only, less than half in its last %g s", w.Throughput.Change.EndsMillis/1000)
	case w.Latency == nil:
		return "throughput only"
	case steady:
		return "steady"
	}
	text := fmt.Sprintf("throughput %t", w.Throughput.Steady)
	if c := w.Throughput.Change; c != nil {
		text += fmt.Sprintf(" by changes at %g s", c.AtMillis[0]/1000)
	} else if !w.Throughput.Steady {
		text += fmt.Sprintf(" %.0f", w.Throughput.Millis)
	}
	return text + fmt.Sprintf(", latency %t", w.Latency.Steady)
}

// The warning stands among the warnings and in the table of every trial. It changes no number.
func TestAWindowThatIsNotSteadyIsAWarning(t *testing.T) {
	e := checked(timed("failure-fp-0", slowFirst(100), constant(5.0)), timed("failure-fp-1", constant(int64(100)), constant(5.0)))
	if diff := cmp.Diff(reports.Build().Points, e.Points); diff != "" {
		t.Errorf("a warning changes points (-without +with):\n%s", diff)
	}
	const warning = "Not steady in the measurement window: 1 of 2 trials that could be checked: failure-fp-0 (throughput -10% by its first 4 s)."
	for name, want := range map[string][]string{
		"text":     {warning},
		"markdown": {"- " + warning, "| no: throughput -10% by its first 4 s |", "| yes |"},
		"html":     {"<li>" + warning, "<td>no: throughput -10% by its first 4 s</td>", "<td>yes</td>"},
		"csv":      {"failure-fp-0,0,5,ideal,0,0,Succeeded,", ",false,4000,-0.0", ",true,"},
	} {
		var page bytes.Buffer
		if err := forms[name](&page, e); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(page.String(), text) {
				t.Errorf("%s does not say %q:\n%s", name, text, page.String())
			}
		}
	}
	var page bytes.Buffer
	if err := format.Text(&page, checked(timed("failure-fp-0", constant(int64(100)), constant(5.0))), format.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "Not steady") {
		t.Error("a steady window is warned of")
	}
}

// forms of a report, as one line of text each where that is wrapped.
var forms = map[string]func(io.Writer, results.Experiment) error{
	"text": func(w io.Writer, e results.Experiment) error {
		return format.Text(w, e, format.TextOptions{Width: 10_000})
	},
	"markdown": format.Markdown, "html": format.HTML, "csv": csvfile.Trials,
}

// Results of a newer version hold the check, and those of an older one, without it, are read as
// before.
func TestTheCheckIsInTheResultsThatAReportWrites(t *testing.T) {
	e := checked(timed("failure-fp-0", slowFirst(100), constant(5.0)))
	b, err := results.EncodeExperiment(e)
	if err != nil {
		t.Fatal(err)
	}
	got, err := results.DecodeExperiment(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(windowOf(e, "failure-fp-0"), windowOf(got, "failure-fp-0")); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if windowOf(got, "failure-fp-1") != nil {
		t.Error("a trial whose results were not read has a check")
	}
}
