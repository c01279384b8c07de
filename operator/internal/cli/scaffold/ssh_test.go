package scaffold_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/scaffold"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// written returns the files that new --ssh writes for an artifact, and its messages.
func written(t *testing.T, o scaffold.SSH, files map[string]string) (set *manifest.Set, p *plan.Plan, said string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "exp1")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", dir)
	o.On, o.Hosts = true, filepath.Join(dir, "hosts.txt")
	if o.Sample != "" {
		o.Sample = filepath.Join(dir, o.Sample)
	}
	var out, errs bytes.Buffer
	if err := scaffold.Run(t.Context(), &session.Session{Out: &out, Err: &errs}, scaffold.Options{Name: "exp1", SSH: o}); err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Decode(t.Context(), bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if p, err = set.Plan(t.Context(), ""); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return set, p, errs.String()
}

const table = "scheme\tload\tthroughput\tp50_ms\tp99_ms\nserial\tsmall\t10\t1\t2\nserial\tlarge\t5\t3\t4\nthreads\tsmall\t30\t1\t2\nthreads\tlarge\t9\t3\t4\n"

// new turns the three commands of an artifact's README into a System and an Experiment that plan
// accepts without an edit. If it gets a file of an earlier run, it reads rows, numbers, a claim and
// a figure from that file.
func TestPlanAcceptsScaffoldsOfSSHArtifacts(t *testing.T) {
	o := scaffold.SSH{Run: "./run.sh", Results: "~/results/summary.txt"}
	files := map[string]string{"hosts.txt": "# ours\nnode-0\nnode-1\nnode-2\n", "run.sh": "#!/bin/bash\ncd ~/artifact\n", "old.txt": table}
	set, p, said := written(t, o, files)
	if len(p.Points) != 1 || len(p.Points[0].Template.Script.Rows) != 1 || !strings.Contains(said, "in ~/artifact (as ./run.sh says)") || !strings.Contains(said, "--sample") {
		t.Errorf("without a file of results the plan has %d points; said:\n%s", len(p.Points), said)
	}
	named := o
	named.Rows = []string{"scheme=serial,threads", "load=1,2"}
	if set, p, _ := written(t, named, files); len(p.Points[0].Template.Script.Rows) != 4 || set.Experiment.Spec.Claims[0].Expr != "throughput(scheme='threads', load=1) > throughput(scheme='serial', load=1)" {
		t.Errorf("--rows gives the rows %v and the claims %+v", p.Points[0].Template.Script.Rows, set.Experiment.Spec.Claims)
	}
	system := set.Systems["exp1"]
	want := []v1alpha1.MachineGroup{{Name: "node", Count: "3", Hostnames: "node-{{.Index}}", Image: "lab/exp1:dev"}}
	if got := system.Machines; len(got) != 1 || got[0].Name != want[0].Name || got[0].Count != want[0].Count || got[0].Hostnames != want[0].Hostnames || got[0].Image != want[0].Image {
		t.Errorf("the machines are %+v", got)
	}
	o.Sample = "old.txt"
	set, p, said = written(t, o, files)
	system = set.Systems["exp1"]
	if rows := p.Points[0].Template.Script.Rows; len(rows) != 4 || rows[3].Coordinates["scheme"] != "threads" || !strings.Contains(said, "rows for 4 of 4 points were read") {
		t.Errorf("the rows are %v; said:\n%s", rows, said)
	}
	if c := set.Experiment.Spec.Claims; len(c) != 1 || c[0].Expr != "throughput(scheme='threads', load='small') > throughput(scheme='serial', load='small')" {
		t.Errorf("the claims are %+v", c)
	}
	if len(set.Experiment.Spec.Figures) != 1 || system.Script.WorkingDir != "artifact" {
		t.Errorf("figures %+v, directory %s", set.Experiment.Spec.Figures, system.Script.WorkingDir)
	}
	if err := set.Adapt("", "laptop", nil); err != nil {
		t.Error(err)
	}
	// new says that it guessed by the name of a column, since the guess may be wrong.
	files["old.txt"] = "scheme tput to90_ms get50[us] put50[us]\nserial 10 5 1 2\nthreads 20 4 1 2\n"
	if _, _, said = written(t, o, files); !strings.Contains(said, "to90_ms as P90Latency, get50[us] as P50Latency; correct") || !strings.Contains(said, "not read: put50[us];") {
		t.Errorf("of what was taken was said:\n%s", said)
	}
}

