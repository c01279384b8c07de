package machine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/imported"
	"assay.dev/assay/operator/internal/results/parsers"
)

// The test binary is also the launcher of a machine, and the machine, in processes of their own.
const (
	launchVariable = "ASSAY_TEST_LAUNCH"
	serveVariable  = "SERVE_TEST_MACHINE"
)

func TestMain(m *testing.M) {
	dir, config := os.Getenv(launchVariable), os.Getenv(serveVariable)
	if dir == "" && config == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	os.Unsetenv(launchVariable)
	os.Unsetenv(serveVariable)
	var err error
	code := 0
	if dir != "" {
		err = launcher.Serve(ctx, launcher.Options{Name: "m", RunDir: dir, OutDir: dir, OutputLimit: 1 << 20, Stdout: os.Stdout, Stderr: os.Stderr})
	} else {
		var c *Config
		if c, err = ReadConfig(config); err == nil {
			code, err = c.Run(ctx, os.Environ(), os.Stdout, os.Stderr)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// lab is a set of machines of a trial, each as in its pod. Each has a launcher as process 1 of a
// PID namespace, a network namespace, and its own /etc/hosts and /etc/passwd. A bridge joins them.
type lab struct {
	machines []*box
	// outside is a network namespace on the same bridge. No machine of the trial is in it.
	outside string
}

type box struct {
	t      *testing.T
	config Config
	run    string

	namespace, ip string
	client        *launcher.Client

	// uid of the machine's user; -1: that of the test. mount is a directory to mount at /mnt.
	uid   int
	mount string
}

// newLab makes n machines m0, m1, ...; m0 runs the script.
func newLab(t *testing.T, n int, script *Script) *lab {
	t.Helper()
	need(t, "ssh", "scp", "unshare", "ip", "python3", "bash")
	if os.Getuid() != 0 {
		t.Skip("namespaces of their own for machines need root")
	}
	keys := t.TempDir()
	if err := MakeKeys(keys); err != nil {
		t.Fatal(err)
	}
	bridge := newBridge(t, n+1)
	var hosts []protocol.MachineHost
	for i := range n {
		hosts = append(hosts, protocol.MachineHost{IP: fmt.Sprintf("10.213.7.%d", i+1), Names: []string{fmt.Sprintf("m%d", i), fmt.Sprintf("m%d.lab.example", i)}})
	}
	l := &lab{outside: fmt.Sprintf("%s-%d", bridge, n)}
	for i, h := range hosts {
		run, err := os.MkdirTemp("", "m") // sockets have short paths only
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(run) })
		b := &box{t: t, uid: -1, run: run, namespace: fmt.Sprintf("%s-%d", bridge, i), ip: h.IP, config: Config{
			Name: h.Names[0], User: "author", Home: filepath.Join(run, "home"), Port: defaultPort, Keys: keys, Hosts: hosts, HostsFile: "/etc/hosts",
			OutDir: run, RunDir: run,
		}}
		if i == 0 {
			b.config.Script = (*protocol.MachineScript)(script)
		}
		l.machines = append(l.machines, b)
	}
	return l
}

// newBridge makes n network namespaces with an address each, and a bridge that joins them.
func newBridge(t *testing.T, n int) (name string) {
	t.Helper()
	name = fmt.Sprintf("assay%d", os.Getpid()%100000)
	hub := name + "-hub" // in the host's own namespace, filters of a container runtime would apply
	ip := func(args string) error {
		out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, out)
		}
		return nil
	}
	t.Cleanup(func() {
		for i := range n {
			_ = ip(fmt.Sprintf("netns del %s-%d", name, i))
		}
		_ = ip("netns del " + hub)
	})
	commands := []string{"netns add " + hub, "-n " + hub + " link add bridge type bridge", "-n " + hub + " link set bridge up"}
	for i := range n {
		space, outer := fmt.Sprintf("%s-%d", name, i), fmt.Sprintf("port%d", i)
		commands = append(commands, "netns add "+space, "-n "+hub+" link add "+outer+" type veth peer name eth0 netns "+space,
			"-n "+hub+" link set "+outer+" master bridge up",
			fmt.Sprintf("-n %s addr add 10.213.7.%d/24 dev eth0", space, i+1), "-n "+space+" link set eth0 up", "-n "+space+" link set lo up")
	}
	for _, c := range commands {
		if err := ip(c); err != nil {
			t.Skipf("this host gives no network namespaces: %v", err)
		}
	}
	return name
}

