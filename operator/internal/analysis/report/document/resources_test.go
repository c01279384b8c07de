package document_test

import (
	"bytes"
	"encoding/xml"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/results"
)

// used is a pod that used some processors in a window of 10 s, evenly, from one second before to
// one after it.
func used(name, part string, cores, throttled float64) results.Pod {
	s := &results.ResourceSeries{IntervalMillis: 1000, FirstMillis: -1000}
	for range 12 {
		s.CPUMillicores, s.MemoryKiB = append(s.CPUMillicores, int64(1000*cores)), append(s.MemoryKiB, 1<<10)
		s.SentBytes, s.ReceivedBytes = append(s.SentBytes, 2e6), append(s.ReceivedBytes, 1e6)
	}
	return results.Pod{Name: name, Part: part, Resources: &results.Resources{
		Seconds: 10, CPUMeanCores: cores, CPUMaxCores: 2 * cores, ThrottledShare: throttled, MemoryMaxBytes: 64 << 20, ReceivedBytes: 10e6, SentBytes: 20e6,
		Node: results.NodeUse{BusyShare: 0.5, StealShare: 0.001}, Series: s,
	}}
}

// usedTrial is a trial of two replicas and a client, with a fault.
func usedTrial(name, outcome string, point int32, cores float64) results.Trial {
	line := results.NewTimeline(-1000, 120)
	for i := range line.Committed {
		line.Committed[i], line.LatencySumMicros[i] = 100, 500_000
	}
	return results.Trial{
		Name: name, Outcome: outcome, PointIndex: point, Coordinates: map[string]string{"clients": []string{"5", "50"}[point]}, MeasureNanos: 10e9, Timeline: &line,
		Faults: []results.FaultRecord{{ID: "crash/1/kill/r-1", Fault: "crash", Kind: "Kill", Pod: "r-1", PlannedMillis: 4000, ConfirmedMillis: 4001}},
		Pods:   []results.Pod{used("r-0", "replica", cores, 0), used("r-1", "replica", 2*cores, 0.004), used("c-0", "client", 0.25, 0)},
	}
}

func TestResourcesOfAnExperiment(t *testing.T) {
	var d model.Details
	d.Add(usedTrial("t-1", "Succeeded", 1, 0.2))
	d.Add(usedTrial("t-0", "Succeeded", 0, 0.1))
	d.Add(usedTrial("t-2", "Succeeded", 1, 0.4))
	d.Add(usedTrial("t-3", "Invalid", 1, 9))
	partly := usedTrial("t-4", "Succeeded", 1, 9)
	partly.Pods[0].Resources = nil // a sum that lacks a part is unknown
	partly.Pods[2] = used("c-0", "client", 0.35, 0)
	d.Add(partly)
	throttled, stolen := 0.004, 0.001
	e := results.Experiment{Name: "use", Axes: []results.Axis{{Name: "clients", Values: []string{"5", "50"}}}, Trials: []results.TrialLine{
		{Name: "t-0", Outcome: "Succeeded", Coordinates: map[string]string{"clients": "5"}, ThrottledShare: &throttled, StealShare: &stolen},
		{Name: "t-9", Number: 1, Outcome: "Invalid", Reason: "FaultLate", Coordinates: map[string]string{"clients": "5"}},
	}}
	d.Into(&e)
	line := func(point int32, clients, part string, pods, trials int, mean, total, most, throttled float64) results.ResourceLine {
		return results.ResourceLine{
			Point: point, Coordinates: map[string]string{"clients": clients}, Part: part, Pods: pods, Trials: trials, CPUMeanCores: mean, CPUTotalCores: total, CPUMaxCores: most,
			MemoryMaxBytes: 64 << 20, ReceivedPerSecond: 1e6 * float64(pods), SentPerSecond: 2e6 * float64(pods), BusyShare: 0.5, BusyWorstShare: 0.5, ThrottledShare: throttled, StealShare: 0.001,
		}
	}
	want := []results.ResourceLine{
		line(0, "5", "replica", 2, 1, 0.15, 0.3, 0.4, 0.004), line(0, "5", "client", 1, 1, 0.25, 0.25, 0.5, 0),
		line(1, "50", "replica", 2, 2, 0.45, 0.9, 1.6, 0.004), line(1, "50", "client", 1, 3, 0.85/3, 0.85/3, 0.7, 0),
	}
	for _, i := range []int{0, 2} { // r-1 uses twice what r-0 does: the mean is 1.5, the deviation 0.5
		want[i].Balance = &results.PartBalance{CPUCoV: 1.0 / 3, CPUMaxToMean: 4.0 / 3, SentMaxToMean: 1, CPUMeanCoV: 1.0 / 3, SeriesTrials: want[i].Trials}
	}
	if diff := cmp.Diff(want, e.Resources, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Fatalf("resources (-want +got):\n%s", diff)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return format.Text(b, e, format.TextOptions{Width: 200}) },
		"markdown": func(b *bytes.Buffer) error { return format.Markdown(b, e) },
		"html":     func(b *bytes.Buffer) error { return format.HTML(b, e) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Resources", "cores of a pod", "Balance", "0.333", "1.33", "CoV by bin", "0.450", "0.900", "1.600", "64.0", "4.000", "0.40", "0.10", "50.0"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s does not say %q:\n%s", name, want, b.String())
			}
		}
	}
	var b bytes.Buffer
	if err := csvfile.Resources(&b, e); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 5 || lines[1] != "0,5,replica,2,1,0.15000000000000002,0.30000000000000004,0.4,67108864,2e+06,4e+06,0.5,0.004,0.001,0.3333333333333333,1.3333333333333333,0.33333333333333337,0,0,1" || !strings.HasSuffix(lines[2], ",0.001,,,,,,") {
		t.Errorf("CSV:\n%s", b.String())
	}
}

