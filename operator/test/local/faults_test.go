package local

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/results"
)

// Every kind of fault that one machine supports happens in one trial, over a proven link of 20 ms.
// The test prints how late each was. The validity of the trial covers whether each was carried out,
// confirmed and ended.
func TestFaultsOnOneMachine(t *testing.T) {
	dir := t.TempDir()
	out, said, code := run(t, dir, "run", "--wait", "-f", "testdata/faults.yaml", "-f", systemWithARole(t, "../../.."))
	if code != 0 || !strings.Contains(out, "1 of 1 planned trial valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	trial := validTrial(t, filepath.Join(dir, "faults", "configmaps"))
	acted := map[string]int{}
	for i := range trial.Faults {
		f := &trial.Faults[i]
		if f.Error != "" {
			t.Errorf("%s: %s", f.ID, f.Error)
		}
		if f.Skipped {
			acted[f.Fault+" skipped"]++
			continue
		}
		acted[f.Fault+" "+f.Kind]++
		t.Logf("%-8s %-8s of %s: planned at %7.1f ms, begun %6.1f ms later, confirmed %6.1f ms later; %d packets dropped",
			f.Fault, f.Kind, f.Pod[len("faults-0123-0-"):], f.PlannedMillis, f.StartedMillis-f.PlannedMillis, f.ConfirmedMillis-f.PlannedMillis, f.Packets)
	}
	// A partition and a slower link are carried out at both ends of each link.
	for what, want := range map[string]int{"crash Kill": 1, "crash Revive": 1, "stop Pause": 1, "stop Resume": 1, "elected Kill": 1, "elected skipped": 5} {
		if acted[what] != want {
			t.Errorf("%s: %d, want %d; all: %v", what, acted[what], want, acted)
		}
	}
	for _, what := range []string{"cut Cut", "cut Heal", "slow Degrade", "slow Restore"} {
		if acted[what] == 0 {
			t.Errorf("nothing did %s; all: %v", what, acted)
		}
	}
	shaped := 0
	for _, link := range trial.Network.Links {
		if link.Out == (results.LinkAsked{}) {
			continue
		}
		if shaped++; link.MeasuredMillis < 20 || link.MeasuredMillis > 31 {
			t.Errorf("from %s to %s: a round trip of %.2f ms was measured, want 20", link.From, link.To, link.MeasuredMillis)
		}
	}
	if shaped == 0 {
		t.Error("no link was shaped")
	}
	t.Logf("%d links of 20 ms by %s, as an example from %+v", shaped, trial.Network.Backend, trial.Network.Links[len(trial.Network.Links)-1])
}

// systemWithARole is a file with the Basil of a tree. At first, replica 0 has the role.
func systemWithARole(t *testing.T, tree string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tree, "experiments", "systems", "basil.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	role := `  roles: [{name: first, log: {gained: "^basil: replica 0 ready$", lost: "^basil: not first$"}}]` + "\n"
	file := filepath.Join(t.TempDir(), "basil.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "\n  replicas:\n", "\n"+role+"  replicas:\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// validTrial reads the results of the last valid trial.
func validTrial(t *testing.T, folder string) *results.Trial {
	t.Helper()
	valid := validTrials(t, folder)
	return valid[len(valid)-1]
}

// validTrials reads the results of all valid trials. It fails the test if there are none.
func validTrials(t *testing.T, folder string) (valid []*results.Trial) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*-results.json"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kept := &corev1.ConfigMap{}
		if err := json.Unmarshal(text, kept); err != nil {
			t.Fatal(err)
		}
		if kept.BinaryData["trial.json.gz"] == nil {
			continue // the file is that of the experiment
		}
		packed, err := gzip.NewReader(bytes.NewReader(kept.BinaryData["trial.json.gz"]))
		if err != nil {
			t.Fatal(err)
		}
		trial := &results.Trial{}
		if err := json.NewDecoder(packed).Decode(trial); err != nil {
			t.Fatal(err)
		}
		if trial.Reason == "" {
			valid = append(valid, trial)
		}
	}
	if len(valid) == 0 {
		t.Fatalf("no valid trial among %v", files)
	}
	return valid
}