// new reads a file at the path of --results without being asked. A shell reads a command that is
// more than words.
func TestSSHArtifactsOfManyKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		o       scaffold.SSH
		hosts   string
		groups  []string // name, count, host names
		command []string
		user    string
		file    string // the file that an earlier run of the script wrote
	}{
		"numbers from 1, qualified": {scaffold.SSH{Run: "cd ~/eval && ./all.sh", Results: "/home/ann/out.txt"}, "ann@n01.lab.edu\nann@n02.lab.edu\n",
			[]string{`n 2 n{{printf "%02d" (add .Index 1)}} n{{printf "%02d" (add .Index 1)}}.lab.edu`}, []string{"bash", "-c", "cd ~/eval && ./all.sh"}, "ann", ""},
		"roles":     {scaffold.SSH{Run: "python3 run.py --quick", Results: "/root/t.csv"}, "control\nserver0\nserver1\nclient\n", []string{"control 1 control", "server 2 server{{.Index}}", "clientmachines 1 client"}, []string{"python3", "run.py", "--quick"}, "root", ""},
		"addresses": {scaffold.SSH{Run: "./run.sh", Results: "~/t.csv"}, "10.0.0.1\n10.0.0.2\n", []string{"node 2 node-{{.Index}}"}, []string{"./run.sh"}, "author", "exp1/hosts.txt"},
		"etc hosts": {scaffold.SSH{Run: "./run.sh", Results: "~/t.csv"}, "10.0.0.1 a\n10.0.0.2 b\n", []string{"a 1 a", "b 1 b"}, []string{"./run.sh"}, "author", ""},
	} {
		t.Run(name, func(t *testing.T) {
			set, p, said := written(t, tc.o, map[string]string{"hosts.txt": tc.hosts, "t.csv": strings.ReplaceAll(table, "\t", ",")})
			system := set.Systems["exp1"]
			var groups []string
			for _, g := range system.Machines {
				groups = append(groups, g.Name+" "+g.Count+" "+g.Hostnames)
			}
			if diff := cmp.Diff(tc.groups, groups); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.command, system.Script.Command); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
			user := system.Machines[0].UserOrDefault()
			if user != tc.user {
				t.Errorf("the user is %s, want %s", user, tc.user)
			}
			// The image has the artifact in the home of that user.
			if !strings.Contains(said, "make machine-image NAME=lab/exp1 FOLDER=/") || strings.Contains(said, " AUTHOR="+user) != (user != "author") {
				t.Errorf("of the image of %s was said:\n%s", user, said)
			}
			file := ""
			if system.Script.HostsFile != nil {
				file = system.Script.HostsFile.Path
			}
			if file != tc.file {
				t.Errorf("the hosts file is %q, want %q", file, tc.file)
			}
			if rows := len(p.Points[0].Template.Script.Rows); strings.HasPrefix(tc.o.Results, "~/") && rows != 4 {
				t.Errorf("the file at --results was not tried: %d rows", rows)
			}
		})
	}
}

func TestSSHIsRefusedByFlag(t *testing.T) {
	dir := t.TempDir()
	hosts, two := filepath.Join(dir, "hosts.txt"), filepath.Join(dir, "two.txt")
	for file, text := range map[string]string{hosts: "one\n", two: "one\ntwo\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		o    scaffold.Options
		want string
	}{
		"no script":           {scaffold.Options{SSH: scaffold.SSH{Hosts: hosts, Results: "~/x"}}, "--ssh needs --run"},
		"rows without values": {scaffold.Options{SSH: scaffold.SSH{Hosts: two, Run: "./a", Results: "~/x", Rows: []string{"scheme"}}}, `--rows: "scheme" must be COLUMN=VALUE,VALUE`},
		"rows and a sample":   {scaffold.Options{SSH: scaffold.SSH{Hosts: two, Run: "./a", Results: "~/x", Sample: two, Rows: []string{"scheme=a,b"}}}, "leave one of them out"},
		"one machine":         {scaffold.Options{SSH: scaffold.SSH{Hosts: hosts, Run: "./a", Results: "~/x"}}, "names 1 machines; a trial needs two"},
		"a client":            {scaffold.Options{Client: "wrk", SSH: scaffold.SSH{Hosts: hosts, Run: "./a", Results: "~/x"}}, "leave out --system, --client"},
	} {
		tc.o.Name, tc.o.SSH.On = "e", true
		err := scaffold.Run(t.Context(), &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, tc.o)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v; want %q", name, err, tc.want)
		}
	}
}