// The pods take turns: over the window they work equally much, and in each second one of them does
// all of it. A bin outside of the window does not count, nor one that lacks a pod's number.
func TestBalanceSeesWorkThatMoves(t *testing.T) {
	trial := usedTrial("t-0", "Succeeded", 0, 0.1)
	for k := range 2 {
		r := trial.Pods[k].Resources
		r.CPUMeanCores, r.SentBytes = 0.5, int64(10e6+20e6*k)
		for i := range r.Series.CPUMillicores {
			r.Series.CPUMillicores[i] = int64(1000 * ((i + k) % 2))
		}
	}
	trial.Pods[0].Resources.Series.CPUMillicores[0], trial.Pods[0].Resources.Series.CPUMillicores[11] = 77_000, 77_000
	trial.Pods[0].Resources.Series.CPUMillicores[5] = -1
	of := func(trial results.Trial) *results.PartBalance {
		var d model.Details
		d.Add(trial)
		e := results.Experiment{Name: "use"}
		d.Into(&e)
		return e.Resources[0].Balance
	}
	want := &results.PartBalance{CPUMaxToMean: 1, SentCoV: 0.5, SentMaxToMean: 1.5, CPUMeanCoV: 1, CPUOutside: 1, SeriesTrials: 1}
	if diff := cmp.Diff(want, of(trial)); diff != "" {
		t.Errorf("balance (-want +got):\n%s", diff)
	}
	trial.Pods[1].Resources.Series = nil
	want.CPUMeanCoV, want.CPUOutside, want.SeriesTrials = 0, 0, 0
	if diff := cmp.Diff(want, of(trial)); diff != "" {
		t.Errorf("balance without a series (-want +got):\n%s", diff)
	}
	trial.Pods = trial.Pods[:1]
	if got := of(trial); got != nil {
		t.Errorf("one pod alone has a balance: %+v", got)
	}
}

// The use of resources over time stands beside throughput over time, with the same marks.
func TestUseOverTime(t *testing.T) {
	var d model.Details
	d.Add(usedTrial("t-0", "Succeeded", 0, 0.1))
	second := usedTrial("t-1", "Succeeded", 0, 0.3)
	second.Pods[0].Resources.Series.CPUMillicores[5] = -1 // not measured then: the other trial alone tells
	d.Add(second)
	e := results.Experiment{Name: "use", Axes: []results.Axis{{Name: "clients", Values: []string{"5"}}}}
	d.Into(&e)
	if len(e.Series) != 1 || len(e.Series[0].Use) != 2 {
		t.Fatalf("series are %+v", e.Series)
	}
	replicas := e.Series[0].Use[0]
	if replicas.Part != "replica" || len(replicas.Cores) != 12 || replicas.Cores[4] < 0.599 || replicas.Cores[4] > 0.601 || replicas.Cores[5] < 0.299 || replicas.Cores[5] > 0.301 || replicas.SentPerSecond[4] != 4e6 {
		t.Errorf("the replicas over time: %+v", replicas)
	}
	var page bytes.Buffer
	if err := format.HTML(&page, e); err != nil {
		t.Fatal(err)
	}
	svg := regexp.MustCompile(`(?s)<svg [^>]*aria-labelledby="use0.*?</svg>`).FindString(page.String())
	if err := xml.Unmarshal([]byte(svg), &struct{}{}); err != nil {
		t.Fatalf("the plot: %v\n%s", err, svg)
	}
	for _, want := range []string{"all replicas", "all clients", "crash began (Kill), confirmed at 4.001 s", "processors used", "all replicas use 0.57 processors in the mean, and 0.60 at most"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the plot does not say %q:\n%s", want, svg)
		}
	}
	pictures, err := plot.Pictures(e)
	if err != nil {
		t.Fatal(err)
	}
	if names := func() (names []string) {
		for _, p := range pictures {
			names = append(names, p.Name)
		}
		return names
	}(); !strings.Contains(strings.Join(names, " "), "processors-and-network") {
		t.Errorf("as files there are %v", names)
	}
}
