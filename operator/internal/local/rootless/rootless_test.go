package rootless

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// In the namespace, root is the user, and the users of pods come from the ranges of the file. A
// user whose ranges are too small is refused.
func TestUsersOfTheNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		file, want, wantError string
	}{
		"as useradd writes it":  {"other:100000:65536\nann:165536:65536\n", "0 1000 1 1 165536 65535", ""},
		"by number":             {"1000:165536:65536\n", "0 1000 1 1 165536 65535", ""},
		"two ranges":            {"ann:200000:1000\nann:300000:70000\n", "0 1000 1 1 200000 1000 1001 300000 64535", ""},
		"a range too many":      {"ann:200000:65536\nann:300000:65536\n", "0 1000 1 1 200000 65535", ""},
		"none":                  {"other:100000:65536\n", "", "0 of 65535"},
		"an empty file":         {"", "", "0 of 65535"},
		"too few":               {"ann:100000:1000\n", "", "1000 of 65535"},
		"lines that are no map": {"# ann:1:2\nann:x:65536\nann:1:y\nann:5\nann:7:0\nann:100000:65536", "0 1000 1 1 100000 65535", ""},
	} {
		t.Run(name, func(t *testing.T) {
			spans, err := spansOf(strings.NewReader(tc.file), "ann", "1000")
			if err != nil {
				t.Fatal(err)
			}
			args, err := mapping(1000, spans)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if diff := cmp.Diff(tc.want, strings.Join(args, " ")); diff != "" || said != tc.wantError {
				t.Errorf("error %q, want %q (-want +got):\n%s", said, tc.wantError, diff)
			}
		})
	}
}
