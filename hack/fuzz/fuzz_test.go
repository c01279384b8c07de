package fuzz

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The deadline of a fuzz test starts when its program is built. On a busy machine a build took more
// than five minutes, and the test failed before its first input.
func TestOneResultForEachFuzzTest(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	script, err := os.ReadFile("fuzz.sh")
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, "hack/fuzz/fuzz.sh", string(script))
	write(t, root, "go.mod", "module example.com/m\n\ngo 1.26\n")
	for name, body := range map[string]string{
		"passes": "",
		"fails":  `if s == "seed" { t.Error("refused") }`,
		"hangs":  "for {\n}",
		"broken": "undefined()",
	} {
		title := strings.ToUpper(name[:1]) + name[1:]
		write(t, root, "p/"+name+"/"+name+"_test.go", fmt.Sprintf("package p\n\nimport \"testing\"\n\nfunc Fuzz%s(f *testing.F) {\n"+
			"\tf.Add(\"seed\")\n\tf.Fuzz(func(t *testing.T, s string) {\n%s\n})\n}\n", title, body))
	}
	// One build takes longer than a test is allowed to.
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, "bin/go", "#!/bin/sh\ncase $* in *'-o '*./p/passes) sleep 9 ;; esac\nexec "+real+" \"$@\"\n")
	if err := os.Chmod(filepath.Join(root, "bin/go"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "init", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	temporary := t.TempDir()
	run := func(pattern string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "hack/fuzz/fuzz.sh"), "1x", pattern, "1")
		cmd.Env = append(os.Environ(), "FUZZ_GRACE=8", "TMPDIR="+temporary, "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("FuzzFails"); err == nil || !strings.HasPrefix(out, "FAIL  ./p/fails FuzzFails") || !strings.Contains(out, "1 fuzz tests, 1 failed") {
		t.Errorf("one that fails: %v\n%s", err, out)
	}
	if out, err := run("nobody"); err == nil || !strings.Contains(out, "no fuzz test matches nobody") {
		t.Errorf("a pattern that nothing matches: %v\n%s", err, out)
	}
	out, err := run(".")
	for _, want := range []string{
		"FAIL  ./p/broken: does not build:", "undefined: undefined", "FAIL  ./p/fails FuzzFails", "refused",
		"FAIL  ./p/hangs FuzzHangs", "it was not over after 8 s", "ok    ./p/passes FuzzPasses", "4 fuzz tests, 3 failed",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("it left temporary files: %v, %v", left, err)
	}
	if err == nil || t.Failed() {
		t.Errorf("all of them: %v\n%s", err, out)
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