// boot starts a machine from an image, the root of a file system.
func (b *box) boot(image string) {
	b.t.Helper()
	etc := filepath.Join(b.run, "etc")
	self, err := os.Executable()
	if err := errors.Join(err, os.Mkdir(b.config.Home, 0o755)); err != nil {
		b.t.Fatal(err)
	}
	uid, gid, as := os.Getuid(), os.Getgid(), ""
	if b.uid > 0 {
		uid, gid = b.uid, b.uid
		as = fmt.Sprintf("echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start && exec setpriv --reuid=%[1]d --regid=%[1]d --clear-groups ", uid)
		self = b.takeAlong(self)
	}
	setup := SetUp{User: b.config.User, Home: "/home/author", UID: uid, GID: gid, HomeVolume: b.config.Home, Etc: etc, Root: image}
	if err := setup.Run(); err != nil {
		b.t.Fatal(err)
	}
	// The home has another path here than in the image.
	passwd := filepath.Join(etc, "passwd")
	text, err := os.ReadFile(passwd)
	if err == nil {
		err = os.WriteFile(passwd, []byte(strings.ReplaceAll(strings.Replace(string(text), "/home/author", b.config.Home, 1), ":/bin/sh\n", ":/bin/bash\n")), 0o644)
	}
	config, errConfig := json.Marshal(b.config)
	if err := errors.Join(err, errConfig, os.WriteFile(filepath.Join(b.run, "config"), config, 0o644)); err != nil {
		b.t.Fatal(err)
	}
	if b.uid > 0 {
		if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", uid, gid), b.run).CombinedOutput(); err != nil {
			b.t.Fatalf("chown: %v: %s", err, out)
		}
	}
	mount := fmt.Sprintf("mount --bind %[1]s/hosts /etc/hosts && mount --bind %[1]s/passwd /etc/passwd && ", etc)
	if b.mount != "" {
		mount += "mount --bind " + b.mount + " /mnt && "
	}
	mount += cmp.Or(as, "exec ") + self
	c := exec.Command("ip", "netns", "exec", b.namespace, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", mount)
	c.Env = append(os.Environ(), launchVariable+"="+b.run)
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		// --kill-child has no effect after a process changes its user.
		children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", c.Process.Pid))
		if err != nil {
			b.t.Error(err)
		}
		for _, child := range strings.Fields(string(children)) {
			end(child) // the end of a PID namespace's first process ends all others
		}
		c.Process.Kill()
		c.Wait()
	})
	socket := filepath.Join(b.run, "m.sock")
	await(b.t, "the launcher answers", func() bool {
		b.client, err = launcher.Dial(b.t.Context(), socket, func(launcher.State) {})
		return err == nil
	})
	b.t.Cleanup(func() { b.client.Close() })
	b.call(launcher.Request{Start: &launcher.Start{Command: []string{self}, Env: []string{serveVariable + "=" + filepath.Join(b.run, "config")}, Respawn: true}})
	b.awaitSSH()
}

// takeAlong copies the files that the machine's user must be able to read into the user's
// directory: the keys, and this program.
func (b *box) takeAlong(program string) string {
	b.t.Helper()
	keys, own := filepath.Join(b.run, "keys"), filepath.Join(b.run, "machine.test")
	if out, err := exec.Command("sh", "-c", fmt.Sprintf("cp -r %s %s && cp %s %s", b.config.Keys, keys, program, own)).CombinedOutput(); err != nil {
		b.t.Fatalf("copy for the machine's user: %v: %s", err, out)
	}
	b.config.Keys = keys
	return own
}

