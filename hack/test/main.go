// Command test runs the tests of the repository in groups, cheap ones first, and
// sums them up.
//
//	go run ./hack/test [-flags='-run=TestX'] GROUP...
//
// A package belongs to the first group that claims it, by what it needs:
//
//	e2e          lies under operator/test/e2e: a kind cluster with Assay on it
//	netem        is operator/internal/agent or operator/internal/netem: root, for network namespaces
//	integration  its tests import envtest: kube-apiserver and etcd
//	chart        lies under charts: helm
//	unit         all others, and the modules hack/images and hack/node-image
//
// Groups go on when an earlier one failed. Failing tests are shown with their
// output. The last lines are the skipped tests, each with its reason, and
//
//	N passed, N failed, N skipped
//
// which counts tests without subtests. Also failures, each counted once: a
// package that does not build, a process that ends outside of a test, a group
// that cannot be prepared, and a group that ran no test at all.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const module = "assay.dev/assay/"

// group is how one kind of package is tested. Packages of the groups that need
// more than Go run one after the other: they share a kernel or a cluster.
type group struct {
	name    string
	timeout time.Duration // of one package; the whole group may take twice that
	flags   []string
	modules []string                 // directories of further modules, whose packages all belong here
	prepare func() ([]string, error) // gets what the group needs; returns environment to add
}

var groups = []group{
	{name: "unit", timeout: 5 * time.Minute, modules: []string{"hack/images", "hack/node-image"}},
	{name: "chart", timeout: 2 * time.Minute, prepare: func() ([]string, error) { return command("hack/cluster/tools.sh", "helm") }},
	{name: "integration", timeout: 10 * time.Minute, flags: []string{"-p=1", "-count=1"}, prepare: envtestAssets},
	{name: "netem", timeout: 10 * time.Minute, flags: []string{"-p=1", "-count=1"}},
	{name: "e2e", timeout: 25 * time.Minute, flags: []string{"-p=1", "-count=1"}, prepare: func() ([]string, error) { return command("make", "deploy") }},
}

func main() {
	flags := flag.String("flags", "", "further flags of go test, separated by spaces")
	flag.Parse()
	if err := run(flag.Args(), strings.Fields(*flags)); err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
		os.Exit(1)
	}
}

func run(names, flags []string) error {
	byGroup, err := packages()
	if err != nil {
		return err
	}
	t := newTally(os.Stdout)
	for _, name := range names {
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
		if i < 0 {
			return fmt.Errorf("no group %q", name)
		}
		t.begin(name)
		if err := groups[i].test(t, byGroup[name], flags); err != nil {
			t.fail(name, err.Error()+"\n")
		}
		t.end()
	}
	if t.close(); t.failed > 0 {
		os.Exit(1) // the last line stays the sum
	}
	return nil
}

// packages sorts the packages that have tests into groups. Packages that do not
// load are kept (-e): go test says why, and that is a failure.
func packages() (map[string][]string, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles .Error}}{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}`
	list := exec.Command("go", "list", "-e", "-f", format, "./...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	byGroup := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 {
			name := groupOf(f[0], f[1:])
			byGroup[name] = append(byGroup[name], f[0])
		}
	}
	return byGroup, nil
}

func groupOf(pkg string, testImports []string) string {
	below := strings.TrimPrefix(pkg, module)
	switch {
	case strings.HasPrefix(below, "operator/test/e2e"):
		return "e2e"
	case strings.HasPrefix(below, "operator/internal/agent"), strings.HasPrefix(below, "operator/internal/netem"):
		return "netem"
	case slices.ContainsFunc(testImports, func(i string) bool {
		return i == "sigs.k8s.io/controller-runtime/pkg/envtest" || i == module+"operator/internal/testenv"
	}):
		return "integration"
	case strings.HasPrefix(below, "charts/"):
		return "chart"
	}
	return "unit"
}

func (g group) test(t *tally, pkgs, flags []string) error {
	var env []string
	if g.prepare != nil {
		var err error
		if env, err = g.prepare(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*g.timeout)
	defer cancel()
	args := slices.Concat([]string{"test", "-json", "-timeout=" + g.timeout.String()}, g.flags)
	if len(pkgs) > 0 {
		goTest(ctx, t, ".", env, slices.Concat(args, pkgs, flags)) // go test takes flags that it does not know only behind packages
	}
	for _, dir := range g.modules {
		goTest(ctx, t, dir, env, slices.Concat(args, []string{"./..."}, flags))
	}
	return ctx.Err()
}

// goTest feeds the events of one `go test -json` to the tally. Its exit status
// adds nothing to them, except when it ends without any. The processes of the
// tests get the same fate as go itself when time is up: they share its group.
func goTest(ctx context.Context, t *tally, dir string, env, args []string) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.fail("go test in "+dir, err.Error()+"\n")
		return
	}
	before := t.failed
	t.read(out)
	if err := cmd.Wait(); err != nil && t.failed == before {
		t.fail("go test in "+dir, err.Error()+"\n")
	}
}

// command runs what provides a group's programs or cluster and reports on stderr.
// The programs are then in .work/bin, the cluster's kubeconfig beside it.
func command(name string, args ...string) ([]string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	work, err := filepath.Abs(".work")
	if err != nil {
		return nil, err
	}
	kubeconfig := work + "/kubeconfig" // as hack/cluster/lib.sh names it
	if cluster := os.Getenv("CLUSTER"); cluster != "" && cluster != "assay" {
		kubeconfig += "-" + cluster
	}
	return []string{"PATH=" + work + "/bin:" + os.Getenv("PATH"), "KUBECONFIG=" + kubeconfig, "ASSAY_E2E_KUBECONFIG=" + kubeconfig}, nil
}

func envtestAssets() ([]string, error) {
	cmd := exec.Command("hack/cluster/envtest.sh")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("hack/cluster/envtest.sh: %w", err)
	}
	return []string{"KUBEBUILDER_ASSETS=" + strings.TrimSpace(string(out))}, nil
}
