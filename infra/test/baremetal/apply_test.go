package baremetal

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/infra/test/terraform"
)

// lines hands each whole line that is written to it to see.
type lines struct {
	see  func(string)
	rest []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.rest = slices.Clone(rest)
		l.see(string(line))
	}
}

// setVariables writes terraform.tfvars.json into the root.
func (s *site) setVariables(t *testing.T) {
	t.Helper()
	b, err := json.MarshalIndent(s.variables, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(s.Path, "terraform.tfvars.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// apply wants success and returns the output.
func (s *site) apply(t *testing.T) string {
	t.Helper()
	start := time.Now()
	out := s.Must(t, "apply", "-auto-approve", "-no-color")
	t.Logf("applied in %.0f s: %s", time.Since(start).Seconds(), summary(out))
	return out
}

// applyFails wants an error that contains all these texts.
func (s *site) applyFails(t *testing.T, wants ...string) string {
	t.Helper()
	start := time.Now()
	out, err := s.Run(t, "apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Fatalf("terraform apply succeeded, want an error about %q\n%s", wants, out)
	}
	// Errors come last; what scripts printed on the way is no error.
	i := strings.Index(out, "Error: ")
	if i < 0 {
		t.Fatalf("terraform apply: %v, and no error is shown\n%s", err, out)
	}
	message := terraform.Message(out[i:])
	for _, want := range wants {
		if !strings.Contains(message, want) {
			t.Fatalf("the error does not say %q:\n%s", want, out)
		}
	}
	t.Logf("failed as wanted after %.0f s", time.Since(start).Seconds())
	return out
}

// changes plans, and returns what would be done, sorted: "create ADDRESS", "delete ADDRESS",
// "replace ADDRESS", "update ADDRESS".
func (s *site) changes(t *testing.T) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan")
	s.Must(t, "plan", "-no-color", "-out="+file)
	out := s.Must(t, "show", "-json", file)
	var plan struct {
		ResourceChanges []struct {
			Address string
			Change  struct{ Actions []string }
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatalf("terraform show -json: %v\n%s", err, out)
	}
	var all []string
	for _, r := range plan.ResourceChanges {
		switch a := r.Change.Actions; {
		case slices.Equal(a, []string{"no-op"}), slices.Equal(a, []string{"read"}):
		case len(a) == 2:
			all = append(all, "replace "+r.Address)
		default:
			all = append(all, a[0]+" "+r.Address)
		}
	}
	slices.Sort(all)
	return all
}

// output decodes one output into v.
func (s *site) output(t *testing.T, name string, v any) {
	t.Helper()
	if err := json.Unmarshal(s.Outputs(t)[name], v); err != nil {
		t.Fatalf("output %s: %v", name, err)
	}
}

// summary is the line that says how many resources changed.
func summary(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, " complete! ") {
			return strings.TrimSpace(line)
		}
	}
	return "no summary"
}
