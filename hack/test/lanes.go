package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

const module = "assay.dev/assay/"

// lane is a set of tests with the same needs.
type lane struct {
	name   string
	format string        // of gotestsum
	bound  time.Duration // kills the lane
	takes  time.Duration // at most, on a quiet machine, with what prepare.sh builds the first time; see -within
	dir    string        // of another module; "" is the repository
	flags  []string      // of go test
	listed bool          // runs only the tests that lanes.txt gives it
	raw    []string      // chooses its tests and prints go test's JSON itself
	plain  []string      // no go test: the exit status is the result of one test
	inputs []string      // files and directories that decide its result, beside its packages
	builds []string      // packages that it runs as programs or in images
}

// What a cluster lane runs: images of our programs, by the chart, on nodes of the recipe.
var (
	clusterInputs = []string{"charts", "config", "experiments", "hack/cluster", "hack/images", "hack/node-image", "hack/deploy.sh", "hack/test/lanes.txt"}
	programs      = []string{"./operator/cmd/...", "./systems/..."}
	oneAtATime    = []string{"-count=1", "-p=1"} // its packages share a kernel, servers or a cluster
)

func cluster(name string, takes, bound time.Duration, inputs ...string) lane {
	return lane{name: name, format: "testname", takes: takes, bound: bound, flags: oneAtATime, listed: true,
		inputs: append(slices.Clone(clusterInputs), inputs...), builds: programs}
}

// moduleLane is the lane of a Go module of its own.
func moduleLane(dir string) lane {
	return lane{name: path.Base(dir), bound: 15 * time.Minute, dir: dir, inputs: []string{dir, "systems/driver"}}
}

var lanes = []lane{
	{name: "unit", bound: 30 * time.Minute, inputs: []string{"config", "experiments", "docs", "charts", "README.md"}},
	moduleLane("hack/images"), moduleLane("hack/node-image"), moduleLane("systems/driver"), moduleLane("systems/hotstuff"), moduleLane("systems/cometbft"), moduleLane("systems/capnp-rpc"), moduleLane("systems/bls"), moduleLane("systems/postgres"),
	{name: "chart", bound: 15 * time.Minute, inputs: []string{"charts", "config"}},
	{name: "api", bound: 40 * time.Minute, flags: oneAtATime, inputs: []string{"charts", "config", "experiments", "docs", "README.md"}},
	{name: "kernel", bound: 25 * time.Minute, flags: oneAtATime},
	{name: "vm", bound: 40 * time.Minute, raw: []string{"bash", "-c", "exec hack/vm/test.sh -json 2>&1"}, inputs: []string{"hack/vm"}, builds: []string{"./operator/internal/agent", "./operator/internal/netem/..."}},
	{name: "terraform", bound: 30 * time.Minute, flags: []string{"-count=1"}, inputs: []string{"infra", "hack/infra"}},
	cluster("kind", 6*time.Minute, 40*time.Minute),
	// Of make test-all only:
	cluster("long", 41*time.Minute, 60*time.Minute, "docs/tutorial.md", "hack/docs/tutorial"),
	cluster("owner", 40*time.Minute, 60*time.Minute, "hack/s3", "hack/prometheus", "hack/chaos-mesh"),
	{name: "machines", format: "testname", takes: 9 * time.Minute, bound: 50 * time.Minute, flags: oneAtATime, inputs: append([]string{"infra", "hack/infra"}, clusterInputs...), builds: programs},
	{name: "race", takes: 7 * time.Minute, bound: 30 * time.Minute, flags: []string{"-race", "-shuffle=on", "-skip=" + speed}},
	{name: "cassandra", takes: 5 * time.Minute, bound: 15 * time.Minute, dir: "systems/cassandra", inputs: []string{"systems/cassandra", "systems/driver"}},
	{name: "browser", takes: 2 * time.Minute, bound: 15 * time.Minute, flags: []string{"-count=1", "-tags=browser", "-run=InABrowser$"}},
	{name: "fuzz", takes: 25 * time.Minute, bound: 40 * time.Minute, plain: []string{"make", "fuzz", "FUZZTIME=10s"}, inputs: []string{"hack/fuzz"}, builds: []string{"./operator/...", "./systems/..."}},
	{name: "release", takes: 30 * time.Minute, bound: 40 * time.Minute, plain: []string{"make", "release-dry-run"}, inputs: []string{"hack/release", "hack/images", "charts", ".krew.yaml", ".github"}, builds: []string{"./operator/cmd/...", "./systems/basil/..."}},
	{name: "libvirt", takes: 25 * time.Minute, bound: 40 * time.Minute, plain: []string{"hack/infra/libvirt/test.sh", "-v"}, inputs: []string{"infra", "hack/infra"}},
}

