package local

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// firstUser and manyUsers are the range of users that a person may use.
const firstUser, manyUsers = 1_000_000_000, 65536

// person is an ordinary user of this machine. Its home has copies of the program, the images and
// the files of its commands, since it may read no others.
type person struct {
	t          *testing.T
	name, home string
	uid, gid   uint32
	path       string
}

// newPerson makes a user, with or without a range of users of its own.
func newPerson(t *testing.T, users bool) *person {
	t.Helper()
	p := &person{t: t, name: fmt.Sprintf("assay-%d", os.Getpid()), path: "/usr/local/bin:/usr/bin:/bin"}
	p.home = filepath.Join("/home", p.name)
	must := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v: %s", program, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	must("useradd", "--create-home", "--home-dir", p.home, "--shell", "/bin/sh", "-K", "SUB_UID_COUNT=0", "-K", "SUB_GID_COUNT=0", p.name)
	t.Cleanup(func() {
		if out, err := exec.Command("userdel", "--remove", p.name).CombinedOutput(); err != nil {
			t.Errorf("remove user %s: %v: %s", p.name, err, out)
		}
	})
	if users {
		all := fmt.Sprintf("%d-%d", firstUser, firstUser+manyUsers-1)
		must("usermod", "--add-subuids", all, "--add-subgids", all, p.name)
	}
	for which, number := range map[string]*uint32{"-u": &p.uid, "-g": &p.gid} {
		n, err := strconv.ParseUint(must("id", which, p.name), 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		*number = uint32(n)
	}
	p.copy(os.Getenv("ASSAY_LOCAL_PROGRAM"), "kubectl-assay")
	p.copy("testdata/crash.yaml", "crash.yaml")
	p.copy("../../../experiments/systems/basil.yaml", "systems/basil.yaml")
	archives, err := filepath.Glob(filepath.Join(os.Getenv("ASSAY_LOCAL_IMAGES"), "*.tar"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("archives of images: %q, %v", archives, err)
	}
	for _, a := range archives {
		p.copy(a, filepath.Join(".work/images", filepath.Base(a)))
	}
	return p
}

// copy a file into the home.
func (p *person) copy(from, to string) {
	p.t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(to, text)
}

// write a file in the home. The person owns the file and its directories.
func (p *person) write(to string, text []byte) {
	p.t.Helper()
	at := filepath.Join(p.home, to)
	errs := []error{os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, text, 0o755)}
	for dir := at; dir != p.home; dir = filepath.Dir(dir) {
		errs = append(errs, os.Lchown(dir, int(p.uid), int(p.gid)))
	}
	if err := errors.Join(errs...); err != nil {
		p.t.Fatal(err)
	}
}

// command of the person, in its home.
func (p *person) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.home, "kubectl-assay"), append(args, "--local")...)
	cmd.Dir = p.home
	cmd.Env = []string{"HOME=" + p.home, "USER=" + p.name, "PATH=" + p.path}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: p.uid, Gid: p.gid}, Setsid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// run a command to its end.
func (p *person) run(args ...string) (out, said string, code int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := p.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("%v: %v", args, err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// owns reports whether a user ID is the person's, or in the person's range.
func (p *person) owns(uid uint32) bool {
	return uid == p.uid || uid >= firstUser && uid < firstUser+manyUsers
}

// ownsFile reports whether a file exists and belongs to the person, or to the person's range.
func (p *person) ownsFile(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && p.owns(stat.Uid)
}

// processes of the person and of its pods.
func (p *person) processes() (found []string) {
	p.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, dir := range all {
		if p.ownsFile(dir) {
			name, _ := os.ReadFile(filepath.Join(dir, "comm")) // empty if it has ended
			found = append(found, filepath.Base(dir)+" "+strings.TrimSpace(string(name)))
		}
	}
	return found
}

// files of pods that are left in the person's home.
func (p *person) files() string { return filepath.Join(p.home, ".local/state/assay/local") }

// left lists the remains of a run, which must be empty.
func (p *person) left() []string {
	p.t.Helper()
	left := append(p.processes(), p.outside()...)
	if _, err := os.Stat(p.files()); err == nil {
		left = append(left, p.files())
	}
	return left
}

// outside lists mounts and control groups of the person's pods that others see. Tests as root have
// their own at the same time (lane local).
func (p *person) outside() (left []string) {
	p.t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, p.home+"/") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/*", "/sys/fs/cgroup/*/*"} {
		groups, err := filepath.Glob(pattern)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, dir := range groups {
			if p.ownsFile(dir) {
				left = append(left, dir)
			}
		}
	}
	return left
}

var ordinary = []string{"-f", "crash.yaml"}

