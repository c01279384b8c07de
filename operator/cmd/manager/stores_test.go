package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestABundleIsWrittenByAnotherProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "live-page")
	const script = `#!/bin/sh
[ "$*" = bundle ] || exit 9
if grep -q refused; then echo "live-page: no such trial" >&2; exit 1; fi
echo bundle
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	write := bundler(program)
	var out bytes.Buffer
	if err := write(t.Context(), corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "e-results"}}, &out); err != nil || out.String() != "bundle\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	err := write(t.Context(), corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "refused"}}, &out)
	if err == nil || !strings.HasSuffix(err.Error(), "live-page bundle: exit status 1: live-page: no such trial") {
		t.Errorf("of a program that fails: %v", err)
	}
	if err := bundler(program+".none")(t.Context(), corev1.ConfigMap{}, &out); err == nil {
		t.Error("a program that is not there has written a bundle")
	}
}

// A manager computes what a report says. Laying it out and drawing it is for other programs.
func TestManagersDrawNoReports(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list -deps: %v", err)
	}
	const reports = "assay.dev/assay/operator/internal/analysis/report/"
	of := map[string]bool{}
	for name := range strings.FieldsSeq(string(out)) {
		if part, ok := strings.CutPrefix(name, reports); ok {
			of[part] = true
		}
		if strings.HasPrefix(name, "assay.dev/assay/operator/internal/cli/") {
			t.Errorf("the manager depends on %s", name)
		}
	}
	for _, known := range []string{"model", "csvfile", "archive"} {
		delete(of, known)
	}
	if len(of) > 0 {
		t.Errorf("the manager depends on parts of the report that show it: %v", of)
	}
}
