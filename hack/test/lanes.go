package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
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
	takes  time.Duration // at most, on a quiet machine, with the first builds of prepare.sh; see -within
	dir    string        // of another module; "" is the repository
	flags  []string      // of go test
	listed bool          // runs only the tests that lanes.txt gives it
	raw    []string      // chooses its tests and prints go test's JSON itself
	plain  []string      // without go test: the exit status is the result of one test
	inputs []string      // files and directories that affect its result, beside its packages
	builds []string      // packages that it runs as programs or in images
	yields bool          // has the lowest priority: it computes, and trials beside it wait for instants
	first  []string      // packages that take longest: they begin first, so that at the end no processor waits for the last of them
}

// A cluster lane runs images of our programs, with the chart, on the nodes of hack/cluster.
var (
	clusterInputs = []string{"charts", "config", "experiments", "hack/cluster", "hack/images", "hack/without-registry/node-image", "hack/deploy.sh", "hack/test/lanes.txt"}
	programs      = []string{"./operator/cmd/...", "./systems/..."}
	oneAtATime    = []string{"-count=1", "-p=1"} // its packages share servers or a cluster
)

func cluster(name string, takes, bound time.Duration, inputs ...string) lane {
	return lane{name: name, format: "testname", takes: takes, bound: bound, flags: oneAtATime, listed: true,
		inputs: append(slices.Clone(clusterInputs), inputs...), builds: programs}
}

// thisMachine is a lane of trials on this machine without a cluster.
func thisMachine(name string, inputs ...string) lane {
	return lane{name: name, format: "testname", bound: 25 * time.Minute, flags: oneAtATime, listed: true,
		inputs: append([]string{"config", "experiments", "hack/images", "hack/test/lanes.txt"}, inputs...), builds: programs}
}

// starved bounds a lane that yields. On empty caches the other lanes compile for most of that time.
// On 28 November 2026 two lanes got a quarter of a processor, and did not end within 15 minutes.
const starved = 40 * time.Minute

// moduleLane is the lane of a separate Go module.
func moduleLane(dir string, inputs ...string) lane {
	return lane{name: path.Base(dir), bound: starved, yields: true, dir: dir, inputs: append([]string{dir, "systems/driver"}, inputs...)}
}

// addSystems adds a lane for each module below systems that has no lane of its own here.
func addSystems(root string) {
	modules, _ := filepath.Glob(root + "/systems/*/go.mod")
	for _, file := range modules {
		if l := moduleLane("systems/" + path.Base(path.Dir(file))); !slices.ContainsFunc(lanes, func(o lane) bool { return o.name == l.name }) {
			lanes = append(lanes, l)
		}
	}
}

