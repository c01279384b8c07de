package document_test

import (
	"bytes"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// flapping returns the own results of a trial with so many occurrences of a fault, and its line.
// The controller makes the line from the trial's status: it has the first 16 occurrences, in short.
func flapping(times int) (results.Trial, results.TrialLine) {
	trial := results.Trial{Name: "e-0", Outcome: "Succeeded"}
	line := results.TrialLine{Name: "e-0", Outcome: "Succeeded"}
	for i := range times {
		r := results.Recovery{
			Fault: "flap", Time: i + 1, Kind: "Cut", ConfirmedMillis: 1000*float64(i) + 0.25, ThroughputBefore: 512.5, Dipped: true, DetectMillis: 99.75, Depth: 0.5, Recovered: true, RecoverMillis: 300,
			LostTransactions: 40, Cautions: []string{"NoisyBaseline"},
		}
		if i == times-1 {
			r = results.Recovery{Fault: "flap", Time: i + 1, Kind: "Cut", ConfirmedMillis: 1000*float64(i) + 0.25, Error: "nothing was committed before it"}
		}
		trial.Recovery = append(trial.Recovery, r)
		if i < 16 {
			r.Kind, r.ConfirmedMillis, r.ThroughputBefore, r.Cautions = "", 0, 0, nil
			if r.Error != "" {
				r.Error = "there was nothing to measure; see the trial's own results"
			}
			line.Recovery = append(line.Recovery, r)
		}
	}
	return trial, line
}

// A status keeps only the parts of recoveries that claims need. So reports once showed at most 16
// occurrences of a fault, without kind, instant, earlier throughput and cautions.
func TestRecoveriesAreThoseOfTheTrialsOwnResults(t *testing.T) {
	trial, line := flapping(20)
	encoded, err := results.EncodeTrial(trial)
	if err != nil {
		t.Fatal(err)
	}
	if trial, err = results.DecodeTrial(encoded); err != nil {
		t.Fatal(err)
	}
	unread := line
	unread.Name = "e-1"
	e := results.Experiment{Name: "e", Trials: []results.TrialLine{line, unread}}
	var d model.Details
	d.Add(trial)
	d.Into(&e)
	var csv, page bytes.Buffer
	if err := csvfile.Recovery(&csv, e); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n0,e-0,0,flap,1,Cut,0.25,512.5,true,99.75,0.5,true,300,40,NoisyBaseline,\n", "\n0,e-0,0,flap,20,Cut,19000.25,,false,,,false,,,,nothing was committed before it\n",
		"\n0,e-1,0,flap,16,,,,true,99.75,0.5,true,300,40,,\n", // of results that cannot be read what the line has
	} {
		if !strings.Contains(csv.String(), want) {
			t.Errorf("the CSV has no line %q:\n%s", want, csv.String())
		}
	}
	if n := strings.Count(csv.String(), "\n"); n != 1+20+16 {
		t.Errorf("%d lines of CSV, want a header, 20 of the trial that was read and 16 of the other one", n)
	}
	if err := format.Markdown(&page, e); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| flap | 2 | 36 (1 not measured) |", "flap: throughput dipped by as much before the fault"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, page.String())
		}
	}
}
