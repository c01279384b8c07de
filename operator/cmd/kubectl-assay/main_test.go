package main

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/cli/session"
)

// assay runs a command line without a cluster, from the repository's root.
func assay(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Chdir("../../..")
	var out, errOut bytes.Buffer
	s := &session.Session{
		Out: &out, Err: &errOut, Now: time.Now, Sleep: session.Sleep,
		Connect: func() (session.Cluster, error) { return session.Cluster{}, errors.New("no cluster here") },
	}
	code = execute(t.Context(), s, strings.NewReader(""), args)
	return code, out.String(), errOut.String()
}

func TestCommandLines(t *testing.T) {
	for name, tc := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string // parts of them
	}{
		"help":                {args: []string{"--help"}, stdout: "kubectl assay [command]"},
		"help of a verb":      {args: []string{"run", "--help"}, stdout: "5  some repetition has no valid trial"},
		"plan":                {args: []string{"plan", "-f", "experiments/failure-fp.yaml", "--profile", "smoke"}, stdout: "failure-fp, profile smoke: 3 points"},
		"plan without a file": {args: []string{"plan"}, code: 1, stderr: `kubectl assay: required flag(s) "filename" not set`},
		"an unknown verb":     {args: []string{"go"}, code: 1, stderr: `kubectl assay: unknown command "go"`},
		"an unknown flag":     {args: []string{"watch", "--fast", "e"}, code: 1, stderr: "unknown flag: --fast"},
		"watch, no cluster":   {args: []string{"watch", "e"}, code: 1, stderr: "kubectl assay: no cluster here"},
		"report, no cluster":  {args: []string{"report", "e"}, code: 1, stderr: "kubectl assay: no cluster here"},
		"compare, no cluster": {args: []string{"compare", "e"}, code: 1, stderr: "kubectl assay: no cluster here"},
		"help of compare":     {args: []string{"compare", "--help"}, stdout: "3  some difference is"},
		"bundle, no cluster":  {args: []string{"bundle", "e", "-o", "e.tgz"}, code: 1, stderr: "kubectl assay: no cluster here"},
		"bundle, no file":     {args: []string{"bundle", "e"}, code: 1, stderr: `kubectl assay: required flag(s) "output" not set`},
		"run, no cluster":     {args: []string{"run", "-f", "experiments/failure-fp.yaml"}, code: 1, stderr: "kubectl assay: no cluster here"},
		"hosts of nobody":     {args: []string{"hosts"}, code: 1, stderr: `kubectl assay: required flag(s) "cloudlab", "control-plane", "pool" not set`},
		"hosts": {args: []string{"hosts", "--cloudlab", "operator/internal/cloudlab/testdata/wisc.xml", "--user", "bob", "--control-plane", "client-2-0", "--pool", "servers=*"},
			stdout: `"address": "c220g2-011001.wisc.cloudlab.us"`, stderr: "4 hosts, 1 pools, 1 regions"},
		"completion of a verb": {args: []string{"__complete", "rep"}, stdout: "report\tShow an experiment's verdicts and numbers"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := assay(t, tc.args...)
			if code != tc.code || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.stderr) {
				t.Errorf("exit code %d, want %d\nstdout: %s\nwant:   %s\nstderr: %s\nwant:   %s", code, tc.code, stdout, tc.stdout, stderr, tc.stderr)
			}
		})
	}
}

// The guide's exit codes, verbs and flags are those of the command.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guide/run.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(text)
	codes := regexp.MustCompile(`(?m)^\| (\d) \| `).FindAllStringSubmatch(guide, -1)
	if len(codes) != 5 {
		t.Errorf("the guide lists %d exit codes, want 0, 1, 3, 4 and 5", len(codes))
	}
	_, help, _ := assay(t, "run", "--help")
	for _, c := range codes {
		if !strings.Contains(help, "\n  "+c[1]+"  ") {
			t.Errorf("the guide lists exit code %s and run --help does not", c[1])
		}
	}
	lines := regexp.MustCompile(`(?m)^    kubectl assay (\w+)([^#\n]*)`).FindAllStringSubmatch(guide, -1)
	if len(lines) < 8 {
		t.Fatalf("%d command lines in the guide", len(lines))
	}
	root := command(&session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	for _, l := range lines {
		verb, _, err := root.Find([]string{l[1]})
		if err != nil {
			t.Errorf("%s: %v", l[0], err)
			continue
		}
		for _, flag := range regexp.MustCompile(` --?([a-z][-a-z]*)`).FindAllStringSubmatch(l[2], -1) {
			if verb.Flag(flag[1]) == nil && verb.Flags().ShorthandLookup(flag[1]) == nil && root.PersistentFlags().ShorthandLookup(flag[1]) == nil {
				t.Errorf("%s: %s has no flag %s", l[0], l[1], flag[1])
			}
		}
	}
}