var lanes = []lane{
	{name: "unit", yields: true, bound: starved, inputs: []string{"config", "experiments", "docs", "charts", "README.md"}},
	moduleLane("hack/images", "systems/*/images*.txt"), moduleLane("hack/without-registry/node-image"),
	{name: "chart", yields: true, bound: starved, inputs: []string{"charts", "config", "experiments", "systems/*.yaml", "hack/tools", "hack/without-registry/node-image/hyper", "hack/without-registry/prometheus/operator"}},
	{name: "api", yields: true, bound: starved, flags: []string{"-count=1", "-p=3", "-parallel=8", "-skip=^(" + hostile + ")$"}, first: []string{"operator/internal/manager/controller/trial", "operator/test/integration", "operator/internal/manager/controller/archive"}, inputs: []string{"charts", "config", "experiments", "docs", "README.md"}},
	// Its tests mostly wait, and each has network namespaces of its own.
	{name: "kernel", bound: 25 * time.Minute, flags: []string{"-count=1", "-p=2"}},
	thisMachine("local"),
	cluster("kind", 5*time.Minute, 40*time.Minute),
	// make test leaves these out, and .ci/run does not. Root's runs lock the machine, and each
	// user's runs lock that user's home. So local-long and rootless may run beside each other.
	{name: "hostile", bound: 20 * time.Minute, flags: oneAtATime, listed: true, inputs: []string{"hack/test/lanes.txt"}},
	{name: "terraform", yields: true, bound: starved, flags: []string{"-count=1"}, inputs: []string{"infra", "hack/infra", "hack/without-registry/terraform"}},
	{name: "vm", yields: true, bound: starved, raw: []string{"bash", "-c", "exec hack/vm/test.sh -json 2>&1"}, inputs: []string{"hack/vm"}, builds: []string{"./operator/internal/node/agent", "./operator/internal/node/netem/..."}},
	thisMachine("local-long", "hack/cluster/version-before.sh"),
	thisMachine("rootless"),
	cluster("kind-long", 4*time.Minute, 40*time.Minute, "operator/test/local/testdata/machines"),
	// Only make test-all runs these always:
	cluster("evaluations", 9*time.Minute, 40*time.Minute),
	cluster("faults", 10*time.Minute, 40*time.Minute),
	cluster("scheduling", 7*time.Minute, 40*time.Minute),
	cluster("contention", 9*time.Minute, 40*time.Minute), // on a machine that does nothing else
	cluster("systems", 11*time.Minute, 40*time.Minute),
	cluster("tutorial", 16*time.Minute, 40*time.Minute, "docs/tutorial.md", "hack/docs/tutorial"),
	cluster("owner", 31*time.Minute, 60*time.Minute, "hack/without-registry/s3", "hack/without-registry/prometheus", "hack/without-registry/chaos-mesh", "hack/without-registry/network-policies", "operator/test/local/testdata/machines"),
	{name: "machines", format: "testname", takes: 9 * time.Minute, bound: 50 * time.Minute, flags: oneAtATime, inputs: append([]string{"infra", "hack/infra", "hack/without-registry/terraform"}, clusterInputs...), builds: programs},
	{name: "race", takes: 7 * time.Minute, bound: 30 * time.Minute, flags: []string{"-race", "-shuffle=on", "-skip=" + speed}},
	{name: "policies", takes: 20 * time.Minute, bound: 40 * time.Minute, dir: "hack/policies", inputs: []string{"hack/policies", "charts", "operator/internal/experiment/render/testdata"}},
	{name: "cassandra", takes: 5 * time.Minute, bound: 15 * time.Minute, dir: "systems/cassandra", inputs: []string{"systems/cassandra", "systems/driver"}},
	{name: "browser", takes: 5 * time.Minute, bound: 15 * time.Minute, flags: []string{"-count=1", "-tags=browser", "-run=(InABrowser|OnPaper)$"}},
	{name: "paper", format: "testname", takes: 12 * time.Minute, bound: 40 * time.Minute, flags: append([]string{"-run=^(TestLaTeXCompiles.*|TestGGPlotDraws|TestArtifactOfFailureFP)$"}, oneAtATime...), inputs: []string{"config", "experiments", "hack/images"}, builds: programs},
	{name: "fuzz", takes: 25 * time.Minute, bound: 40 * time.Minute, plain: []string{"make", "fuzz", "FUZZTIME=10s"}, inputs: []string{"hack/fuzz"}, builds: []string{"./operator/...", "./systems/..."}},
	{name: "release", takes: 30 * time.Minute, bound: 40 * time.Minute, plain: []string{"make", "release-dry-run"}, inputs: []string{"hack/release", "hack/images", "charts", ".krew.yaml", ".github"}, builds: []string{"./operator/cmd/...", "./systems/basil/..."}},
	{name: "libvirt", takes: 6 * time.Minute, bound: 40 * time.Minute, plain: []string{"hack/infra/libvirt/test.sh", "-v"}, inputs: []string{"infra", "hack/infra", "hack/without-registry/terraform"}},
}

