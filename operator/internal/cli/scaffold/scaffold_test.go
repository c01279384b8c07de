package scaffold_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/scaffold"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/monitoring"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
)

// The files that new writes pass the checks of admission, in both sizes. So does an Experiment for
// an existing System.
func TestSkeletonPlans(t *testing.T) {
	for name, o := range map[string]scaffold.Options{"both": {Name: "my-exp"}, "alone": {Name: "other", System: "my-exp"}, "of wrk": {Name: "my-exp", Client: "wrk"}} {
		for _, profile := range []string{"", "smoke"} {
			t.Run(name+profile, func(t *testing.T) {
				s := &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
				if err := scaffold.Run(t.Context(), s, o); err != nil {
					t.Fatal(err)
				}
				set, err := manifest.Decode(t.Context(), s.Out.(*bytes.Buffer))
				if err != nil {
					t.Fatal(err)
				}
				if err := set.Adapt("", profile, nil); err != nil {
					t.Fatal(err)
				}
				systems := set.Systems
				if o.System != "" {
					if len(systems) > 0 {
						t.Errorf("a System was written all the same: %v", systems)
					}
					whole := &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
					if err := scaffold.Run(t.Context(), whole, scaffold.Options{Name: o.System}); err != nil {
						t.Fatal(err)
					}
					both, err := manifest.Decode(t.Context(), whole.Out.(*bytes.Buffer))
					if err != nil {
						t.Fatal(err)
					}
					systems = both.Systems
				}
				p, errs := plan.Validate(set.Experiment, systems, plan.Checks{Templates: render.Check, Claim: claims.Check, Reads: claims.Reads, Measurement: monitoring.Check})
				if len(errs) > 0 || len(p.Warnings) > 0 {
					t.Fatalf("%v", errs.ToAggregate())
				}
				if want := map[string]int{"": 8, "smoke": 4}[profile]; len(p.Points) != want {
					t.Errorf("%d points, want %d", len(p.Points), want)
				}
			})
		}
	}
}

func TestRefuses(t *testing.T) {
	s := &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
	for _, o := range []scaffold.Options{{Name: "My"}, {Name: "a-name-of-twenty-five-char"}, {Name: "-a"}, {Name: "1a"}, {Name: "a."}, {Name: "a", System: "B"}} {
		if err := scaffold.Run(t.Context(), s, o); session.ExitCode(err) != session.ExitUsage {
			t.Errorf("%+v: %v", o, err)
		}
	}
	path := filepath.Join(t.TempDir(), "e.yaml")
	if err := scaffold.Run(t.Context(), s, scaffold.Options{Name: "a", OutputFile: path}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(before), "kind: Experiment") {
		t.Errorf("%v: %s", err, before)
	}
	if err := scaffold.Run(t.Context(), s, scaffold.Options{Name: "b", OutputFile: path}); err == nil || !strings.Contains(err.Error(), "e.yaml exists, and edits in it must not be lost: name another --output-file") {
		t.Errorf("a file that is there must not be overwritten: %v", err)
	}
}

// plan accepts the Experiment for an existing System without an edit. It once refused the example
// in the help of new.
func TestNewForASystemThatExists(t *testing.T) {
	systems := filepath.Join("..", "..", "..", "..", "experiments", "systems")
	dir := t.TempDir()
	file := filepath.Join(dir, "latency.yaml")
	s := &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
	if err := scaffold.Run(t.Context(), s, scaffold.Options{Name: "latency", System: "basil", Files: []string{systems}, OutputFile: file}); err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Read(t.Context(), []string{file, filepath.Join(systems, "basil.yaml")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Plan(t.Context(), ""); err != nil {
		t.Error(err)
	}
	err = scaffold.Run(t.Context(), s, scaffold.Options{Name: "latency", System: "bazil", Files: []string{systems}})
	if err == nil || !strings.Contains(err.Error(), `there is no System "bazil"; did you mean "basil"?`) {
		t.Error(err)
	}
}
