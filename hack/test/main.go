// Command test runs the tests of the repository in groups, cheap ones first, and
// sums them up.
//
//	go run ./hack/test [-flags='-run=TestX'] GROUP...
//
// A package belongs to the first group that claims it, by what it needs:
//
//	e2e          lies under operator/test/e2e: a kind cluster with Assay on it
//	install      lies under operator/test/install: the same cluster, where Assay is upgraded, removed and installed again
//	netem        is operator/internal/agent or operator/internal/netem: root, for network namespaces
//	integration  its tests import envtest, testetcd or tests3: kube-apiserver, etcd, an S3 server
//	chart        lies under charts: helm
//	infra        lies under infra: terraform, with providers built from Go modules
//	unit         all others, and the modules hack/images and hack/node-image
//
// Packages below operator/internal/netem are tested a second time, in a virtual
// machine with a kernel that has everything: see hack/vm. Each test counts once;
// what is skipped here and passes there has passed. So are two tests of
// operator/internal/agent, with the backends that the kernel here may lack.
//
// Groups go on when an earlier one failed. Failing tests are shown with their
// output, and those that are few are run once more: see retry. The last lines are
// those that passed then, the skipped tests, each with its reason, and
//
//	N passed, N failed, N skipped
//
// which counts tests without subtests. Also failures, each counted once: a
// package that does not build, a process that ends outside of a test, a group
// that cannot be prepared, and a group that ran no test at all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
	vm      string                   // packages that begin with this are tested in a virtual machine, too,
	vmTests []selection              // and so are these
	prepare func() ([]string, error) // gets what the group needs; returns environment to add
}

// selection is some tests of a package.
type selection struct{ pkg, run string }

// The timeouts end what hangs. A busy machine takes many times as long as an idle one, and the first group compiles everything.
var groups = []group{
	{name: "unit", timeout: 15 * time.Minute, modules: []string{"hack/images", "hack/node-image"}},
	{name: "chart", timeout: 10 * time.Minute, prepare: func() ([]string, error) { return command("hack/cluster/tools.sh", "helm") }},
	{name: "infra", timeout: 40 * time.Minute, flags: []string{"-p=1", "-count=1"}, prepare: providers},
	{name: "integration", timeout: 20 * time.Minute, flags: []string{"-p=1", "-count=1"}, prepare: servers},
	{name: "netem", timeout: 20 * time.Minute, flags: []string{"-p=1", "-count=1"}, vm: module + "operator/internal/netem",
		vmTests: []selection{
			{module + "operator/internal/agent", "^TestPodsProveTheirLinksWatchThemAndLeaveNoTrace$/^(EDT|Netem)$"},
			{module + "operator/internal/agent", "^TestAnAgentThatIsKilledAfterTheProof$/^(EDT|Netem)$"},
		}},
	{name: "e2e", timeout: 25 * time.Minute, flags: []string{"-p=1", "-count=1"}, prepare: deployed},
	{name: "install", timeout: 45 * time.Minute, flags: []string{"-p=1", "-count=1"}, prepare: installable},
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
	case strings.HasPrefix(below, "operator/test/install"):
		return "install"
	case strings.HasPrefix(below, "operator/internal/agent"), strings.HasPrefix(below, "operator/internal/netem"):
		return "netem"
	case slices.ContainsFunc(testImports, func(i string) bool {
		return i == "sigs.k8s.io/controller-runtime/pkg/envtest" || i == module+"operator/internal/testenv" ||
			i == module+"operator/internal/tests3" || i == module+"systems/etcd/internal/testetcd"
	}):
		return "integration"
	case strings.HasPrefix(below, "charts/"):
		return "chart"
	case strings.HasPrefix(below, "infra/"):
		return "infra"
	}
	return "unit"
}

func (g group) test(t *tally, pkgs, flags []string) error {
	env, err := g.prepared()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*g.timeout)
	defer cancel()
	args := slices.Concat([]string{"-json", "-timeout=" + g.timeout.String()}, g.flags)
	if len(pkgs) > 0 {
		// go test takes flags that it does not know only behind packages
		goTest(ctx, t, ".", env, slices.Concat([]string{"go", "test"}, args, pkgs, flags))
		t.retry(pkgs, nil, func(pkg string, tests []string) {
			goTest(ctx, t, ".", env, slices.Concat([]string{"go", "test"}, args, []string{pkg}, flags, []string{only(tests)}))
		})
	}
	for _, dir := range g.modules {
		goTest(ctx, t, dir, env, slices.Concat([]string{"go", "test"}, args, []string{"./..."}, flags))
	}
	if err := ctx.Err(); err != nil || g.vm == "" {
		return err
	}
	inside := slices.DeleteFunc(slices.Clone(pkgs), func(p string) bool { return !strings.HasPrefix(p, g.vm) })
	runs := [][]string{slices.Concat(args, inside, flags)}
	for _, s := range g.vmTests {
		runs = append(runs, slices.Concat(args, []string{"-run=" + s.run, s.pkg}, flags)) // a -run of the caller comes last, and holds
	}
	before := t.failures()
	t.again()
	err = inVM(t, g, runs)
	if err == nil {
		t.retry(pkgs, before, func(pkg string, tests []string) {
			err = errors.Join(err, inVM(t, g, g.runsInVM(pkg, tests, args, flags)))
		})
	}
	return err
}