func laneNamed(name string) (lane, error) {
	if i := slices.IndexFunc(lanes, func(l lane) bool { return l.name == name }); i >= 0 {
		return lanes[i], nil
	}
	return lane{}, fmt.Errorf("there is no lane %q", name)
}

// speed matches tests that bound the speed or memory of programs. The race detector increases both.
// The lane unit runs them.
const speed = "^(TestHostileResultsTakeLittleMemory|TestLargeStatsAreReadInBoundedMemory|TestMergeThousandClients|TestProcesses)$"

// hostile is the test of the lane hostile. In the lane api its manager hardly got a processor
// beside other lanes, and sent t = 0 too late.
const hostile = "TestTheManagerLivesBesideHostileTenants"

// racing are the packages with goroutines of their own and few imports: the race detector needs
// cgo, and so a second build of all imports.
var racing = []string{"operator/internal/node/launcher/...", "operator/internal/node/loadgen/...", "operator/internal/results", "operator/internal/results/parsers", "systems/..."}

// places are the lanes of packages by their paths; the first match decides. Other packages that
// import a server are in api, and the rest is in unit.
var places = []struct{ pattern, lanes string }{
	{"operator/test/e2e", ""}, {"operator/test/install", ""}, {"operator/test/local", ""}, // lanes.txt assigns these
	{"operator/internal/node/agent/...", "kernel"}, {"operator/internal/node/netem/...", "kernel"},
	{"charts/...", "chart"},
	{"infra/test/baremetal", "machines"}, {"infra/test/kind", "machines"}, {"infra/test/libvirt", "libvirt"}, {"infra/...", "terraform"},
	{"operator/internal/analysis/report/format", "unit,browser"}, {"operator/internal/cli/ui", "unit,browser"}, {"operator/test/site", "unit,browser"},
	{"operator/internal/analysis/report/artifact", "unit,paper"}, {"operator/internal/analysis/report/figure", "unit,paper"}, {"operator/test/paper", "paper"},
}

// servers are packages whose importers need the programs of the lane api.
var servers = []string{"sigs.k8s.io/controller-runtime/pkg/envtest", module + "operator/internal/testkit/testenv",
	module + "operator/internal/testkit/tests3", module + "systems/etcd/internal/testetcd"}

// lanesOfPackage are the lanes that test a package, by its path and by the imports of its tests.
func lanesOfPackage(pkg string, testImports []string) []string {
	below := strings.TrimPrefix(pkg, module)
	fits := func(pattern string) bool {
		dir, tree := strings.CutSuffix(pattern, "/...")
		return below == dir || tree && strings.HasPrefix(below, dir+"/")
	}
	found := "unit"
	if slices.ContainsFunc(testImports, func(i string) bool { return slices.Contains(servers, i) }) {
		found = "api"
	}
	for _, p := range slices.Backward(places) {
		if fits(p.pattern) {
			found = p.lanes
		}
	}
	if slices.ContainsFunc(racing, fits) {
		found += ",race"
	}
	return strings.FieldsFunc(found, func(r rune) bool { return r == ',' })
}

