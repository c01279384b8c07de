package results_test

import (
	"testing"

	"assay.dev/assay/operator/internal/results"
)

func TestCounted(t *testing.T) {
	driver := map[string]float64{"micros": 900, "operations": 300, "none": 0}
	for name, tc := range map[string]struct {
		counter, per string
		want         float64
		reason       string
	}{
		"a count":             {"micros", "", 900, ""},
		"a count of 0":        {"none", "", 0, ""},
		"a quotient":          {"micros", "operations", 3, ""},
		"an unknown counter":  {"milis", "", 0, "no client reports the counter milis"},
		"per unknown counter": {"micros", "ops", 0, "no client reports the counter ops"},
		"per nothing":         {"micros", "none", 0, "the counter none is 0"},
	} {
		m := results.Counted("m", tc.counter, tc.per, driver)
		if m.Name != "m" || m.Reason != tc.reason || (m.Value == nil) != (tc.reason != "") || m.Value != nil && *m.Value != tc.want {
			t.Errorf("%s: %v %q, want %v %q", name, m.Value, m.Reason, tc.want, tc.reason)
		}
	}
}

func TestOwnNumbersOfCommands(t *testing.T) {
	run := func(fault string, started, confirmed float64) results.FaultRecord {
		return results.FaultRecord{Fault: fault, Kind: "Execute", StartedMillis: started, ConfirmedMillis: confirmed}
	}
	kill, failed, skipped := run("kill", 10, 30), run("failed", 10, 500), run("skipped", 10, 10)
	kill.Kind, failed.Error, skipped.Skipped = "Kill", "exit code 1", true
	own := results.OwnNumbers(&results.Trial{Faults: []results.FaultRecord{
		run("repair", 1000, 8515), run("repair", 1001, 1300), run("flush", 20, 20), kill, failed, skipped,
	}})
	for name, want := range map[string]float64{"commandMillis:repair": 7515, "commandMillis:flush": 0} {
		if got, ok := own[name]; !ok || got != want {
			t.Errorf("%s is %v, known: %t; want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"commandMillis:kill", "commandMillis:failed", "commandMillis:skipped"} {
		if n, ok := own[name]; ok {
			t.Errorf("%s is %v; want none", name, n)
		}
	}
}