// awaitSSH waits until the machine answers, or its script is over.
func (b *box) awaitSSH() {
	b.t.Helper()
	await(b.t, b.config.Name+" answers SSH", func() bool {
		if b.call(launcher.Request{Look: &launcher.Look{}}).State.Process == launcher.Exited {
			return true
		}
		_, code := b.do("exec 3<>/dev/tcp/127.0.0.1/22")
		return code == 0
	})
}

func (b *box) call(r launcher.Request) launcher.Response {
	b.t.Helper()
	response, err := b.client.Call(b.t.Context(), r)
	if err != nil {
		b.t.Fatalf("%s: %v", b.config.Name, err)
	}
	return response
}

// do runs a command on the machine, as the script would.
func (b *box) do(command string) (string, int) {
	b.t.Helper()
	r := b.call(launcher.Request{Run: &launcher.Run{ID: command + fmt.Sprint(time.Now().UnixNano()), Command: []string{"bash", "-c", command}, Env: []string{"HOME=" + b.config.Home}, Dir: b.config.Home, Timeout: 3 * time.Minute}})
	if r.Run.Error != "" {
		b.t.Fatalf("%s: %q: %s", b.config.Name, command, r.Run.Error)
	}
	return r.Run.Output, r.Run.ExitCode
}

// awaitEnd waits for the exit of the script, and then for the rest of its output. It waits at most
// two seconds for that, as the agent does: a process that lives on may hold the output open.
func (b *box) awaitEnd() launcher.State {
	b.t.Helper()
	var state launcher.State
	var exited time.Time
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if state = *b.call(launcher.Request{Look: &launcher.Look{}}).State; state.Process == launcher.Exited {
			if exited.IsZero() {
				exited = time.Now()
			}
			if state.OutputComplete || time.Since(exited) > 2*time.Second {
				return state
			}
			continue
		}
		if time.Now().After(end) {
			b.t.Fatalf("the script does not end: %+v", state)
		}
	}
}

func (b *box) events() []Event {
	b.t.Helper()
	file, err := os.Open(filepath.Join(b.run, RecordFile))
	if err != nil {
		b.t.Fatal(err)
	}
	defer file.Close()
	events, err := ReadRecord(file)
	if err != nil {
		b.t.Fatal(err)
	}
	return events
}