// packages sorts the packages with tests into lanes. It keeps packages that do not load, since go
// test prints the reason.
func packages(ctx context.Context, r rules) (map[string][]string, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles .Error}}{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}`
	out, err := output(ctx, "go", "list", "-e", "-f", format, "./...")
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
	for _, l := range lanes {
		l.sort(found[l.name])
	}
	return found, nil
}

// sort puts the packages first that must begin first. go test begins packages in the given order.
func (l lane) sort(pkgs []string) {
	place := func(pkg string) int {
		if i := slices.Index(l.first, strings.TrimPrefix(pkg, module)); i >= 0 {
			return i
		}
		return len(l.first)
	}
	slices.SortStableFunc(pkgs, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
}

// output of a program that prints facts about the repository.
func output(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w", program, args[0], err)
	}
	return string(out), err
}

// command runs the lane's tests from the repository's root, after prepare.sh has provided their
// programs.
func (l lane) command(root string, pkgs []string, r rules, more []string) []string {
	if l.plain != nil {
		return l.plain
	}
	sum := []string{"env", "-C", root + "/" + l.dir, root + "/.work/bin/gotestsum", "--format=" + cmp.Or(l.format, "pkgname-and-test-fails"), "--format-hide-empty-pkg",
		"--hide-summary=skipped", "--jsonfile=" + root + "/" + results(l)}
	if l.raw != nil {
		return slices.Concat(sum, []string{"--raw-command", "--ignore-non-json-output-lines", "--"}, l.raw)
	}
	sum = append(sum, "--rerun-fails=1", "--rerun-fails-max-failures=3", "--packages="+strings.Join(pkgs, " "), "--", "-timeout="+l.bound.String())
	if l.listed {
		_, names := r.tests(l.name)
		sum = append(sum, "-run=^("+strings.Join(names, "|")+")$")
	}
	return slices.Concat(sum, l.flags, more)
}

// pass is the file that records that a lane passed. Its name is a hash of the lane's inputs.
type pass string

const passesLast = 7 * 24 * time.Hour

// passOf hashes the lane's inputs: the tracked files in the directories of the lane's packages and
// of their imports from the repository, and its other inputs. The versions of Go and of the kernel
// are in it, too.
func passOf(ctx context.Context, l lane, pkgs []string) (pass, error) {
	dirs := append([]string{"go.mod", "go.sum", "hack/test/prepare.sh"}, l.inputs...)
	if args := append(slices.Clone(l.builds), pkgs...); l.dir == "" && len(args) > 0 {
		format := `{{if and .Module .Module.Main}}{{.Dir}}{{end}}`
		out, err := output(ctx, "go", slices.Concat([]string{"list", "-e", "-deps", "-test", "-f", format}, args)...)
		if err != nil {
			return "", err
		}
		dirs = append(dirs, strings.Fields(out)...)
	}
	slices.Sort(dirs)
	out, err := output(ctx, "git", slices.Concat([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "--"}, slices.Compact(dirs))...)
	if err != nil {
		return "", err
	}
	files := strings.Fields(out)
	slices.Sort(files)
	h := sha256.New()
	kernel, err := output(ctx, "uname", "-r")
	if err != nil {
		return "", err
	}
	fmt.Fprintln(h, l.name, l.flags, l.plain, l.raw, runtime.Version(), kernel)
	for _, f := range slices.Compact(files) {
		content, err := os.ReadFile(f)
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %x\n", f, sha256.Sum256(content))
	}
	base, _ := os.UserCacheDir()
	return pass(fmt.Sprintf("%s/passed/%s-%.10x", cmp.Or(os.Getenv("ASSAY_CACHE"), base+"/assay"), l.name, h.Sum(nil))), nil
}

// at returns when the lane passed, if that is less than passesLast ago.
func (p pass) at(now time.Time) (at time.Time, ok bool) {
	info, err := os.Stat(string(p))
	if err != nil || now.Sub(info.ModTime()) > passesLast {
		return time.Time{}, false
	}
	return info.ModTime(), true
}

// recorded is the text of a pass.
type recorded struct {
	Ended  map[string]string   // name of the test -> pass or skip
	Output map[string][]string // of skipped tests: it has the reason
}

func (p pass) record(r recorded) error {
	text, err := json.Marshal(r)
	return errors.Join(err, os.MkdirAll(filepath.Dir(string(p)), 0o755), os.WriteFile(string(p), text, 0o644))
}

// read returns what record has kept; without tests if the record is missing, too old or damaged.
func (p pass) read(now time.Time) (r recorded, at time.Time) {
	at, ok := p.at(now)
	text, err := os.ReadFile(string(p))
	if !ok || err != nil || json.Unmarshal(text, &r) != nil {
		return recorded{}, at
	}
	return r, at
}
