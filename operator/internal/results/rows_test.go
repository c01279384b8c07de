package results

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/timeline"
)

func TestARowHasTheWindowBetweenItsMarks(t *testing.T) {
	span := RowWindow{Span: timeline.Span{From: time.Second, To: 3 * time.Second}}
	lost := RowWindow{Missing: "no mark"}
	for name, tc := range map[string]struct {
		row    Row
		window RowWindow
		want   Row
	}{
		"its own":                {Row{}, span, Row{FromMillis: 1000, ToMillis: 3000}},
		"none":                   {Row{}, lost, Row{Missing: "no mark"}},
		"none of a lost row":     {Row{Missing: "no line"}, lost, Row{Missing: "no line"}},
		"its own, of a lost row": {Row{Missing: "no line"}, span, Row{Missing: "no line", FromMillis: 1000, ToMillis: 3000}},
	} {
		tc.row.Confine(tc.window)
		if diff := cmp.Diff(tc.want, tc.row); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestConnectionsThatWereRefusedAreCounted(t *testing.T) {
	all := []Session{{Kind: "refused", Count: 4}, {Kind: "refused"}, {Kind: "session", Count: 7}, {Kind: "refused", Count: 1}}
	if n := RefusedConnections(all); n != 6 {
		t.Errorf("%d connections were refused, want 6", n)
	}
}

// A session that has no end ended with its machine.
func TestFaultsEndSessions(t *testing.T) {
	end := 5.0
	fault := func(name, kind, pod string, at float64) FaultRecord {
		return FaultRecord{Fault: name, Kind: kind, Pod: pod, ConfirmedMillis: at}
	}
	failed, skipped := fault("failed", "Kill", "p1", 11), fault("skipped", "Kill", "p1", 12)
	failed.Error, skipped.Skipped = "no process", true
	faults := []FaultRecord{
		failed, skipped, fault("late", "Kill", "p1", 40), fault("first", "Reset", "p1", 30), fault("pause", "Pause", "p1", 15), fault("other", "Kill", "p2", 14), fault("early", "Kill", "p1", 9),
		fault("again", "Kill", "p1", 35),
	}
	for name, tc := range map[string]struct {
		session Session
		fault   string
		at      float64
	}{
		"one that had begun":        {Session{Kind: "session", Machine: "m1", BeginMillis: 10}, "first", 30},
		"one that began at a fault": {Session{Kind: "session", Machine: "m1", BeginMillis: 40}, "late", 40},
		"one that began later":      {Session{Kind: "session", Machine: "m1", BeginMillis: 41}, "", 0},
		"one that ended":            {Session{Kind: "session", Machine: "m1", BeginMillis: 1, EndMillis: &end}, "", 0},
		"one elsewhere":             {Session{Kind: "session", Machine: "m3", BeginMillis: 10}, "", 0},
		"what is no session":        {Session{Kind: "refused", Machine: "m1", BeginMillis: 10}, "", 0},
	} {
		all := []Session{{Kind: "start", Pod: "p1", Machine: "m1"}, {Kind: "start", Pod: "p2", Machine: "m2"}, {Kind: "start", Machine: "m9"}, {Kind: "session", Pod: "p1", Machine: "m3", EndMillis: &end}, tc.session}
		EndSessions(all, faults)
		if s := all[4]; s.Fault != tc.fault || s.FaultMillis != tc.at {
			t.Errorf("%s was ended by %q at %g ms, want %q at %g ms", name, s.Fault, s.FaultMillis, tc.fault, tc.at)
		}
	}
}

func TestATrialWithRowsIsOneOfEachPoint(t *testing.T) {
	trial := Trial{
		Name: "t", Outcome: "Succeeded", MeasureNanos: 9e9, ClosedLoop: &ClosedLoop{}, Rows: []Row{
			{PointIndex: 2, Coordinates: map[string]string{"a": "1"}, FromMillis: 1000, ToMillis: 3500, Summary: Summary{Counters: Counters{Committed: 4}}},
			{PointIndex: 5, Missing: "no line"}, {PointIndex: 6, FromMillis: 3, ToMillis: 3},
		},
	}
	failed := trial
	failed.Outcome = "Failed"
	var got []string
	for _, of := range ByRow([]Trial{trial, {Name: "alone", Outcome: "Succeeded"}, failed}) {
		if of.Rows != nil || of.ClosedLoop != nil {
			t.Errorf("%s keeps rows or a loop: %+v", of.Name, of)
		}
		got = append(got, fmt.Sprintf("%s of %q, point %d %v: %d in %g s, %s %s %s", of.Name, of.Script, of.PointIndex, of.Coordinates, of.Summary.Committed, float64(of.MeasureNanos)/1e9, of.Outcome, of.Reason, of.Message))
	}
	if diff := cmp.Diff([]string{
		`t.2 of "t", point 2 map[a:1]: 4 in 2.5 s, Succeeded  `,
		`t.5 of "t", point 5 map[]: 0 in 9 s, Invalid RowMissing no line`,
		`t.6 of "t", point 6 map[]: 0 in 9 s, Succeeded  `,
		`alone of "", point 0 map[]: 0 in 0 s, Succeeded  `,
		`t.2 of "t", point 2 map[a:1]: 4 in 2.5 s, Failed  `,
		`t.5 of "t", point 5 map[]: 0 in 9 s, Failed  `,
		`t.6 of "t", point 6 map[]: 0 in 9 s, Failed  `,
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if kept := Measuring([]Trial{{Name: "a"}, {Name: "b", NotMeasuring: true}}); len(kept) != 1 || kept[0].Name != "a" {
		t.Errorf("of a measuring trial and one for a flame graph, %+v measure", kept)
	}
}
