package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
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
		"help":                 {args: []string{"--help"}, stdout: "kubectl assay [command]"},
		"help of a verb":       {args: []string{"run", "--help"}, stdout: "\n    5    some repetition has no valid trial"},
		"plan":                 {args: []string{"plan", "-f", "experiments/failure-fp.yaml", "--profile", "smoke"}, stdout: "failure-fp, profile smoke: 3 points"},
		"plan without a file":  {args: []string{"plan"}, code: 2, stderr: "kubectl assay: required flag(s) \"filename\" not set\nSee kubectl assay plan --help.\n"},
		"an unknown verb":      {args: []string{"go"}, code: 2, stderr: `kubectl assay: unknown command "go"`},
		"an unknown flag":      {args: []string{"watch", "--fast", "e"}, code: 2, stderr: "unknown flag: --fast"},
		"watch, no cluster":    {args: []string{"watch", "e"}, code: 1, stderr: "kubectl assay: no cluster here"},
		"report, no cluster":   {args: []string{"report", "e"}, code: 1, stderr: "kubectl assay: no cluster here"},
		"compare, no cluster":  {args: []string{"compare", "e"}, code: 1, stderr: "kubectl assay: no cluster here"},
		"help of compare":      {args: []string{"compare", "--help"}, stdout: "3  some difference is"},
		"bundle, no cluster":   {args: []string{"bundle", "e", "-o", "e.tgz"}, code: 1, stderr: "kubectl assay: no cluster here"},
		"bundle, no form":      {args: []string{"bundle", "e", "-o", "e.zip"}, code: 1, stderr: "kubectl assay: -o e.zip: a bundle is a compressed tar file"},
		"run, no cluster":      {args: []string{"run", "-f", "experiments/failure-fp.yaml"}, code: 1, stderr: "kubectl assay: no cluster here"},
		"hosts without a user": {args: []string{"hosts"}, code: 2, stderr: `kubectl assay: required flag(s) "cloudlab", "control-plane", "pool" not set`},
		"hosts": {args: []string{"hosts", "--cloudlab", "operator/internal/cli/cloudlab/testdata/wisc.xml", "--user", "bob", "--control-plane", "client-2-0", "--pool", "servers=*"},
			stdout: `"address": "c220g2-011001.wisc.cloudlab.us"`, stderr: "4 hosts, 1 pools, 1 regions"},
		"too many arguments":          {args: []string{"watch", "e", "f"}, code: 2, stderr: "accepts 1 arg(s), received 2"},
		"a value that there is not":   {args: []string{"list", "-o", "table"}, code: 2, stderr: "-o table: choose wide, name, json or yaml, or leave it out for a table\nSee kubectl assay list --help."},
		"a profile that there is not": {args: []string{"run", "-f", "experiments/failure-fp.yaml", "--profile", "smoek"}, code: 2, stderr: `no profile "smoek"`},
		"a file that there is not":    {args: []string{"run", "-f", "nowhere.yaml"}, code: 2, stderr: "read -f nowhere.yaml"},
		"options":                     {args: []string{"options"}, stdout: "--as-group stringArray"},
		"hidden options":              {args: []string{"wait", "--as", "bob", "--request-timeout", "1s", "e"}, code: 1, stderr: "no cluster here"},
		"check-image, no image":       {args: []string{"check-image", "experiments/systems/hats.yaml"}, code: 2, stderr: "accepts 2 arg(s), received 1"},
		"check-image, no such image":  {args: []string{"check-image", "experiments/systems/hats.yaml", "./none.tar"}, code: 1, stderr: "image ./none.tar: there is no such file"},
		"new":                         {args: []string{"new", "e"}, stdout: "kind: Experiment\nmetadata:\n  name: e\n"},
		"completion of a profile":     {args: []string{"__complete", "run", "-f", "experiments/failure-fp.yaml", "--profile", ""}, stdout: "smoke\n"},
		"completion of a point":       {args: []string{"__complete", "try", "-f", "experiments/failure-fp.yaml", "--point", ""}, stdout: "clients=50\nvariant=ideal\n"},
		"completion of a form":        {args: []string{"__complete", "list", "-o", ""}, stdout: "wide\nname\njson\nyaml\n"},
		"completion of a verb":        {args: []string{"__complete", "rep"}, stdout: "report\tShow an experiment's verdicts and numbers"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := assay(t, tc.args...)
			if code != tc.code || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.stderr) {
				t.Errorf("exit code %d, want %d\nstdout: %s\nwant:   %s\nstderr: %s\nwant:   %s", code, tc.code, stdout, tc.stdout, stderr, tc.stderr)
			}
		})
	}
}

// The names of experiments and trials are completed from the cluster.
func TestCompletesNames(t *testing.T) {
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "lab"}}, &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", Namespace: "other"}},
		&v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Name: "e-0", Namespace: "lab"}}).Build()
	for verb, want := range map[string]string{"watch": "e\n:4\n", "wait": "e\n:4\n", "suspend": "e\n:4\n", "resume": "e\n:4\n", "retry": "e\n:4\n", "logs": "e-0\n:4\n"} {
		var out bytes.Buffer
		s := &session.Session{Out: &out, Err: &bytes.Buffer{}, Now: time.Now, Sleep: session.Sleep,
			Connect: func() (session.Cluster, error) { return session.Cluster{Client: c, Namespace: "lab"}, nil }}
		if code := execute(t.Context(), s, strings.NewReader(""), []string{"__complete", verb, ""}); code != 0 || out.String() != want {
			t.Errorf("%s: exit code %d, %q, want %q", verb, code, out.String(), want)
		}
	}
}

// The command has all verbs and flags that the guide shows. The reference has the table of exit
// codes.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guide/run.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(text)
	reference, err := os.ReadFile("../../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	table := ""
	for _, c := range session.Codes {
		table += fmt.Sprintf("| %d | %s |\n", c.Code, c.Meaning)
	}
	if !strings.Contains(string(reference), "| code | meaning |\n|---|---|\n"+table+"\n") {
		t.Errorf("docs/reference/cli.md does not have this table of exit codes:\n%s", table)
	}
	t.Chdir("../../..")
	lines := regexp.MustCompile(`(?m)^    kubectl assay (\w+)([^#\n]*)`).FindAllStringSubmatch(guide, -1)
	if len(lines) < 8 {
		t.Fatalf("%d command lines in the guide", len(lines))
	}
	root := command(&session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, &localFlags{})
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