// awaitSecond waits until the second trial of a run is half over.
func (p *person) awaitSecond() {
	p.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		n := outcomes(trials(p.t, p.results()))
		if n[v1alpha1.ReasonSucceeded] > 0 && n[v1alpha1.ReasonInProgress] > 0 && len(p.processes()) > 10 {
			break
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("no second trial began: %v", n)
		}
	}
	time.Sleep(3 * time.Second)
}

func (p *person) results() string { return filepath.Join(p.home, "assay-results") }

// An ordinary user gets verdicts like root. The results belong to the user. The plan, the report
// and the bundle name the settings that could not be enforced.
func TestAnOrdinaryUserRunsTrials(t *testing.T) {
	p := newPerson(t, true)
	if out, said, code := p.run(append([]string{"plan"}, ordinary...)...); code != 0 || !strings.Contains(out, "the largest trial fits on 1 node") || !strings.Contains(said, "limits of memory are not enforced") {
		t.Errorf("the plan: exit code %d\n%s\n%s", code, said, out)
	}
	out, said, code := p.run(append([]string{"run", "--wait"}, ordinary...)...)
	if !judged(code) {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	const without = "none: one machine, no cluster, without root: limits of memory and weights of processors are not enforced"
	for _, want := range []string{"both-work", "4 of 4 planned trials valid", without, "this-machine"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
	if !strings.Contains(said, "limits of memory are not enforced") {
		t.Errorf("the run does not say what it leaves undone:\n%s", said)
	}
	if left := p.left(); len(left) > 0 {
		t.Errorf("left after the run: %q", left)
	}
	if err := filepath.WalkDir(p.results(), func(path string, _ fs.DirEntry, err error) error {
		info, statErr := os.Lstat(path)
		if err := errors.Join(err, statErr); err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != p.uid || stat.Gid != p.gid {
			t.Errorf("%s does not belong to the user: %+v", path, info.Sys())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range validTrial(t, filepath.Join(p.results(), "crash", "configmaps")).Pods {
		if r := pod.Resources; r == nil || r.MemoryMaxBytes < 1<<20 || r.CPUMeanCores <= 0 || r.CPUMeanCores > 2 {
			t.Errorf("of the use of %s is known: %+v", pod.Name, r)
		}
	}
	if _, said, code := p.run("bundle", "crash", "-o", "crash.tar.gz"); code != 0 {
		t.Fatalf("the bundle: exit code %d\n%s", code, said)
	}
	if out, said, code := p.run("report", "--file", "crash.tar.gz"); code != 0 || !strings.Contains(out, without) {
		t.Errorf("the bundle's report: exit code %d\n%s\n%s", code, said, out)
	}
	if _, said, code := p.run(append([]string{"run"}, ordinary...)...); code != 1 || !strings.Contains(said, "complete") {
		t.Errorf("a second run of the same name: exit code %d\n%s", code, said)
	}
}

// When the user's command is killed, the kernel ends its pods at once. The next run removes the
// files, and repeats only the interrupted trial.
func TestAnOrdinaryUsersKilledRunGoesOn(t *testing.T) {
	p := newPerson(t, true)
	cmd := p.command(t.Context(), append([]string{"run", "--wait"}, ordinary...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.awaitSecond()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	// A busy machine takes seconds until killed processes have a turn to end.
	for deadline := time.Now().Add(30 * time.Second); len(p.processes()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("processes that outlive the command: %q", p.processes())
		}
	}
	if left := p.outside(); len(left) > 0 {
		t.Errorf("mounts or control groups outlive the command: %q", left)
	}
	if _, err := os.Stat(p.files()); err != nil {
		t.Fatalf("the test killed nothing: %v", err)
	}
	before := trials(t, p.results())
	out, said, code := p.run(append([]string{"run", "--wait"}, ordinary...)...)
	if !judged(code) || !strings.Contains(out, "4 of 4 planned trials valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	if left := p.left(); len(left) > 0 {
		t.Errorf("left after the run: %q", left)
	}
	after := trials(t, p.results())
	for name := range before {
		was, is := before[name], after[name]
		if plan.Outcome(&was) == v1alpha1.ReasonSucceeded && (is.UID != was.UID || is.ResourceVersion != was.ResourceVersion) {
			t.Errorf("trial %s was complete, and has changed", name)
		}
	}
	if n := outcomes(after); n[v1alpha1.ReasonSucceeded] != 4 || len(after) > 5 {
		t.Errorf("trials: %v; want 4 that succeeded, and the one that was cut: %q", n, reasons(after))
	}
}

func TestAnOrdinaryUsersCtrlCCleansUp(t *testing.T) {
	p := newPerson(t, true)
	cmd := p.command(t.Context(), append([]string{"run", "--wait"}, ordinary...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); len(p.processes()) < 15; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no pod began: %q\n%s", p.processes(), &said)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code has the reason
	if code := cmd.ProcessState.ExitCode(); code != 130 || strings.Count(said.String(), "kubectl assay:") != 1 {
		t.Errorf("exit code %d, want 130, and one message:\n%s", code, &said)
	}
	if left := p.left(); len(left) > 0 {
		t.Errorf("left after Ctrl-C: %q", left)
	}
}

// Without root, links are shaped and faults cut them: the kernel's own queues do it.
func TestAnOrdinaryUsersFaults(t *testing.T) {
	p := newPerson(t, true)
	p.copy("testdata/faults.yaml", "faults.yaml")
	p.copy(systemWithARole(t, "../../.."), "systems/basil.yaml")
	out, said, code := p.run("run", "--wait", "-f", "faults.yaml")
	if code != 0 || !strings.Contains(out, "1 of 1 planned trial valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	trial := validTrial(t, filepath.Join(p.results(), "faults", "configmaps"))
	acted := map[string]int{}
	for i := range trial.Faults {
		f := &trial.Faults[i]
		if f.Error != "" {
			t.Errorf("%s: %s", f.ID, f.Error)
		}
		acted[f.Fault+" "+f.Kind]++
	}
	for _, what := range []string{"crash Kill", "crash Revive", "stop Pause", "stop Resume", "cut Cut", "cut Heal", "slow Degrade", "slow Restore"} {
		if acted[what] == 0 {
			t.Errorf("nothing did %s; all: %v", what, acted)
		}
	}
	if left := p.left(); len(left) > 0 {
		t.Errorf("left after the run: %q", left)
	}
	t.Logf("links are shaped by %s", trial.Network.Backend)
}

// Machines that answer SSH, with a shared directory, run without root. A person cannot open a shell
// on them, and gets an error.
func TestAnOrdinaryUsersMachines(t *testing.T) {
	p := newPerson(t, true)
	p.copy("testdata/shared.yaml", "shared.yaml")
	out, said, code := p.run("run", "--wait", "-f", "shared.yaml")
	if code != 0 || !strings.Contains(out, "6 of 6 planned trials valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	for name := range trialsOf(t, p.results(), "shared") {
		if _, said, code := p.run("ssh", name, "m1"); code != 1 || !strings.Contains(said, "ssh to a machine here needs root") {
			t.Errorf("ssh: exit code %d\n%s", code, said)
		}
		break
	}
	if left := p.left(); len(left) > 0 {
		t.Errorf("left after the run: %q", left)
	}
}

// Plan and run reject fields that need root, by name, before they make any object.
func TestAnOrdinaryUserIsRefusedWhatNeedsRoot(t *testing.T) {
	p := newPerson(t, true)
	system, err := os.ReadFile("../../../experiments/systems/basil.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const request = "resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {memory: 1Gi}}"
	const files = "    files: &cluster\n"
	const huge = "resources: {limits: {hugepages-2Mi: 64Mi, memory: 1Gi}}"
	const at = "System basil: spec.replicas.containers[0] (basil)"
	for name, tc := range map[string]struct {
		changes []string // of the System: old, new, ...
		args    []string
		want    string
	}{
		"eBPF":           {nil, []string{"--set", "network.backend=EDT"}, "spec.network.backend: EDT loads eBPF"},
		"CPU limit":      {[]string{request, "resources: {limits: {cpu: 500m}}"}, nil, at + ".resources.limits.cpu"},
		"huge pages":     {[]string{request, huge}, nil, at + ".resources.limits.hugepages-2Mi"},
		"a huge volume":  {[]string{request, huge, files, "    volumes: [{name: ring, medium: HugePages, mountPath: /ring, size: 64Mi}]\n" + files}, nil, "System basil: spec.replicas.volumes[0] (ring)"},
		"a capability":   {[]string{request, "runAsUser: 0\n      capabilities: [IPC_LOCK]"}, nil, at + ".capabilities: IPC_LOCK"},
		"a user too far": {[]string{request, "runAsUser: 70000"}, nil, at + ".runAsUser"},
	} {
		t.Run(name, func(t *testing.T) {
			text := string(system)
			for change := range slices.Chunk(tc.changes, 2) {
				if !strings.Contains(text, change[0]) {
					t.Fatalf("the System has no %q", change[0])
				}
				text = strings.Replace(text, change[0], change[1], 1)
			}
			p.write("systems/basil.yaml", []byte(text))
			for _, verb := range []string{"plan", "run"} {
				if out, said, code := p.run(slices.Concat([]string{verb}, ordinary, tc.args)...); code != 1 || !strings.Contains(said, tc.want) {
					t.Errorf("%s: exit code %d; want %q\n%s\n%s", verb, code, tc.want, said, out)
				}
			}
		})
	}
	if left := append(p.processes(), p.outside()...); len(left) > 0 {
		t.Errorf("left after refusals: %q", left)
	}
}

// Before it makes any object, the command lists everything that root must set up, with the commands
// for it.
func TestAnOrdinaryUserIsToldWhatIsMissing(t *testing.T) {
	p := newPerson(t, false)
	for name, tc := range map[string]struct {
		path  string
		wants []string
	}{
		"users":            {"/usr/bin:/bin", []string{"Root must set up these once", "in /etc/subuid", "usermod --add-subuids", "in /etc/subgid", "usermod --add-subgids"}},
		"users, a package": {p.home, []string{"newuidmap: install the package uidmap", "newgidmap: install the package uidmap", "in /etc/subuid"}},
	} {
		t.Run(name, func(t *testing.T) {
			p.path = tc.path
			_, said, code := p.run(append([]string{"run", "--wait"}, ordinary...)...)
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			for _, want := range tc.wants {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
		})
	}
	if _, err := os.Stat(p.results()); err == nil {
		t.Error("a folder of results was made")
	}
}

// A trial that waits for an image names the image and the reason: the image does not exist, or it
// has files of a user that the namespace lacks.
func TestAnOrdinaryUsersTrialNamesTheImageThatItLacks(t *testing.T) {
	p := newPerson(t, true)
	p.write(".work/images/far.tar", imageOf(t, "lab/far:dev", &tar.Header{Name: "data", Typeflag: tar.TypeReg, Mode: 0o644, Uid: 70000, Gid: 5}))
	system, err := os.ReadFile("../../../experiments/systems/basil.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string]string{
		"lab/far:dev":             "unpack image lab/far:dev: data: it belongs to user 70000 and group 5",
		"localhost:1/nowhere:dev": "image localhost:1/nowhere:dev is in none of .work/images",
	} {
		t.Run(image, func(t *testing.T) {
			p.write("systems/basil.yaml", []byte(strings.ReplaceAll(string(system), "image: assay/basil:dev", "image: "+image)))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := p.command(ctx, append([]string{"run", "--wait"}, ordinary...)...)
			errs, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			told := false
			for lines := bufio.NewScanner(errs); lines.Scan(); {
				said.WriteString(lines.Text() + "\n")
				if !told && strings.Contains(lines.Text(), "deploying, waiting for") && strings.Contains(lines.Text(), want) {
					told = true
					cancel()
				}
			}
			_ = cmd.Wait() // it was interrupted
			if !told {
				t.Errorf("it does not say %q while it waits:\n%s", want, &said)
			}
		})
		if err := os.RemoveAll(p.results()); err != nil {
			t.Fatal(err)
		}
	}
	if left := p.left(); len(left) > 0 {
		t.Errorf("left after the runs: %q", left)
	}
}

// imageOf is an archive with an image of one empty file.
func imageOf(t *testing.T, ref string, file *tar.Header) []byte {
	t.Helper()
	var layer, archive bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := errors.Join(w.WriteHeader(file), w.Close()); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.Write(tag, img, &archive); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// An ordinary user's data set is prepared once, in the user's home. The trials of a second
// experiment verify their copies of it.
func TestAnOrdinaryUsersDatasetIsPreparedOnce(t *testing.T) {
	p := newPerson(t, true)
	p.copy("testdata/tabled.yaml", "tabled.yaml")
	uid := ""
	for _, name := range []string{"first", "second"} {
		out, said, code := p.run("run", "--wait", "--name", name, "-f", "tabled.yaml")
		if code != 0 || !strings.Contains(out, "2 of 2 planned trials valid") || !strings.Contains(out, "Data sets") {
			t.Fatalf("%s: exit code %d\n%s\n%s", name, code, said, out)
		}
		set := keptDataset(t, filepath.Join(p.home, ".cache/assay/datasets"))
		if uid == "" {
			uid = string(set.UID)
		}
		if string(set.UID) != uid {
			t.Errorf("%s: the set was prepared again", name)
		}
	}
	if left := p.left(); len(left) > 0 {
		t.Errorf("left after the runs: %q", left)
	}
}

// Every pod has the agent. If the command cannot get the agent's image, it ends at once, names the
// places that it searched, and leaves no file.
func TestAnOrdinaryUsersRunWithoutTheAgentsImageEnds(t *testing.T) {
	p := newPerson(t, true)
	out, said, code := p.run(append([]string{"run", "--wait", "--local-agent-image", "localhost:1/nowhere:dev"}, ordinary...)...)
	if want := "image localhost:1/nowhere:dev is in none of .work/images"; code != 1 || !strings.Contains(said, want) {
		t.Errorf("exit code %d, want 1 with %q:\n%s\n%s", code, want, said, out)
	}
	if left := p.left(); len(left) > 0 {
		t.Errorf("left after the run: %q", left)
	}
}
