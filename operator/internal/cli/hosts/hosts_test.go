package hosts

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/cli/cloudlab"
	"assay.dev/assay/operator/internal/cli/session"
)

const testdata = "../cloudlab/testdata/"

// command runs the verb with the flags of its help.
func command(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := Command(&session.Session{Out: &out, Err: &errOut})
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

var flags = []string{"--user", "alice", "--control-plane", "california", "--pool", "clients=client-*", "--pool", "servers=*-*-[0-9]-[0-9]"}

func TestRun(t *testing.T) {
	want, err := os.ReadFile(testdata + "two-sites.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	wisc, err := os.ReadFile(testdata + "wisc.xml")
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := command(t, string(wisc), append([]string{"--cloudlab", testdata + "utah.xml", "--cloudlab", "-"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	for _, part := range []string{"Left out: data: it is no machine but emulab-blockstore\n", "10 hosts, 2 pools, 2 regions\n", "No network of the experiment joins all machines"} {
		if !strings.Contains(stderr, part) {
			t.Errorf("stderr has no %q:\n%s", part, stderr)
		}
	}
}

func TestOutput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts.auto.tfvars.json")
	stdout, stderr, err := command(t, "", append([]string{"--cloudlab", testdata + "utah.xml", "-O", file}, flags...)...)
	if err != nil || stdout != "" || !strings.Contains(stderr, "Written to "+file) {
		t.Fatalf("error %v, stdout %q, stderr %q", err, stdout, stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var vars cloudlab.Variables
	if err := json.Unmarshal(text, &vars); err != nil || len(vars.Hosts) != 6 {
		t.Errorf("error %v, %d hosts, want 6", err, len(vars.Hosts))
	}
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no such file":       {[]string{"--cloudlab", "none.xml", "--control-plane", "c", "--pool", "p=*"}, "--cloudlab none.xml: open none.xml: no such file or directory"},
		"no manifest":        {[]string{"--cloudlab", "-", "--control-plane", "c", "--pool", "p=*"}, "--cloudlab -: not a manifest"},
		"no pool":            {[]string{"--cloudlab", "-", "--control-plane", "c"}, `required flag(s) "pool" not set`},
		"a pool that is not": {[]string{"--cloudlab", "-", "--control-plane", "c", "--pool", "servers"}, `--pool "servers" must be NAME=PATTERN, as servers='us-*'`},
		"a pattern that is not": {[]string{"--cloudlab", "-", "--control-plane", "c", "--pool", "p=*", "--region", "r=[a"},
			`--region "r=[a": "[a" is no pattern`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := command(t, "", tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
