package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/node/protocol"
)

// A script may leave a file for each of its points. Such a file consists mostly of lists of points
// of a distribution, which are left out.
func TestFilesOfSeveralPointsAreRead(t *testing.T) {
	dir := t.TempDir()
	points := strings.Repeat("[1, 2.5], ", 500) + "[3, 4]"
	for name, text := range map[string]string{
		"lock-1/stats.json": `{"tput": 12.50, "cdf": [` + points + `], "few": [1, 2]}`, "lock-4/stats.json": `{"tput": 1`, "queue-1/other.json": "{}",
		"big-1/stats.json": strings.Repeat("x", protocol.ScriptFileLimit+1), "no[t-1/stats.json": "{}",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "folder-1/stats.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	files, missing := filesAt(filepath.Join(dir, "{policy}-{parts}/stats.json"))
	if missing != "" {
		t.Fatal(missing)
	}
	var got []string
	for _, f := range files {
		got = append(got, strings.TrimPrefix(f.Path, dir+"/")+": "+f.Text+f.Missing)
	}
	want := []string{
		fmt.Sprintf("big-1/stats.json: it has %d bytes; at most %d are read", protocol.ScriptFileLimit+1, protocol.ScriptFileLimit), "folder-1/stats.json: it is no file",
		`lock-1/stats.json: {"cdf":[],"few":[1,2],"tput":12.50}`, `lock-4/stats.json: {"tput": 1`, "no[t-1/stats.json: {}",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the files are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if files, _ := filesAt(filepath.Join(dir, "no[t-{n}/stats.json")); len(files) != 1 {
		t.Errorf("%d files are read whose name has a bracket, want 1", len(files))
	}
	if _, missing := filesAt(filepath.Join(dir, "*/nothing")); !strings.Contains(missing, "the script left no file") {
		t.Errorf("of no file it is said %q", missing)
	}
}

// A machine reports how its image was set up, if the image says it.
func TestTheSetUpOfAnImageIsTold(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"by a recipe": {`{"recipe": "a1b2", "seconds": 301.5, "mebibytes": 260, "packages": "bash,procps", "install": "install.sh"}`,
			"set up once, in 301.5 s, by recipe a1b2: bash,procps, install.sh; 260 MiB"},
		"of others": {`{"made": 1}`, ""}, "no JSON": {"{", ""}, "nothing": {"", ""},
	} {
		root := t.TempDir()
		path := filepath.Join(root, setUpFile)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if tc.text != "" {
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := setUpOf(root); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
