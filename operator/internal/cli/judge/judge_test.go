package judge_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/cli/judge"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/verify"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/renames"
)

// A committed bundle has the spec under which its trials ran. The file of the experiment may change
// later.
const committed = "../../../../experiments/basil/evidence/reads.tar.zst"

// files returns the files of a bundle.
func files(t *testing.T, name string) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	err = archive.Read(bytes.NewReader(data), func(string) bool { return true }, func(name string, data []byte) error {
		all[name] = data
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// fileOf writes a changed file with the experiment of a bundle, whose fields get the names of
// today.
func fileOf(t *testing.T, bundle string, change func(spec map[string]any)) string {
	t.Helper()
	var object map[string]any
	today, err := renames.Experiment(files(t, bundle)["experiment.yaml"])
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(today, &object); err != nil {
		t.Fatal(err)
	}
	spec, _ := object["spec"].(map[string]any)
	change(spec)
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "reads.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// claim returns the claim of that name in a spec.
func claim(spec map[string]any, name string) map[string]any {
	claims, _ := spec["claims"].([]any)
	for _, c := range claims {
		if c, _ := c.(map[string]any); c["name"] == name {
			return c
		}
	}
	panic("there is no claim " + name)
}

func nothing(map[string]any) {}

// run judges on a later day than the run.
func run(t *testing.T, o judge.Options, day int) (stdout, stderr string, err error) {
	t.Helper()
	var out, notes bytes.Buffer
	s := &session.Session{Out: &out, Err: &notes, Now: func() time.Time { return time.Date(2027, 1, day, 0, 0, 0, 0, time.UTC) }}
	err = judge.Run(t.Context(), s, nil, o)
	return out.String(), notes.String(), err
}

// Any run refutes the first claim and supports the second. So the tests pass also with the bundle
// of another run.
var (
	refuted   = judging("A transaction takes more than an hour.", "p50_latency(readQuorum='one', clients=2) > 1h")
	supported = judging("A transaction takes less than an hour.", "p50_latency(readQuorum='one', clients=2) < 1h")
)

// judging changes the one claim that the profile judges.
func judging(statement, expr string) func(spec map[string]any) {
	return func(spec map[string]any) {
		c := claim(spec, "larger-quorums-take-longer")
		c["statement"], c["expr"] = statement, expr
		profiles, _ := spec["profiles"].([]any)
		for _, p := range profiles { // else the claim of the profile would win
			profile, _ := p.(map[string]any)
			changes, _ := profile["claims"].([]any)
			for _, c := range changes {
				if change, _ := c.(map[string]any); change["name"] == "larger-quorums-take-longer" {
					change["statement"], change["expr"] = statement, expr
				}
			}
		}
	}
}

func TestJudgesAnew(t *testing.T) {
	for _, ending := range []string{".tar.zst", ".tar.gz"} {
		t.Run(ending, func(t *testing.T) { judgesAnew(t, ending) })
	}
}

// judgesAnew writes bundles of an ending. Those by gzip hold the page, and all that others hold.
func judgesAnew(t *testing.T, ending string) {
	t.Helper()
	judged := filepath.Join(t.TempDir(), "judged"+ending)
	_, stderr, err := run(t, judge.Options{Files: []string{fileOf(t, committed, refuted)}, Bundle: committed, Output: judged}, 2)
	var verdict *session.Verdict
	if !errors.As(err, &verdict) || verdict.Code != session.ExitRefuted {
		t.Fatalf("got %v, want a claim that is refuted\n%s", err, stderr)
	}
	was, is := files(t, committed), files(t, judged)
	for name := range was {
		if (strings.HasPrefix(name, "trials/") || strings.HasPrefix(name, "systems/")) && !bytes.Equal(was[name], is[name]) {
			t.Errorf("%s is not as it was", name)
		}
	}
	got := decode(t, is["results.json"])
	claims := got.Judged.ClaimsSHA256
	before := decode(t, was["results.json"])
	var earlier results.Judged // zero, if the bundle was never judged again
	if before.Judged != nil {
		earlier = *before.Judged
	}
	want := &results.Judged{ClaimsSHA256: claims, Times: earlier.Times + 1, OtherClaims: earlier.OtherClaims + 1, At: time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC), File: "reads.yaml", By: got.Judged.By, SpecSHA256: got.Judged.SpecSHA256,
		Differences: got.Judged.Differences}
	if diff := cmp.Diff(want, got.Judged); diff != "" || len(got.Judged.SpecSHA256) != 64 {
		t.Errorf("provenance (-want +got):\n%s", diff)
	}
	if d := strings.Join(got.Judged.Differences, "\n"); !strings.Contains(d, "claims[larger-quorums-take-longer].expr was") || !strings.Contains(d, ".statement was") {
		t.Errorf("the differences are %s", d)
	}
	if asRun := decode(t, is["as-run/results.json"]); asRun.Judged != nil || asRun.SpecSHA256 != before.SpecSHA256 || got.SpecSHA256 != before.SpecSHA256 {
		t.Errorf("as-run/results.json is not that of the run: %+v, spec %s, was %s", asRun.Judged, got.SpecSHA256, before.SpecSHA256)
	}
	verified(t, judged)
	if html, slim := string(is["report.html"]), ending == ".tar.zst"; slim != (html == "") || !slim && !strings.Contains(html, "Judged anew on 2027-01-02 by the claims of reads.yaml") {
		t.Error("the page does not say that the verdicts are not those of the run, or a slim bundle has one")
	}
	if _, ok := is[trialOf(was)+"timeline.csv"]; ok != (ending == ".tar.gz") {
		t.Errorf("a timeline as a file of its own: %t", ok)
	}

	t.Run("the same once more", func(t *testing.T) {
		_, stderr, _ := run(t, judge.Options{Files: []string{fileOf(t, committed, refuted)}, Bundle: judged, Output: judged}, 3)
		if !strings.Contains(stderr, "stays as it is") || decode(t, files(t, judged)["results.json"]).Judged.At.Day() != 2 {
			t.Errorf("it was written again: %s", stderr)
		}
	})
	t.Run("back again", func(t *testing.T) {
		back := filepath.Join(t.TempDir(), "back"+ending)
		if _, _, err := run(t, judge.Options{Files: []string{fileOf(t, committed, supported)}, Bundle: judged, Output: back}, 3); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(is["as-run/results.json"], files(t, back)["as-run/results.json"]); diff != "" {
			t.Errorf("as-run/results.json changed")
		}
		if j := decode(t, files(t, back)["results.json"]).Judged; j.Times != earlier.Times+2 || j.OtherClaims != earlier.OtherClaims+2 || j.ClaimsSHA256 == claims {
			t.Errorf("judged anew twice more, each time by other claims than before: %+v", j)
		}
		verified(t, back)
	})
}

// trialOf is the folder of a trial that succeeded.
func trialOf(files map[string][]byte) string {
	for name, data := range files {
		if folder, ok := strings.CutSuffix(name, "trial.json"); ok && bytes.Contains(data, []byte(`"outcome":"Succeeded"`)) {
			return folder
		}
	}
	return ""
}

func decode(t *testing.T, data []byte) results.Experiment {
	t.Helper()
	e, err := results.DecodeExperiment(data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func verified(t *testing.T, bundle string) {
	t.Helper()
	var out bytes.Buffer
	if err := verify.Run(&session.Session{Out: &out, Err: &out}, verify.Options{Bundle: bundle}); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestPrintsAReport(t *testing.T) {
	out, _, err := run(t, judge.Options{Files: []string{fileOf(t, committed, supported)}, Bundle: committed, Output: "text"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"basil-reads: ", "Judged anew on 2027-01-02 by the claims of reads.yaml.", "larger-quorums-take-longer", "image of replica"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
	out, _, err = run(t, judge.Options{Files: []string{fileOf(t, committed, supported)}, Bundle: committed, Output: "json"}, 2)
	if err != nil || !json.Valid([]byte(out)) {
		t.Errorf("-o json: %v", err)
	}
}

func TestRefuses(t *testing.T) {
	set := func(path string, value any) func(map[string]any) {
		return func(spec map[string]any) {
			names := strings.Split(path, ".")
			for _, name := range names[:len(names)-1] {
				spec, _ = spec[name].(map[string]any)
			}
			spec[names[len(names)-1]] = value
		}
	}
	for name, tc := range map[string]struct {
		file   func(t *testing.T) string
		bundle string
		want   []string
	}{
		"other points": {want: []string{"the trials are not of experiment basil-reads as the file has it", "workload.name was"},
			file: func(t *testing.T) string {
				return fileOf(t, committed, func(spec map[string]any) {
					set("workload.name", "others")(spec)
				})
			}},
		"another profile": {want: []string{"the trials of", "are of a profile:", `has no profile "smoke"; it has none at all`},
			file: func(t *testing.T) string { return fileOf(t, committed, set("profiles", []any{})) }},
		"another experiment": {want: []string{"the trials are of experiment basil-reads"},
			file: func(*testing.T) string { return "../../../../experiments/basil/fast-path.yaml" }},
		"an unknown field": {want: []string{`spec.scheduel: there is no field "scheduel"; did you mean "schedule"?`},
			file: func(t *testing.T) string { return fileOf(t, committed, set("scheduel", "10s")) }},
		"no bundle": {want: []string{"--bundle judge_test.go: not a bundle"}, bundle: "judge_test.go",
			file: func(t *testing.T) string { return fileOf(t, committed, nothing) }},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.bundle == "" {
				tc.bundle = committed
			}
			out := filepath.Join(t.TempDir(), "x.tar.gz")
			_, _, err := run(t, judge.Options{Files: []string{tc.file(t)}, Bundle: tc.bundle, Output: out}, 2)
			if err == nil {
				t.Fatal("it was judged")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want: %s", err, want)
				}
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("a bundle was written")
			}
		})
	}
}
