package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/node/protocol"
)

// marksIn reads the marks that were found.
func marksIn(t *testing.T, dir string) []protocol.MarkLine {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, filepath.Base(protocol.MarksFile)))
	if err != nil {
		t.Fatal(err)
	}
	var all []protocol.MarkLine
	for line := range bytes.Lines(text) {
		var m protocol.MarkLine
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func newTestMarker(t *testing.T, marks ...protocol.MachineMark) (*marker, string) {
	t.Helper()
	dir := t.TempDir()
	m, err := newMarker(&Config{RunDir: dir, Marks: marks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
	return m, dir
}

// A script's lines are marks when they are printed, and reach its output unchanged.
func TestMarksOfAScript(t *testing.T) {
	m, dir := newTestMarker(t, protocol.MachineMark{Name: "row", Pattern: `^== (?P<scheme>\w+) (?P<threads>\d+)`}, protocol.MachineMark{Name: "trouble", Pattern: "^oops"})
	var stdout, stderr syncBuffer
	out, drained, err := m.ofScript(&stdout, &stderr)
	if err != nil {
		t.Fatal(err)
	}
	before := monotonic()
	script := exec.CommandContext(t.Context(), "bash", "-c", `printf '== lock 4\r\nno mark == lock 5\n== qu'; sleep 0.2; printf 'eue 1\nlast'; echo oops >&2`)
	script.Stdout, script.Stderr = out.stdout, out.stderr
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	out.started()
	if err := script.Wait(); err != nil {
		t.Fatal(err)
	}
	drained()
	if want := "== lock 4\r\nno mark == lock 5\n== queue 1\nlast"; stdout.String() != want || stderr.String() != "oops\n" {
		t.Errorf("the output is %q and %q, want %q", stdout.String(), stderr.String(), want)
	}
	found := map[string]int64{}
	for _, l := range marksIn(t, dir) {
		found[l.Name+" "+l.Groups["scheme"]+l.Groups["threads"]] = l.MonotonicNanos
	}
	first, second := found["row lock4"], found["row queue1"]
	if len(found) != 3 || first < before || second-first < 200e6 || found["trouble "] == 0 {
		t.Errorf("the marks are %v from %d, want both rows, 200 ms apart, and the trouble", found, before)
	}
}

// A server's log is a file. It may exist before, appear later, or be emptied.
func TestMarksInFiles(t *testing.T) {
	dir := t.TempDir()
	old, late := filepath.Join(dir, "old.log"), filepath.Join(dir, "logs", "late.log")
	if err := os.WriteFile(old, []byte("ready 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, run := newTestMarker(t, protocol.MachineMark{Name: "old", Pattern: `ready (?P<n>\d+)`, File: old}, protocol.MachineMark{Name: "late", Pattern: `ready (?P<n>\d+)`, File: late})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for _, file := range m.files() {
		go m.follow(ctx, file)
	}
	has := func(want ...string) {
		t.Helper()
		var got string
		await(t, "the marks are "+strings.Join(want, ", "), func() bool {
			var texts []string
			for _, l := range marksIn(t, run) {
				texts = append(texts, l.Name+" "+l.Groups["n"])
			}
			got = strings.Join(texts, ", ")
			return got == strings.Join(want, ", ")
		})
	}
	sh := func(command string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "bash", "-c", "cd "+dir+" && "+command).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	sh("sleep 0.2; echo ready 1 >>old.log") // earlier lines do not count
	has("old 1")
	sh("mkdir logs && echo ready 2 >logs/late.log")
	has("old 1", "late 2")
	sh("(sleep 0.1; echo ready 3; sleep 0.1; echo ready 4) >logs/late.log") // the shell empties it first
	has("old 1", "late 2", "late 3", "late 4")
	sh("rm old.log; sleep 0.3; echo ready 5 >old.log")
	has("old 1", "late 2", "late 3", "late 4", "old 5")
}

func TestMarksAreBounded(t *testing.T) {
	m, dir := newTestMarker(t, protocol.MachineMark{Name: "row", Pattern: "."})
	lines := &splitter{marker: m}
	lines.take([]byte(strings.Repeat("x\n", 3*protocol.MaxMarks)))
	lines.take(bytes.Repeat([]byte("y"), 3*longestLine)) // no end of a line
	if n := len(marksIn(t, dir)); n != protocol.MaxMarks || len(lines.partial) > longestLine {
		t.Errorf("%d marks are kept and %d bytes held, want %d and few", n, len(lines.partial), protocol.MaxMarks)
	}
}
