package document_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// shaped is a trial over two regions whose worst pair is off by so many milliseconds, with a
// partition.
func shaped(name string, off float64) results.Trial {
	cut := func(pod string, late float64) results.FaultRecord {
		return results.FaultRecord{ID: "split/1/cut/" + pod, Fault: "split", Kind: "Cut", Pod: pod, PlannedMillis: 1000, StartedMillis: 1000, ConfirmedMillis: 1000 + late, Peers: 2}
	}
	heal := results.FaultRecord{
		ID: "split/1/heal/a", Fault: "split", Kind: "Heal", Pod: "a", PlannedMillis: 3000, StartedMillis: 3000.5, ConfirmedMillis: 3900, Ends: "split/1/cut/a", Packets: 42,
	}
	return results.Trial{
		Name: name, Outcome: "Succeeded", Faults: []results.FaultRecord{cut("a", 1), cut("b", 3), {Fault: "split", Kind: "Cut", Skipped: true}, heal},
		Network: &results.Network{Backend: "EDT", Regions: []results.RegionLinks{{
			From: "us", To: "eu", Pairs: 4, Out: results.LinkAsked{DelayMillis: 36.5, JitterMillis: 1}, In: results.LinkAsked{DelayMillis: 36.5, Loss: 0.001, RateBits: 100_000_000},
			ExpectedMinMillis: 73.2, ExpectedMaxMillis: 73.3, MeasuredMinMillis: 73.25, MeasuredMaxMillis: 73.3 + off, WorstPair: "r0 <-> r3", WorstErrorMillis: off, Undirected: 2,
			Canary: results.Canary{CanarySent: 80, CanaryLost: 1, CanaryMinMillis: 73.1, CanaryMedianMillis: 73.4, CanaryMaxMillis: 80},
		}}},
	}
}

func TestNetworksAndFaultsOfAnExperiment(t *testing.T) {
	var d model.Details
	d.Add(shaped("t-0", 0.2))
	d.Add(shaped("t-1", -0.4))
	invalid := shaped("t-2", 9)
	invalid.Outcome = "Invalid"
	d.Add(invalid)
	lan := results.Trial{Name: "t-3", Outcome: "Succeeded", Network: &results.Network{Regions: []results.RegionLinks{{From: "us", To: "us", Pairs: 1}}}}
	d.Add(lan)
	e := results.Experiment{Name: "wan"}
	d.Into(&e)
	wantFaults := []results.FaultLine{
		{Fault: "split", Kind: "Cut", Trials: 2, Acted: 4, Skipped: 2, LateMedianMillis: 2, LateMaxMillis: 3},
		{Fault: "split", Kind: "Heal", Trials: 2, Acted: 2, LateMedianMillis: 0.5, LateMaxMillis: 0.5, Packets: 84},
	}
	if diff := cmp.Diff(wantFaults, e.Faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if len(e.Networks) != 2 || e.Networks[0].Trials != 2 || e.Networks[0].WorstTrial != "t-1" || e.Networks[0].WorstErrorMillis != -0.4 || e.Networks[0].CanarySent != 160 {
		t.Errorf("networks are %+v", e.Networks)
	}
	forms := map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return format.Text(b, e, format.TextOptions{Width: 200}) },
		"markdown": func(b *bytes.Buffer) error { return format.Markdown(b, e) },
		"html":     func(b *bytes.Buffer) error { return format.HTML(b, e) },
	}
	for name, write := range forms {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		// HTML writes some characters otherwise.
		got := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#43;", "+").Replace(b.String())
		for _, want := range []string{
			"us - eu", "36.5±1 ms", "36.5 ms, 0.1% lost, 100 Mbit/s", "73.20 to 73.30", "73.25 to 73.50", "-0.400", "≤ 73.40", "2 of 160", "4 (2 only both ways)", "not shaped",
			"The furthest from it was r0 <-> r3 in trial t-1: -0.400 ms. Only both ways: the clocks", "Heal", "3.000",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s does not say %q:\n%s", name, want, got)
			}
		}
	}
	var b bytes.Buffer
	if err := csvfile.Network(&b, e); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "us,eu,EDT,2,4,36.5,1,0,0,36.5,0,0.001,100000000,73.2,73.3,73.25,73.5,-0.4,r0 <-> r3,t-1,160,2,") || !strings.HasSuffix(lines[1], ",80,2,") {
		t.Errorf("CSV:\n%s", b.String())
	}
}

// Once, the table had each pair of regions once for each network of an axis, but did not say which
// row was for which network.
func TestNetworksSayWhichPoints(t *testing.T) {
	axes := []results.Axis{{Name: "network", Values: []string{"lan", "regional", "continental"}}, {Name: "clients", Values: []string{"1", "2"}}}
	e := results.Experiment{Name: "wan", Axes: axes}
	var d model.Details
	for i := range 6 {
		place := i / 2 // lan and regional ask the same here
		e.Points = append(e.Points, results.PointResult{Index: int32(i), Coordinates: map[string]string{"network": axes[0].Values[place], "clients": axes[1].Values[i%2]}})
		r := results.RegionLinks{From: "us", To: "eu", Pairs: 1, Out: results.LinkAsked{DelayMillis: float64(20 * (place / 2))}}
		d.Add(results.Trial{Name: fmt.Sprint("t-", i), Outcome: "Succeeded", PointIndex: int32(i), Network: &results.Network{Backend: "EDT", Regions: []results.RegionLinks{r}}})
	}
	d.Into(&e)
	var text, csv bytes.Buffer
	if err := errors.Join(format.Text(&text, e, format.TextOptions{Width: 200}), csvfile.Network(&csv, e)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"network=lan or regional  us - eu", "network=continental      us - eu"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table of networks does not say %q:\n%s", want, text.String())
		}
	}
	if !strings.Contains(csv.String(), ",network=lan or regional\n") {
		t.Errorf("CSV:\n%s", csv.String())
	}
}

