package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReceiveEndsWithTheProgramsOrTheMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		sent, output string
		statuses     []int
		last         message
	}{
		"two programs": {`{"output":"a\n"}` + "\r\n" + `{"exit":0}` + "\r\n" + `{"output":"\u0016=== RUN x\n"}` + "\r\n" + `{"exit":3}` + "\r\n" + `{"over":true}`,
			"0:a\n1:\x16=== RUN x\n", []int{0, 3}, message{Over: true}},
		"machine ends":           {`{"output":"a\n"}` + "\n", "0:a\n", nil, message{}},
		"machine ends in a line": {`{"output":"a\n"}` + "\n" + `{"outp`, "0:a\n", nil, message{}},
		"cannot run":             {`{"over":true,"error":"load module x"}`, "", nil, message{Over: true, Error: "load module x"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			statuses, last := receive(strings.NewReader(tc.sent), func(program int, line string) { fmt.Fprintf(&out, "%d:%s", program, line) })
			if diff := cmp.Diff(tc.statuses, statuses); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.last, last); diff != "" {
				t.Errorf("the last message (-want +got):\n%s", diff)
			}
			if out.String() != tc.output {
				t.Errorf("output %q, want %q", out.String(), tc.output)
			}
		})
	}
}

// TestCpio lets cpio read an archive that this package wrote.
func TestCpio(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skipf("no cpio to compare with: %v", err)
	}
	var archive bytes.Buffer
	buffered := bufio.NewWriter(&archive)
	c := &cpio{w: buffered}
	c.dir("/d")
	c.file("/d/odd", []byte("12345"))
	c.file("/empty", nil)
	c.end()
	if err := buffered.Flush(); c.err != nil || err != nil {
		t.Fatal(c.err, err)
	}
	dir := t.TempDir()
	cmd := exec.Command("cpio", "-i", "--quiet")
	cmd.Dir, cmd.Stdin = dir, &archive
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cpio: %v: %s", err, out)
	}
	for path, want := range map[string]string{"d/odd": "12345", "empty": ""} {
		if got, err := os.ReadFile(filepath.Join(dir, path)); string(got) != want || err != nil {
			t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
		}
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console")
	if err := os.WriteFile(path, []byte("a\r\nb\r\nc\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := tail(path, 3); got != "b\nc\n" { // the third line is the empty text after the last end of line
		t.Errorf("tail = %q", got)
	}
	if got := tail(path+".absent", 3); got != "" {
		t.Errorf("tail of no file = %q", got)
	}
}
