// Command test runs the tests of the repository in groups, cheap ones first, and
// sums them up.
//
//	go run ./hack/test [-flags='-run=TestX'] [-within=DURATION] GROUP...
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
// Two of these run beside a group before them, if that is among the GROUPs, since it leaves a processor idle: what runs of netem in the virtual machine beside
// infra, the rest of netem beside integration. Output stays in the order of the groups: see part.
//
// -within bounds all of it. What is not worth to begin any more is skipped and named, and what hangs is ended a few minutes later: whoever would cut this program off
// learns what a machine that is too slow did not get to, and not nothing. Tests find the instant in ASSAY_TEST_UNTIL: see operator/internal/testuntil.
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
	"os/signal"
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
	modules []string                                // directories of further modules, whose packages all belong here
	vm      string                                  // packages that begin with this are tested in a virtual machine, too,
	vmTests []selection                             // and so are these
	prepare func(context.Context) ([]string, error) // gets what the group needs; returns environment to add
	timed   bool                                    // its tests wait for others with deadlines, or are judged by instants: see undecided
	apart   []string                                // tests of which each part runs by itself: only the parts that failed are run again

	beside, vmBeside string // groups beside which this one, and what it does in a virtual machine, may run: see part
	vmPrepare        func(context.Context) ([]string, error)
}

// selection is some tests of a package.
type selection struct{ pkg, run string }

// The timeouts end what hangs. A busy machine takes many times as long as an idle one, and the first group compiles everything.
var groups = []group{
	{name: "unit", timeout: 30 * time.Minute, modules: []string{"hack/images", "hack/node-image"}},
	{name: "chart", timeout: 10 * time.Minute, prepare: func(ctx context.Context) ([]string, error) { return command(ctx, "hack/cluster/tools.sh", "helm") }},
	{name: "infra", timed: true, timeout: 40 * time.Minute, flags: []string{"-p=1", "-count=1"}, prepare: providers},
	{name: "integration", timeout: 40 * time.Minute, flags: []string{"-p=1", "-count=1"}, prepare: servers},
	{name: "netem", timed: true, timeout: 25 * time.Minute, flags: []string{"-p=1", "-count=1"}, vm: module + "operator/internal/netem",
		vmTests: []selection{
			{module + "operator/internal/agent", "^TestPodsProveTheirLinksWatchThemAndLeaveNoTrace$/^(EDT|Netem)$"},
			{module + "operator/internal/agent", "^TestAnAgentThatIsKilledAfterTheProof$/^(EDT|Netem)$"},
		},
		beside: "integration", vmBeside: "infra", vmPrepare: prepareVM},
	{name: "e2e", timed: true, timeout: 50 * time.Minute, flags: []string{"-p=1", "-count=1"}, prepare: deployed},
	{name: "install", timed: true, apart: []string{"TestOthers"}, timeout: 60 * time.Minute, flags: []string{"-p=1", "-count=1"}, prepare: installable},
}

// session is one run of this program.
type session struct {
	t       *tally
	bound   bound
	flags   []string // of go test
	groups  []group  // in order; one of them has its turn
	turn    int
	byGroup map[string][]string // packages
	run     func(context.Context, job, func(item)) end

	parts       []*part             // that were begun
	here, there map[string]*part    // those that were begun beside others, by group: its tests here, and in a virtual machine
	env         map[string][]string // of groups that have been prepared
}

func main() {
	flags := flag.String("flags", "", "further flags of go test, separated by spaces")
	limit := flag.Duration("within", 0, "skip what does not fit into this time; 0 is no limit")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends this program at once
	failed, err := run(ctx, flag.Args(), strings.Fields(*flags), *limit)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
	}
	if failed || err != nil {
		os.Exit(1) // the last line on stdout stays the sum
	}
}

func run(ctx context.Context, names, flags []string, limit time.Duration) (failed bool, err error) {
	s := newSession(os.Stdout)
	s.run, s.flags = runJob, flags
	for _, name := range names {
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
		if i < 0 {
			return false, fmt.Errorf("no group %q", name)
		}
		s.groups = append(s.groups, groups[i])
	}
	if s.bound, err = within(limit); err != nil {
		return false, err
	}
	if s.byGroup, err = packages(ctx); err != nil {
		return false, err
	}
	s.all(ctx)
	return s.t.failed > 0, nil
}

func newSession(w io.Writer) *session {
	return &session{t: newTally(w), here: map[string]*part{}, there: map[string]*part{}, env: map[string][]string{}}
}

// all runs the groups and says what came of it. Nothing runs any more when it returns.
func (s *session) all(ctx context.Context) {
	s.t.bound = s.bound
	s.inTurn(ctx)
	if s.t.passed+s.t.failed == 0 {
		s.t.fail("everything", "ran no test\n") // for want of time: as little a success as without that
	}
	s.t.close()
}

func (s *session) inTurn(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		for _, p := range s.parts {
			<-p.stopped
		}
	}()
	for i, g := range s.groups {
		s.turn = i
		s.t.begin(g.name)
		err := s.test(ctx, g)
		if ctx.Err() != nil {
			s.t.fail(g.name, "stopped by a signal\n")
			return
		}
		if err != nil {
			s.t.fail(g.name, err.Error()+"\n")
		}
		s.t.end()
	}
}

