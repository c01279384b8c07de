// Package paper tests the files that authors hand in beside a paper, with the programs that read
// them: LaTeX sets the appendix, and the artifact's own script repeats the experiment.
package paper

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const experiments = "../../../experiments"

// unrefuted are the exit codes of a run whose trials refute no claim. Other programs on the machine
// can make too few trials valid for a verdict.
var unrefuted = []int{0, 4, 5}

// An author runs failure-fp on one machine and makes its artifact. A reviewer has only the archive
// and the program. The reviewer checks the archive, sets its appendix, and repeats the experiment.
func TestArtifactOfFailureFP(t *testing.T) {
	program, images := os.Getenv("ASSAY_LOCAL_PROGRAM"), os.Getenv("ASSAY_LOCAL_IMAGES")
	if program == "" {
		t.Fatal("ASSAY_LOCAL_PROGRAM names no kubectl-assay: run make test-paper")
	}
	author, reviewer := t.TempDir(), t.TempDir()
	results := filepath.Join(author, "results")
	archive := filepath.Join(author, "failure-fp-artifact.tar.gz")
	execute(t, author, 8*time.Minute, unrefuted, program, "run", "--local="+results, "--local-images="+images,
		"-f", absolute(t, experiments, "failure-fp.yaml"), "--profile=smoke", "--wait")
	checklist := execute(t, author, time.Minute, []int{0}, program, "artifact", "--local="+results, "failure-fp", "--images="+images, "-o", archive)
	for _, missing := range []string{"no author is named", "there is no licence", "there is no DOI"} {
		if !strings.Contains(checklist, missing) {
			t.Errorf("the checklist does not say %q:\n%s", missing, checklist)
		}
	}
	if strings.Contains(checklist, "is not the image that ran") {
		t.Errorf("the archives hold other images than those that ran:\n%s", checklist)
	}

	execute(t, reviewer, time.Minute, []int{0}, "tar", "-xzf", archive)
	folder := filepath.Join(reviewer, "failure-fp-artifact")
	t.Setenv("ASSAY", program)
	t.Log(execute(t, folder, time.Minute, []int{0}, "./check.sh"))
	setAppendix(t, filepath.Join(folder, "appendix"))
	t.Log(execute(t, folder, 8*time.Minute, unrefuted, "./run-local.sh"))
	for name, has := range map[string]string{
		"results-local/failure-fp.tar.gz": "\x1f\x8b", "results-local/report.html": "<!DOCTYPE html>", "results-local/comparison.md": "failure-fp",
	} {
		if text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name))); err != nil || !bytes.Contains(text, []byte(has)) {
			t.Errorf("%s has no %q: %v", name, has, err)
		}
	}
	execute(t, folder, time.Minute, []int{0}, "./check.sh") // the check does not change the files
}

// setAppendix makes a PDF of the appendix for each venue, and finds the claims in it.
func setAppendix(t *testing.T, folder string) {
	t.Helper()
	for _, venue := range []string{"usenix", "acm"} {
		execute(t, folder, time.Minute, []int{0}, "pdflatex", "-interaction=nonstopmode", "-halt-on-error", venue+".tex")
		text := execute(t, folder, time.Minute, []int{0}, "pdftotext", venue+".pdf", "-")
		for _, part := range []string{"failure-fp", "order-at-low-load", "run-local.sh"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s.pdf does not have %q:\n%s", venue, part, text)
			}
		}
	}
}

// execute runs a program in a folder and returns its output. An exit code that is not among codes
// ends the test.
func execute(t *testing.T, folder string, within time.Duration, codes []int, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = folder
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // so that the program removes its pods
	c.WaitDelay = time.Minute
	out, err := c.CombinedOutput()
	if c.ProcessState == nil || !slices.Contains(codes, c.ProcessState.ExitCode()) {
		t.Fatalf("%s %s: %v, want an exit code of %v:\n%s", filepath.Base(program), strings.Join(args, " "), err, codes, out)
	}
	return string(out)
}

func absolute(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
