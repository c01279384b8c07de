package validity

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// windowed is a script whose rows are about parts of its run.
func windowed(to string) *v1alpha1.Script {
	return &v1alpha1.Script{Results: v1alpha1.ScriptResults{
		Axes: []v1alpha1.RowAxis{{Name: "scheme"}, {Name: "threads"}}, Window: &v1alpha1.RowWindow{From: "begin", To: to},
	}}
}

func TestWindowsOfRows(t *testing.T) {
	mark := func(name, scheme, threads string, at time.Duration) timeline.Mark {
		m := timeline.Mark{Name: name, Groups: map[string]string{}, At: at}
		if scheme != "" {
			m.Groups["scheme"], m.Groups["threads"] = scheme, threads
		}
		return m
	}
	row := v1alpha1.Point{Coordinates: map[string]string{"scheme": "lock", "threads": "4"}}
	for name, tc := range map[string]struct {
		to      string
		marks   []timeline.Mark
		want    timeline.Span
		missing string
	}{
		"to its own end": {"end", []timeline.Mark{
			mark("begin", "lock", "1", 1), mark("end", "", "", 2), mark("begin", "lock", "4", 3), mark("end", "", "", 5), mark("end", "", "", 9),
		}, timeline.Span{From: 3, To: 5}, ""},
		"an end that names its row": {"end", []timeline.Mark{
			mark("begin", "lock", "4", 3), mark("end", "lock", "1", 5), mark("end", "lock", "4.0", 9),
		}, timeline.Span{From: 3, To: 9}, ""},
		"to the next beginning":       {"", []timeline.Mark{mark("begin", "lock", "4", 3), mark("other", "", "", 4), mark("begin", "queue", "4", 8)}, timeline.Span{From: 3, To: 8}, ""},
		"the last row":                {"", []timeline.Mark{mark("begin", "lock", "4", 3)}, timeline.Span{From: 3, To: 50}, ""},
		"a beginning that never came": {"", []timeline.Mark{mark("begin", "lock", "1", 3)}, timeline.Span{}, "no line was the mark begin scheme=lock threads=4"},
		"two beginnings":              {"", []timeline.Mark{mark("begin", "lock", "4", 3), mark("begin", "lock", "4", 5)}, timeline.Span{}, "2 lines were the mark begin scheme=lock threads=4"},
		"an end that never came":      {"end", []timeline.Mark{mark("end", "", "", 2), mark("begin", "lock", "4", 3)}, timeline.Span{}, "was the mark end, with which the window of the row ends"},
	} {
		t.Run(name, func(t *testing.T) {
			got := RowWindows(windowed(tc.to), []v1alpha1.Point{row}, tc.marks, 50)[0]
			if got.Span != tc.want || tc.missing == "" != (got.Missing == "") || !strings.Contains(got.Missing, tc.missing) {
				t.Errorf("the window is %+v, want %+v %q", got, tc.want, tc.missing)
			}
		})
	}
}

// A disturbance between two rows is excluded from all numbers.
func TestRowsAreJudgedByTheirWindows(t *testing.T) {
	used := func(stolen float64, seconds float64) results.Resources {
		late := 0.0
		return results.Resources{Seconds: seconds, Node: results.NodeUse{CPUs: 2, Seconds: seconds, StealShare: stolen},
			Containers: []results.ContainerUse{{Name: "machine", Seconds: seconds, LateShare: &late}}}
	}
	trial := &v1alpha1.Trial{Spec: v1alpha1.TrialSpec{
		Schedule: v1alpha1.Schedule{Measure: "20s"}, Tolerances: v1alpha1.Tolerances{Steal: "10%", Throttling: "10%", Contention: "10%"}, Script: &v1alpha1.TrialScript{},
	}}
	windows := []results.RowWindow{{Span: timeline.Span{From: 2e9, To: 6e9}}, {Span: timeline.Span{From: 9e9, To: 12e9}}}
	whole := used(0.5, 20)
	for name, tc := range map[string]struct {
		windows  []results.RowWindow
		measured []results.Resources
		missing  string
		want     string
	}{
		"stolen from both, and the run judged as a whole": {nil, nil, "", "gave others 50.00%"},
		"stolen between the rows alone":                   {windows, []results.Resources{used(0, 4), used(0.01, 3)}, "", ""},
		"stolen from the second row":                      {windows, []results.Resources{used(0, 4), used(0.4, 3)}, "", "In the window of row scheme=queue, from 9.0 to 12.0 s: The hypervisor"},
		"stolen from a row that is missing":               {windows, []results.Resources{used(0, 4), used(0.4, 3)}, "no such row", ""},
		"not read in the second row":                      {windows, []results.Resources{used(0, 4), used(0, 1)}, "", "Of the window of 3s, readings of"},
		"not said at all":                                 {windows, nil, "", "did not say what its pod used"},
	} {
		t.Run(name, func(t *testing.T) {
			pods := []results.Pod{{Name: "m0", Resources: &whole}}
			o := &Observation{
				Trial: trial, RowWindows: tc.windows, Pods: []Pod{{Name: "m0", Report: &protocol.Report{Measured: tc.measured}}},
				Result: &results.Trial{Pods: pods, Rows: []results.Row{
					{Coordinates: map[string]string{"scheme": "lock"}}, {Coordinates: map[string]string{"scheme": "queue"}, Missing: tc.missing},
				}},
			}
			f := resources(o)
			if tc.want == "" != f.OK() || !strings.Contains(f.Message, tc.want) {
				t.Errorf("judged %q, want %q", f.Message, tc.want)
			}
		})
	}
}