// packages sorts the packages that have tests into groups. Packages that do not
// load are kept (-e): go test says why, and that is a failure.
func packages(ctx context.Context) (map[string][]string, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles .Error}}{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}`
	ctx, cancel := context.WithTimeout(ctx, hangs)
	defer cancel()
	list := exec.CommandContext(ctx, "go", "list", "-e", "-f", format, "./...")
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

// test runs a group, or tells what came of the parts of it that were begun before.
func (s *session) test(ctx context.Context, g group) error {
	here, pkgs := s.here[g.name], s.byGroup[g.name]
	env := s.env[g.name]
	if here == nil {
		err := s.bound.late()
		if err == nil {
			env, err = s.bound.preparing(ctx, g)
		}
		if err != nil {
			return errors.Join(s.t.late(shorts(pkgs), err), s.testThere(ctx, g, false))
		}
		s.besides(ctx, g.name)
	}
	if here == nil && len(pkgs) > 0 {
		here = s.beginHere(ctx, g, env, "")
	}
	if here != nil {
		if err := here.tell(s.t); err != nil {
			return errors.Join(err, s.testThere(ctx, g, false))
		}
		s.t.aside(here, "")
		var again error
		s.t.apart = g.apart
		s.t.retry(pkgs, nil, func(pkg string, tests []string) {
			for _, run := range s.t.selections(pkg, tests) {
				again = errors.Join(again, s.alone(ctx, g, short(pkg), g.job(s.bound, env, []string{pkg}, s.flags, []string{run})))
			}
		})
		if again != nil {
			return errors.Join(again, s.testThere(ctx, g, false))
		}
		if g.timed {
			s.t.undecided()
		}
	}
	for _, dir := range g.modules {
		j := g.job(s.bound, env, []string{"./..."}, s.flags)
		j.dir = dir
		if err := s.alone(ctx, g, dir, j); err != nil {
			return err
		}
	}
	return s.testThere(ctx, g, true)
}

// beginHere begins the group's packages in the kernel at hand. Not beside what runs of it in a virtual machine: three at a time are too many.
func (s *session) beginHere(ctx context.Context, g group, env []string, beside string) *part {
	pkgs := s.byGroup[g.name]
	return s.begin(ctx, g, s.there[g.name], part{what: shorts(pkgs), beside: beside}, func() []job {
		return []job{g.job(s.bound, env, pkgs, s.flags)} // go test takes flags that it does not know only behind packages
	})
}

// testThere tests packages once more, in a virtual machine, or says why there is none. What was begun is told of in any case.
func (s *session) testThere(ctx context.Context, g group, begin bool) error {
	there := s.there[g.name]
	if g.vm == "" || there == nil && !begin {
		return nil
	}
	before := s.t.failures()
	s.t.again()
	if there == nil {
		there = s.beginThere(ctx, g, "")
	}
	if err := there.tell(s.t); err != nil {
		return err
	}
	s.t.aside(there, " in a virtual machine")
	var err error
	s.t.retry(s.byGroup[g.name], before, func(pkg string, tests []string) {
		for _, args := range g.runsInVM(pkg, tests, g.args(), s.flags) {
			err = errors.Join(err, s.alone(ctx, g, g.inVM(), vmJob(args...)))
		}
	})
	return err
}

// beginThere begins what runs in a virtual machine.
func (s *session) beginThere(ctx context.Context, g group, beside string) *part {
	return s.begin(ctx, g, nil, part{what: []string{g.inVM()}, beside: beside}, func() []job {
		inside := slices.DeleteFunc(slices.Clone(s.byGroup[g.name]), func(p string) bool { return !strings.HasPrefix(p, g.vm) })
		jobs := []job{vmJob(slices.Concat(g.args(), inside, s.flags)...)}
		for _, t := range g.vmTests {
			jobs = append(jobs, vmJob(slices.Concat(g.args(), []string{"-run=" + t.run, t.pkg}, s.flags)...)) // a -run of the caller comes last, and holds
		}
		return jobs
	})
}

// alone runs one more job of the group's, now.
func (s *session) alone(ctx context.Context, g group, what string, j job) error {
	return s.begin(ctx, g, nil, part{what: []string{what}}, func() []job { return []job{j} }).tell(s.t)
}

// args of go test for the group, with which it runs in a virtual machine: the timeout is by the clock of that.
func (g group) args() []string {
	return slices.Concat([]string{"-json", "-timeout=" + g.timeout.String()}, g.flags)
}

// job is a go test of the group here.
func (g group) job(b bound, env []string, more ...[]string) job {
	args := g.args()
	args[1] = "-timeout=" + b.timeout(g.timeout).String()
	return job{dir: ".", env: env, command: slices.Concat([]string{"go", "test"}, args, slices.Concat(more...))}
}

func vmJob(args ...string) job {
	return job{dir: ".", command: append([]string{"hack/vm/test.sh"}, args...)}
}

// inVM is what the group's second part is called.
func (g group) inVM() string { return g.name + " in a virtual machine" }

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

// noVM is the status of hack/vm/test.sh on a machine that cannot have one; go test has none like it.
const noVM = 3
