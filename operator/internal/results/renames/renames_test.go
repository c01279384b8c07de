package renames_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results/renames"
)

func TestFormerNames(t *testing.T) {
	for name, tc := range map[string]struct {
		read      func([]byte) ([]byte, error)
		was, want string
	}{
		"a spec": {renames.Spec,
			`{"disturbances":{"quietWait":"5s","quietLoad":"10%"},"profiles":[{"name":"p"},{"disturbances":{"quietWait":"0s"}}]}`,
			`{"disturbances":{"idleWait":"5s","idleThreshold":"10%"},"profiles":[{"name":"p"},{"disturbances":{"idleWait":"0s"}}]}`},
		"a spec of today":                    {renames.Spec, `{"disturbances": {"idleWait": "5s"}}`, `{"disturbances": {"idleWait": "5s"}}`},
		"both names, the present one counts": {renames.Spec, `{"disturbances":{"quietWait":"5s","idleWait":"6s"}}`, `{"disturbances":{"idleWait":"6s"}}`},
		"the name in another place":          {renames.Spec, `{"parameters":{"quietWait":"1"}}`, `{"parameters":{"quietWait":"1"}}`},
		"no spec":                            {renames.Spec, ``, ``},
		"an Experiment":                      {renames.Experiment, "kind: Experiment\nspec:\n  disturbances:\n    quietWait: 5s\n", "kind: Experiment\nspec:\n  disturbances:\n    idleWait: 5s\n"},
		"a trial": {renames.TrialResults,
			`{"quiet":{"found":false,"waitedSeconds":5.10,"message":"it took 60%; disturbances.quietLoad is 25%"},"phaseSeconds":{"deployed":1,"proven":2},"seed":18446744073709551615,` +
				`"summary":{"wholeRun":true},"pods":[{"cameMillis":1.5,"predecessors":[{"cameMillis":0.5,"goneMillis":1,"heard":true}]}],"logs":{"p/c":"quiet"}}`,
			`{"idleGate":{"idle":false,"waitedSeconds":5.10,"message":"it took 60%; disturbances.idleThreshold is 25%"},"phaseSeconds":{"deployed":1,"networkVerified":2},"seed":18446744073709551615,` +
				`"summary":{"runSummary":true},"pods":[{"createdMillis":1.5,"predecessors":[{"createdMillis":0.5,"deletedMillis":1,"reported":true}]}],"logs":{"p/c":"quiet"}}`},
		"an experiment, whose sealed text stays": {renames.ExperimentResults,
			`{"trials":[{"wholeRun":true}],"spec":{"disturbances":{"quietWait":"5s"}},"judged":{"differences":["disturbances.quietWait was 5s"]},` +
				`"seal":{"sealed":{"disturbances":{"quietWait":"5s"}},"changes":[{"field":"disturbances.quietWait"}]}}`,
			`{"trials":[{"runSummary":true}],"spec":{"disturbances":{"idleWait":"5s"}},"judged":{"differences":["disturbances.idleWait was 5s"]},` +
				`"seal":{"sealed":{"disturbances":{"quietWait":"5s"}},"changes":[{"field":"disturbances.idleWait"}]}}`},
		"members of other types": {renames.TrialResults, `{"quiet":7,"phaseSeconds":[],"pods":{"heard":1},"summary":"wholeRun"}`, `{"idleGate":7,"phaseSeconds":[],"pods":{"heard":1},"summary":"wholeRun"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.read([]byte(tc.was))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(canonical(t, tc.want), canonical(t, string(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNoJSONIsRefused(t *testing.T) {
	for name, read := range map[string]func([]byte) ([]byte, error){"spec": renames.Spec, "trial": renames.TrialResults, "Experiment": renames.Experiment} {
		if got, err := read([]byte("{quietWait: [\n quiet")); err == nil {
			t.Errorf("%s: read as %s", name, got)
		}
	}
}

// A text that is sealed today differs from its text in former names only if one of its names has
// changed.
func TestSealedBefore(t *testing.T) {
	got, err := renames.SealedBefore([]byte(`{"claims":[{"name":"a","expr":"x < 1"}],"disturbances":{"idleWait":"5s","retryFor":"1m"}}`))
	if want := `{"claims":[{"expr":"x < 1","name":"a"}],"disturbances":{"quietWait":"5s","retryFor":"1m"}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if got, err := renames.SealedBefore([]byte(`{"disturbances":{"retryFor":"1m"}}`)); err != nil || got != nil {
		t.Errorf("%s, %v; want nothing", got, err)
	}
}

// canonical decodes JSON; other text stays as it is.
func canonical(t *testing.T, text string) any {
	t.Helper()
	if !strings.HasPrefix(text, "{") {
		return text
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