// image is a root with the artifact of systems/sweep in the home of its user.
func image(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"etc", "bin", "home/author"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("root:x:0:0::/root:/bin/bash\nauthor:x:1000:1000::/elsewhere:/bin/false\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(root, "home/author/artifact"), os.DirFS("../../../../systems/sweep/artifact")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(root, "home/author/artifact/run.sh"), fs.FileMode(0o755)); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestAnArtifactRunsUnchanged(t *testing.T) {
	left := filepath.Join(t.TempDir(), "results")
	run := &Script{Command: []string{"./run.sh"}, Dir: "artifact", Deadline: time.Minute, ResultsTo: left}
	l := newLab(t, 3, run)
	m0 := l.machines[0]
	run.Results = filepath.Join(m0.config.Home, "results/table1.tsv")
	root := image(t)
	for i := len(l.machines) - 1; i >= 0; i-- {
		l.machines[i].boot(root)
	}
	state := m0.awaitEnd()
	if state.ExitCode != 0 {
		t.Fatalf("the script exited with %d: %s", state.ExitCode, state.Tail)
	}
	file, err := os.Open(left)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	report, err := parsers.Parse(parsers.FormatRows, file, parsers.Options{Clients: 1, Windows: timeline.Windows{Measure: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	checkRows(t, report.Table)
	sessions := map[string]int{}
	for _, s := range report.Table.Sessions {
		sessions[s.Machine+" "+s.Kind]++
	}
	if sessions["m0 script"] != 1 || sessions["m1 session"] < 15 || sessions["m2 session"] < 15 {
		t.Errorf("the report tells of %v, want the script of m0 and the sessions of m1 and m2", sessions)
	}
	if _, err := os.Stat(filepath.Join(m0.config.Home, "results/logs/m2/queue-4.log")); err != nil {
		t.Errorf("the servers' logs did not come back: %v", err)
	}
	var script Event
	for _, e := range m0.events() {
		if e.Kind == "script" {
			script = e
		}
	}
	if script.ExitCode == nil || *script.ExitCode != 0 || script.Command != "./run.sh" {
		t.Errorf("the record of the script is %+v", script)
	}
	began := 0
	for _, e := range l.machines[1].events() {
		if e.Kind == "session" && strings.HasPrefix(e.Command, "pkill") {
			began++
			if e.From != "m0" || e.ExitCode == nil || *e.ExitCode != 0 || e.BeginUnixNanos < script.BeginUnixNanos || e.EndUnixNanos > script.EndUnixNanos {
				t.Errorf("a session is recorded as %+v with exit code %s; the script ran from %d to %d", e, exitText(e), script.BeginUnixNanos, script.EndUnixNanos)
			}
		}
	}
	if began != 4 {
		t.Errorf("m1 recorded %d sessions with pkill, want one for each row", began)
	}
}

// checkRows reads the script's table with the format in the System of systems/sweep.
func checkRows(t *testing.T, table *results.ScriptTable) {
	t.Helper()
	var system v1alpha1.System
	text, err := os.ReadFile("../../../../systems/sweep/system.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(text, &system)
	}
	if err != nil {
		t.Fatal(err)
	}
	var points []v1alpha1.Point
	for i, p := range []string{"lock 1", "lock 4", "queue 1", "queue 4"} {
		policy, parts, _ := strings.Cut(p, " ")
		points = append(points, v1alpha1.Point{Index: int32(i), Coordinates: map[string]string{"policy": policy, "parts": parts}})
	}
	rows, err := imported.Rows(&system.Spec.Script.Results, table, points)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Missing != "" || r.Summary.Throughput <= 0 || r.Summary.P99Millis < r.Summary.P50Millis || r.Summary.P50Millis < 0.5 {
			t.Errorf("the row of %v is %+v", r.Coordinates, r)
		}
	}
}

func exitText(e Event) string {
	if e.ExitCode == nil {
		return "unknown"
	}
	return strconv.Itoa(*e.ExitCode)
}

func TestAMachineDiesWithAllThatRunsThereAndBootsWithout(t *testing.T) {
	l := newLab(t, 2, nil)
	root := image(t)
	// The boot command fails and leaves a daemon behind.
	l.machines[1].config.Boot = []string{"bash", "-c", "nohup sleep 602 >/dev/null 2>&1 & echo $USER $PWD >> booted; exit 3"}
	for _, m := range l.machines {
		m.boot(root)
	}
	m0, m1 := l.machines[0], l.machines[1]
	awaitPID(t, filepath.Join(m1.config.Home, "booted"))
	for _, name := range []string{"m1", "m1.lab.example", m1.ip} {
		if out, code := m0.do("ssh -o BatchMode=yes " + name + " 'echo $USER on $HOSTNAME'"); code != 0 || out != "author on m1\n" {
			t.Fatalf("ssh %s exited with %d and printed %q", name, code, out)
		}
	}
	daemon := "ssh m1 'nohup sleep 600 >/dev/null 2>&1 & setsid sleep 601 >/dev/null 2>&1 </dev/null &'"
	if out, code := m0.do(daemon); code != 0 {
		t.Fatalf("%s: %d: %s", daemon, code, out)
	}
	if out, _ := m0.do("ssh m1 'pgrep -c sleep'"); out != "3\n" {
		t.Fatalf("%q daemons run on m1 after the session, want its 2 and that of the boot command", out)
	}
	m1.call(launcher.Request{Kill: &launcher.Kill{ID: "crash"}})
	if out, code := m0.do("ssh -o ConnectTimeout=2 m1 true"); code != 255 {
		t.Errorf("ssh to a dead machine exited with %d: %s", code, out)
	}
	m1.call(launcher.Request{Revive: &launcher.Revive{ID: "boot"}})
	m1.awaitSSH()
	if out, _ := m0.do("ssh m1 'pgrep -c sleep'"); out != "1\n" {
		t.Errorf("%q daemons run on m1 after its boot, want that of the boot command alone", out)
	}
	// A script that kills all processes of its user loses only its session, as on a real machine.
	if _, code := m0.do("ssh m1 'kill -9 -1'"); code != 255 {
		t.Errorf("ssh that kills its own session exited with %d, want 255", code)
	}
	// Until the kernel has closed the port of a server that dies, it still accepts connections.
	out, code := m0.do("for i in {1..50}; do ssh m1 'echo back' 2>/dev/null && exit; sleep 0.1; done; exit 1")
	if code != 0 || out != "back\n" {
		t.Errorf("after kill -9 -1, ssh exited with %d: %s", code, out)
	}
	// The restart of the program was no boot.
	if text, err := os.ReadFile(filepath.Join(m1.config.Home, "booted")); err != nil || string(text) != strings.Repeat("author "+m1.config.Home+"\n", 2) {
		t.Errorf("the boot command wrote %q (%v), want a line for each of two boots", text, err)
	}
	var codes []string
	for _, e := range m1.events() {
		if e.Kind == "boot" {
			codes = append(codes, exitText(e))
		}
	}
	if strings.Join(codes, " ") != "3 3" {
		t.Errorf("the record has boot commands that exited with %v, want 3 twice", codes)
	}
}

// A boot command that never ends delays SSH only until the limit.
func TestABootCommandThatGoesOn(t *testing.T) {
	bootLimit = 300 * time.Millisecond
	defer func() { bootLimit = time.Minute }()
	c := &Config{Home: t.TempDir(), User: "author", Boot: []string{"sh", "-c", "echo $$ > pid; exec sleep 60"}}
	var lines bytes.Buffer
	began := time.Now()
	c.boot(nil, nil, NewRecorder("m1", nil, &lines), io.Discard, io.Discard)
	pid := awaitPID(t, filepath.Join(c.Home, "pid"))
	defer end(pid)
	if took := time.Since(began); took < bootLimit || took > 20*time.Second || !runs(pid) {
		t.Errorf("the machine waited %v for its boot command; it runs: %v", took, runs(pid))
	}
}

// Machines of a trial accept only clients with the trial's key. Every machine refuses others, and
// the trial's results count them. The refused clients come from another network namespace. They
// have the key of another trial or of an earlier attempt, or the right key and another user, or no
// key.
func TestStrangersAreRefusedAndCounted(t *testing.T) {
	left := filepath.Join(t.TempDir(), "results")
	l := newLab(t, 2, &Script{Command: []string{"bash", "-c", "until test -e go; do sleep 0.1; done"}, Deadline: 2 * time.Minute, ResultsTo: left})
	root := image(t)
	l.machines[1].boot(root)
	l.machines[0].boot(root)
	m0, m1 := l.machines[0], l.machines[1]
	old := t.TempDir()
	if err := MakeKeys(old); err != nil {
		t.Fatal(err)
	}
	keys, err := ReadKeys(old)
	if err != nil {
		t.Fatal(err)
	}
	known := filepath.Join(old, "known_hosts")
	if err := os.WriteFile(known, []byte(m1.ip+" "+authorized(keys.Host.PublicKey())), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := []string{"ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "IdentityAgent=none", "-o", "IdentitiesOnly=yes"}
	trusting := slices.Concat(plain, []string{"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"})
	other, own := filepath.Join(old, userKeyFile), filepath.Join(m1.config.Keys, userKeyFile)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"the key of another trial":          {slices.Concat(trusting, []string{"-i", other, "author@" + m1.ip, "true"}), "Permission denied"},
		"the trial's key, another user":     {slices.Concat(trusting, []string{"-i", own, "root@" + m1.ip, "true"}), "Permission denied"},
		"no key":                            {slices.Concat(trusting, []string{"-o", "IdentityFile=none", "author@" + m1.ip, "true"}), "Permission denied"},
		"the machine of the script":         {slices.Concat(trusting, []string{"-i", other, "author@" + m0.ip, "true"}), "Permission denied"},
		"the hosts that another trial knew": {slices.Concat(plain, []string{"-i", other, "-o", "UserKnownHostsFile=" + known, "author@" + m1.ip, "true"}), "Host key verification failed"},
	} {
		out, err := exec.Command("ip", append([]string{"netns", "exec", l.outside}, tc.args...)...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 255 || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: %v, %s; want exit code 255 and %q", name, err, out, tc.want)
		}
	}
	if out, code := m0.do(strings.Join(slices.Concat(trusting, []string{"-i", other, "author@" + m1.ip, "true"}), " ")); code != 255 || !strings.Contains(out, "Permission denied") {
		t.Errorf("an old key on a machine of the trial: exit code %d, %s", code, out)
	}
	if out, code := m0.do("ssh m1 true && touch go"); code != 0 {
		t.Fatalf("the trial's own key: exit code %d, %s", code, out)
	}
	m0.awaitEnd()
	refused := map[string]int{}
	all := 0
	for _, s := range sessionsLeft(t, left) {
		if s.Kind == "refused" {
			refused[s.Machine+" from "+s.From] += s.Count
			all += s.Count
		}
	}
	if refused["m1 from 10.213.7.3"] != 3 || refused["m1 from m0"] != 1 || refused["m0 from 10.213.7.3"] != 1 || all != 5 {
		t.Errorf("refused are %v, want 3 on m1 and 1 on m0 from outside, and 1 on m1 from m0", refused)
	}
}

// sessionsLeft reads the report of a script's machine as a trial does.
func sessionsLeft(t *testing.T, path string) []results.Session {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	report, err := parsers.Parse(parsers.FormatRows, file, parsers.Options{Clients: 1, Windows: timeline.Windows{Measure: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	return report.Table.Sessions
}

// A script that never ends is killed at its deadline, as an ordinary user and as root. The report
// names the command that it waited for.
func TestAScriptThatNeverEndsSaysWhatItWaitsFor(t *testing.T) {
	for user, uid := range map[string]int{"author": 65532, "root": 0} {
		t.Run(user, func(t *testing.T) {
			l := newLab(t, 2, &Script{Command: []string{"bash", "-c", "ssh m1 'sleep 600'; echo never"}, Deadline: 3 * time.Second})
			root := image(t)
			for _, i := range []int{1, 0} {
				l.machines[i].config.User, l.machines[i].uid = user, uid
				l.machines[i].boot(root)
			}
			state := l.machines[0].awaitEnd()
			if state.ExitCode != ExitDeadline || !strings.Contains(state.Tail, "did not end within 3s: `ssh m1 sleep 600` has run for ") {
				t.Errorf("the script exited with %d and its output ends in %q", state.ExitCode, state.Tail)
			}
			var said string
			for _, e := range l.machines[0].events() {
				if e.Kind == "deadline" {
					said = e.Message
				}
			}
			if !strings.Contains(said, "ssh m1 sleep 600") {
				t.Errorf("the record of the deadline says %q", said)
			}
		})
	}
}

func TestAScriptRunsOnce(t *testing.T) {
	l := newLab(t, 1, &Script{Command: []string{"bash", "-c", "echo begun >> begun; kill -9 -1"}, Deadline: time.Minute})
	l.machines[0].boot(image(t))
	state := l.machines[0].awaitEnd()
	text, err := os.ReadFile(filepath.Join(l.machines[0].config.Home, "begun"))
	if err != nil || string(text) != "begun\n" || state.ExitCode != exitLost || !strings.Contains(state.Tail, "does not run again") {
		t.Errorf("the script began %q times (%v); the machine exited with %d: %s", text, err, state.ExitCode, state.Tail)
	}
}

func TestDirectoriesAreEmptied(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755), os.WriteFile(filepath.Join(dir, ".hidden"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := EmptyDirectories(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := EmptyDirectories(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "empty the shared directory") {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// The files of a home had the times of their copies, one after the other. So make rebuilt the
// results of set-up, or failed without a compiler.
func TestFilesOfAHomeKeepTheirTimes(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	folder := filepath.Join(root, "home/author/artifact")
	if err := os.MkdirAll(filepath.Join(folder, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	made := time.Now().Add(-time.Hour).Truncate(time.Second)
	times := map[string]time.Time{"source.c": made, "bin/program": made.Add(time.Minute), "bin": made.Add(time.Minute), ".": made.Add(2 * time.Minute)}
	for _, name := range []string{"source.c", "bin/program", "bin", "."} { // inner entries first
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(path, time.Time{}, times[name]); err != nil {
			t.Fatal(err)
		}
	}
	setup := SetUp{User: "author", Home: "/home/author", UID: os.Getuid(), GID: os.Getgid(), HomeVolume: home, Etc: filepath.Join(home, "etc"), Root: root}
	if err := setup.Run(); err != nil {
		t.Fatal(err)
	}
	for name, want := range times {
		info, err := os.Stat(filepath.Join(home, "artifact", name))
		if err != nil || !info.ModTime().Equal(want) {
			t.Errorf("%s is of %v (%v), want %v", name, info.ModTime(), err, want)
		}
	}
}

func TestTheImagesOwnFilesOfSSHStay(t *testing.T) {
	home, keysDir := t.TempDir(), t.TempDir()
	if err := errors.Join(MakeKeys(keysDir), os.Mkdir(filepath.Join(home, ".ssh"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config": "Host *\n  ServerAliveInterval 5\n", "known_hosts": "github.com ssh-ed25519 AAAA", "id_ed25519": "theirs\n"} {
		if err := os.WriteFile(filepath.Join(home, ".ssh", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := ReadKeys(keysDir)
	if err != nil {
		t.Fatal(err)
	}
	c := &Config{User: "author", Home: home, Port: 22, Hosts: []protocol.MachineHost{{IP: "10.0.0.1", Names: []string{"m0"}}}}
	for range 2 { // a machine boots more than once
		if err := c.writeHome(keys); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(home, ".ssh", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got, want := read("config"), "Include assay_config\nHost *\n  ServerAliveInterval 5\n"; got != want {
		t.Errorf("config is %q, want %q", got, want)
	}
	if got, want := read(clientConfigFile), "Host *\n"+ciphersOf(ownConfig(home)); !strings.HasSuffix(got, want) {
		t.Errorf("%s is %q, want that it ends in %q", clientConfigFile, got, want)
	}
	key := strings.TrimSpace(authorized(keys.Host.PublicKey()))
	if got, want := read("known_hosts"), "github.com ssh-ed25519 AAAA\nm0 "+key+"\n10.0.0.1 "+key+"\n"; got != want {
		t.Errorf("known_hosts is %q, want %q", got, want)
	}
	if got := read("id_ed25519"); got != "theirs\n" {
		t.Errorf("the image's key is %q now", got)
	}
	if info, err := os.Stat(filepath.Join(home, ".ssh")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the mode of .ssh is %v, %v; ssh wants 0700", info.Mode(), err)
	}
}