// runsInVM are what runs these tests of a package again in the virtual machine: all that runs of them there.
func (g group) runsInVM(pkg string, tests, args, flags []string) [][]string {
	if strings.HasPrefix(pkg, g.vm) {
		return [][]string{slices.Concat(args, []string{pkg}, flags, []string{only(tests)})}
	}
	var runs [][]string
	for _, s := range g.vmTests {
		if name, _, _ := strings.Cut(s.run, "/"); s.pkg == pkg && slices.Contains(tests, strings.Trim(name, "^$")) {
			runs = append(runs, slices.Concat(args, []string{pkg}, flags, []string{"-run=" + s.run}))
		}
	}
	return runs
}

// prepared gets what the group needs. What is fetched, or waits for a cluster to come up, has a second attempt.
func (g group) prepared() ([]string, error) {
	if g.prepare == nil {
		return nil, nil
	}
	env, err := g.prepare()
	if err == nil {
		return env, nil
	}
	fmt.Fprintf(os.Stderr, "preparing %s: %v; a second attempt\n", g.name, err)
	time.Sleep(betweenAttempts)
	return g.prepare()
}

// betweenAttempts is for what was in the way to pass.
const betweenAttempts = 10 * time.Second

// inVM tests packages once more, in a virtual machine, or says why there is none.
func inVM(t *tally, g group, runs [][]string) error {
	for _, args := range runs {
		ctx, cancel := context.WithTimeout(context.Background(), 2*g.timeout)
		why, status := goTest(ctx, t, ".", nil, append([]string{"hack/vm/test.sh"}, args...))
		err := ctx.Err()
		cancel()
		if status == noVM {
			t.skip(g.name+" in a virtual machine", why)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noVM is the status of hack/vm/test.sh on a machine that cannot have one; go test has none like it.
const noVM = 3

// goTest feeds the events of one `go test -json` to the tally. Its exit status
// adds nothing to them, except when it ends without any. The processes of the
// tests get the same fate as go itself when time is up: they share its group.
// It returns the last line on its stderr and its exit status.
func goTest(ctx context.Context, t *tally, dir string, env, command []string) (last string, status int) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var complaints lastLine
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), io.MultiWriter(os.Stderr, &complaints)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.fail(command[0]+" in "+dir, err.Error()+"\n")
		return "", -1
	}
	before := t.told
	t.read(out)
	err = cmd.Wait()
	status = cmd.ProcessState.ExitCode()
	if err != nil && status != noVM && t.told == before {
		t.fail(command[0]+" in "+dir, err.Error()+"\n")
	}
	return string(complaints), status
}

// lastLine keeps the last line that was written to it.
type lastLine string

func (l *lastLine) Write(p []byte) (int, error) {
	lines := strings.FieldsFunc(string(p), func(r rune) bool { return r == '\n' })
	if len(lines) > 0 {
		*l = lastLine(lines[len(lines)-1])
	}
	return len(p), nil
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

// deployed is the cluster with Assay on it, as it is now.
func deployed() ([]string, error) { return command("make", "deploy") }

// installable is that, and the images of what tests install: the S3 server, Prometheus with its operator, and Chaos Mesh. The last two take long to build the first time.
func installable() ([]string, error) {
	env, err := deployed()
	for _, load := range []string{"hack/s3/load.sh", "hack/prometheus/load.sh", "hack/chaos-mesh/load.sh"} {
		if err == nil {
			_, err = command(load)
		}
	}
	return env, err
}

// servers are those that integration tests start: kube-apiserver, etcd, S3, and Debian's Prometheus, without which some are skipped.
func servers() ([]string, error) {
	if _, err := command("hack/s3/build.sh"); err != nil {
		return nil, err
	}
	if _, err := command("hack/prometheus/fetch.sh"); err != nil {
		fmt.Fprintln(os.Stderr, "tests that need Prometheus are skipped:", err)
	}
	cmd := exec.Command("hack/cluster/envtest.sh")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("hack/cluster/envtest.sh: %w", err)
	}
	return []string{"KUBEBUILDER_ASSETS=" + strings.TrimSpace(string(out))}, nil
}

// providers makes terraform take its providers from a mirror of ours, puts helm, kubectl and tflint on the PATH, and has the images built that a real
// apply brings to its machines.
func providers() ([]string, error) {
	env, err := command("hack/cluster/tools.sh", "helm", "kubectl")
	if err != nil {
		return nil, err
	}
	if _, err := command("make", "images"); err != nil {
		return nil, err
	}
	if _, err := command("hack/infra/packages.sh"); err != nil {
		return nil, err
	}
	if _, err := command("hack/infra/tflint.sh"); err != nil {
		fmt.Fprintln(os.Stderr, err) // its test says that it is skipped
	}
	cmd := exec.Command("hack/infra/providers.sh")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("hack/infra/providers.sh: %w", err)
	}
	_, config, found := strings.Cut(strings.TrimSpace(string(out)), "export ")
	if !found {
		return nil, fmt.Errorf("hack/infra/providers.sh printed %q, which is no export", out)
	}
	return append(env, config), nil
}