func TestAnExperimentWithoutNetworksSaysNothingOfThem(t *testing.T) {
	var b bytes.Buffer
	if err := format.Text(&b, results.Experiment{Name: "old"}, format.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); strings.Contains(s, "Network") || strings.Contains(s, "Faults") {
		t.Errorf("the report of results without networks speaks of them:\n%s", s)
	}
}

// A kill that peers notice by FIN or RST is another fault than a silent kill, and the report says
// which it was.
func TestKillsWithoutSilenceAreCalledThat(t *testing.T) {
	var d model.Details
	d.Add(results.Trial{Name: "t", Outcome: "Succeeded", Faults: []results.FaultRecord{{ID: "crash/1/kill/a", Fault: "crash", Kind: "Kill", Pod: "a", WithoutSilence: true}}})
	e := results.Experiment{Name: "restricted"}
	d.Into(&e)
	var b bytes.Buffer
	if err := format.Markdown(&b, e); err != nil {
		t.Fatal(err)
	}
	if len(e.Faults) != 1 || !e.Faults[0].WithoutSilence || !strings.Contains(b.String(), "Kill, without silence") {
		t.Errorf("faults %+v, report:\n%s", e.Faults, b.String())
	}
}

// Once, a report said that a fault for a role that its target never had was 0.000 ms late.
func TestAFaultThatNoPodTookIsNotPunctual(t *testing.T) {
	var d model.Details
	d.Add(results.Trial{Name: "t", Outcome: "Succeeded", Faults: []results.FaultRecord{{ID: "crash/1/kill/a", Fault: "crash", Kind: "Kill", Pod: "a", Skipped: true}}})
	e := results.Experiment{Name: "roles"}
	d.Into(&e)
	var b bytes.Buffer
	if err := format.Markdown(&b, e); err != nil {
		t.Fatal(err)
	}
	if want := "| crash | Kill | 0 | 0 | 1 | - | - | 0 |"; !strings.Contains(b.String(), want) {
		t.Errorf("the report has no %q:\n%s", want, b.String())
	}
}

// The mark of a reset is where it began: it is confirmed when the machine has come back, in the
// last of the trials.
func TestMarksOfResetsSayWhatTheyAre(t *testing.T) {
	timeline := results.NewTimeline(-1000, 30)
	var d model.Details
	for i, confirmed := range []float64{1700, 1900, 1800} {
		d.Add(results.Trial{Name: fmt.Sprintf("t-%d", i), Outcome: "Succeeded", MeasureNanos: 2e9, Timeline: &timeline, Faults: []results.FaultRecord{
			{ID: "power/1/reset/a", Fault: "power", Kind: "Reset", Pod: "a", PlannedMillis: 500, StartedMillis: 501, ConfirmedMillis: confirmed},
			{ID: "cut/1/cut/a", Fault: "cut", Kind: "Cut", Pod: "a", PlannedMillis: 100, StartedMillis: 100, ConfirmedMillis: 101},
		}})
	}
	e := results.Experiment{Name: "machines"}
	d.Into(&e)
	var b bytes.Buffer
	if err := format.HTML(&b, e); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"power (Reset) began at 0.501 s, confirmed by 1.900 s<", "cut began (Cut), confirmed at 0.101 s<"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, b.String())
		}
	}
}

// The faults of Chaos Mesh are named by its own words, in the table and at the marks.
func TestWhatChaosMeshDidIsNamed(t *testing.T) {
	const object = "NetworkChaos partition"
	timeline := results.NewTimeline(-1000, 30)
	var d model.Details
	d.Add(results.Trial{Name: "t", Outcome: "Succeeded", MeasureNanos: 2e9, Timeline: &timeline, Faults: []results.FaultRecord{
		{ID: "cm/1/inject/a", Fault: "cm", Kind: "Inject", Object: object, Pod: "a", PlannedMillis: 500, StartedMillis: 502, ConfirmedMillis: 1400},
		{ID: "cm/1/recover/a", Fault: "cm", Kind: "Recover", Object: object, Pod: "a", PlannedMillis: 1500, StartedMillis: 1501, ConfirmedMillis: 1900},
	}})
	e := results.Experiment{Name: "chaos"}
	d.Into(&e)
	var b bytes.Buffer
	if err := format.Markdown(&b, e); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Inject: " + object, "Recover: " + object} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report does not name %s:\n%s", want, b.String())
		}
	}
	if len(e.Series) != 1 || len(e.Series[0].Marks) != 2 || e.Series[0].Marks[0].Object != object || !e.Series[0].Marks[1].Ends {
		t.Errorf("the marks are %+v", e.Series)
	}
	b.Reset()
	if err := format.HTML(&b, e); err != nil {
		t.Fatal(err)
	}
	// The marks are not where the fault was confirmed, which is up to some seconds later. They once
	// said that they were.
	for _, want := range []string{"cm began (Inject: " + object + "), asked for at 0.502 s", "cm ended (Recover: " + object + "), asked for at 1.501 s"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not say %q:\n%s", want, b.String())
		}
	}
	if len(e.Faults) != 2 || e.Faults[0].LateMedianMillis != 900 || e.Faults[1].LateMedianMillis != 1 {
		t.Errorf("the faults are %+v; late is what begins by its confirmation, and what ends by its beginning", e.Faults)
	}
}