func TestAMarkThatNeverComes(t *testing.T) {
	later := []timeline.Action{{Fault: "crash", After: &timeline.After{Mark: "row", Groups: map[string]string{"scheme": "queue"}, Occurrence: 1}}}
	for name, tc := range map[string]struct {
		marks []timeline.Mark
		want  string
	}{
		"no line at all": {nil, "Fault crash counts from the mark row scheme=queue, and no line was that mark. No line matched its pattern."},
		"other rows": {[]timeline.Mark{{Name: "row", Groups: map[string]string{"scheme": "lock"}}},
			"These marks of that name came: row scheme=lock."},
	} {
		t.Run(name, func(t *testing.T) {
			f := marksCame(&Observation{Later: later, Marks: tc.marks})
			if f.Reason != v1alpha1.ReasonMarkMissing || !strings.Contains(f.Message, tc.want) {
				t.Errorf("judged %+v, want %q", f, tc.want)
			}
		})
	}
	failed := &protocol.Report{Over: true, Client: &protocol.ClientRun{Ended: 4 * time.Minute, ExitCode: 124},
		Containers: []protocol.ContainerState{{Name: "machine", Tail: "assay: the script did not end within 4m0s: `ssh m1` has run for 3m\n"}}}
	f := marksCame(&Observation{Later: later, Pods: []Pod{{Name: "m0", Client: &placement.Client{}, Report: failed}, {Name: "m1", Report: &protocol.Report{Over: true}}}})
	if want := "No line matched its pattern. The script on m0 ended 240.000 s after its start with exit code 124. machine printed last: assay: the script did not end within 4m0s: `ssh m1` has run for 3m"; !strings.HasSuffix(f.Message, want) {
		t.Errorf("of a script that was killed: %q, want %q", f.Message, want)
	}
	if f := marksCame(&Observation{}); !f.OK() {
		t.Errorf("without such faults: %+v", f)
	}
}

// Some clients report numbers of their whole run. Their trials are judged by the use in the whole
// run, not in a window of it.
func TestWholeRunsAreJudged(t *testing.T) {
	used := func(stolen, seconds float64) *results.Resources {
		late := 0.0
		return &results.Resources{Seconds: seconds, Node: results.NodeUse{CPUs: 2, Seconds: seconds, StealShare: stolen},
			Containers: []results.ContainerUse{{Name: "client", Seconds: seconds, LateShare: &late}}}
	}
	trial := &v1alpha1.Trial{Spec: v1alpha1.TrialSpec{
		Schedule: v1alpha1.Schedule{WarmUp: "5s", Measure: "10s"}, Tolerances: v1alpha1.Tolerances{Steal: "10%", Throttling: "10%", Contention: "10%"},
	}}
	for name, tc := range map[string]struct {
		summary bool
		used    *results.Resources
		want    string
	}{
		"stolen from the run":         {true, used(0.5, 30), "In the clients' whole run, from -5.0 to 25.0 s: The hypervisor"},
		"nothing stolen":              {true, used(0, 30), ""},
		"the window read alone":       {true, used(0, 10), "In the clients' whole run, from -5.0 to 25.0 s: Of the window of 30s"},
		"clients that report windows": {false, used(0, 10), ""},
		"stolen from their window":    {false, used(0.5, 10), "The hypervisor"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Observation{
				Trial: trial, Pods: []Pod{{Name: "c0", Client: &placement.Client{}, Report: &protocol.Report{Client: &protocol.ClientRun{Released: -8e9, Ended: 25e9}}}},
				Result: &results.Trial{Pods: []results.Pod{{Name: "c0", Resources: tc.used}}, Summary: results.Summary{RunSummary: tc.summary}},
			}
			f := resources(o)
			if tc.want == "" != f.OK() || !strings.HasPrefix(f.Message, tc.want) {
				t.Errorf("judged %q, want %q", f.Message, tc.want)
			}
		})
	}
}
