package verify_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/verify"
)

// The reviewer's page shows the real output of the command for the bundles that it names.
func TestPageShowsRealOutput(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/guide/review-a-bundle.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"whole.tar.gz", "changed-verdict.tar.gz", "changed-report.tar.gz"} {
		if !strings.Contains(string(page), "    kubectl assay verify "+name+"\n") {
			t.Errorf("the page has no command about %s", name)
		}
		var out bytes.Buffer
		err := verify.Run(&session.Session{Out: &out}, verify.Options{Bundle: filepath.Join("testdata", name)})
		if code := session.ExitCode(err); code != 0 && code != session.ExitDifferent {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "```\n"+out.String()+"```\n") {
			t.Errorf("the page does not show what the command prints of %s:\n%s", name, &out)
		}
	}
}