func lanesOf(stage string) ([]lane, error) {
	var found []lane
	for name := range strings.SplitSeq(stage, ",") {
		i := slices.IndexFunc(lanes, func(l lane) bool { return l.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no lane %q", name)
		}
		found = append(found, lanes[i])
	}
	return found, nil
}

// speed are tests that bound the speed or memory of programs. The race detector takes more of both.
// The lane unit runs them.
const speed = "^(TestHostileResultsTakeLittleMemory|TestLargeStatsAreReadInBoundedMemory|TestMergeThousandClients|TestProcesses)$"

// racing are the packages with goroutines of their own that import little: cgo means a second build
// of all they import.
var racing = []string{"operator/internal/launcher", "operator/internal/loadgen", "operator/internal/results", "systems/"}

// lanesOfPackage are the lanes that test a package, by where it lies and by what its tests import.
func lanesOfPackage(pkg string, testImports []string) []string {
	below := strings.TrimPrefix(pkg, module)
	under := func(dirs ...string) bool {
		return slices.ContainsFunc(dirs, func(d string) bool { return strings.HasPrefix(below+"/", strings.TrimSuffix(d, "/")+"/") })
	}
	var found []string
	if under(racing...) {
		found = append(found, "race")
	}
	switch {
	case under("operator/test/e2e", "operator/test/install"):
		return nil // lanes.txt says
	case under("operator/internal/agent", "operator/internal/netem"):
		return append(found, "kernel")
	case slices.ContainsFunc(testImports, func(i string) bool {
		return i == "sigs.k8s.io/controller-runtime/pkg/envtest" || i == module+"operator/internal/testkit/testenv" ||
			i == module+"operator/internal/testkit/tests3" || i == module+"systems/etcd/internal/testetcd"
	}):
		return append(found, "api")
	case under("charts"):
		return append(found, "chart")
	case under("infra/test/baremetal", "infra/test/kind"):
		return append(found, "machines")
	case under("infra/test/libvirt"):
		return append(found, "libvirt")
	case under("infra"):
		return append(found, "terraform")
	case below == "operator/internal/report", below == "operator/internal/cli/ui", below == "operator/test/site":
		return append(found, "unit", "browser")
	}
	return append(found, "unit")
}

// packages sorts the packages that have tests into lanes. Packages that do not load are kept: go
// test says why.
func packages(ctx context.Context, r rules) (map[string][]string, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles .Error}}{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}`
	out, err := goList(ctx, "-e", "-f", format, "./...")
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, l := range lanes {
		switch {
		case l.dir != "":
			found[l.name] = []string{"./..."}
		case l.listed:
			found[l.name], _ = r.tests(l.name)
		}
	}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 0 {
			for _, l := range lanesOfPackage(f[0], f[1:]) {
				found[l] = append(found[l], f[0])
			}
		}
	}
	return found, nil
}

func goList(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	return string(out), nil
}

// command is what runs the lane's tests, once prepare.sh has provided what they need.
func (l lane) command(pkgs []string, r rules, more []string) []string {
	if l.plain != nil {
		return l.plain
	}
	format := l.format
	if format == "" {
		format = "pkgname-and-test-fails"
	}
	work, err := os.Getwd()
	if err != nil {
		panic(err) // the directory that everything runs in
	}
	sum := []string{work + "/.work/bin/gotestsum", "--format=" + format, "--format-hide-empty-pkg", "--hide-summary=skipped",
		"--jsonfile=" + work + "/.work/test/" + l.name + ".json"}
	if l.raw != nil {
		return slices.Concat(sum, []string{"--raw-command", "--ignore-non-json-output-lines", "--"}, l.raw)
	}
	sum = append(sum, "--rerun-fails=1", "--rerun-fails-max-failures=3", "--packages="+strings.Join(pkgs, " "), "--", "-timeout="+l.bound.String())
	if l.dir != "" {
		sum = append([]string{"env", "-C", l.dir}, sum...)
	}
	if l.listed {
		_, names := r.tests(l.name)
		sum = append(sum, "-run=^("+strings.Join(names, "|")+")$")
	}
	return slices.Concat(sum, l.flags, more)
}
