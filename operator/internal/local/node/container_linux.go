package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// cgroupParent is the parent of all containers, in each hierarchy.
const cgroupParent = "assay-local"

// runtimeOCI runs containers with runc, or a program with the same command line.
type runtimeOCI struct {
	program string
	// state is the folder for the state of the program and the bundles of the containers.
	state string
	// granted are the capabilities of this process, which containers may get.
	granted map[string]bool
	// rootless: there are no control groups.
	rootless bool
}

// container is a container that runs or has run.
type container struct {
	id, bundle, log string
	process         *os.Process
	began           time.Time
	// ended is closed when the container has ended. exit says how.
	ended chan struct{}
	exit  exit
}

type exit struct {
	code, signal int
	oom          bool
}

// capabilityNames in the order of their numbers.
var capabilityNames = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP
	LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT
	SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE
	AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

// ownCapabilities returns the capabilities of this process.
func ownCapabilities() (map[string]bool, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, fmt.Errorf("read the capabilities of this process: %w", err)
	}
	own := map[string]bool{}
	for line := range strings.Lines(string(status)) {
		value, is := strings.CutPrefix(line, "CapEff:")
		if !is {
			continue
		}
		bits, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("read the capabilities of this process: %w", err)
		}
		for i, name := range capabilityNames {
			own[name] = bits>>i&1 == 1
		}
	}
	return own, nil
}

// start starts a container whose bundle is ready.
func (r *runtimeOCI) start(ctx context.Context, c *container) error {
	output, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) // #nosec G302 -- what it prints is for everybody
	if err != nil {
		return fmt.Errorf("keep what container %s prints: %w", c.id, err)
	}
	defer output.Close()
	pidFile, said := filepath.Join(c.bundle, "pid"), filepath.Join(c.bundle, "runtime.log")
	cmd := r.command(ctx, "--log", said, "run", "--detach", "--pid-file", pidFile, "--bundle", c.bundle, c.id)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		why, _ := os.ReadFile(said) // empty: the runtime gave no reason
		return fmt.Errorf("start container %s: %w: %s", c.id, err, lastMessage(why))
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return fmt.Errorf("find the process of container %s: %w", c.id, err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("find the process of container %s: %w", c.id, err)
	}
	// The runtime has ended, so its child is now a child of this process: see Machine.Run.
	if c.process, err = os.FindProcess(pid); err != nil {
		return fmt.Errorf("find the process of container %s: %w", c.id, err)
	}
	c.ended = make(chan struct{})
	go c.wait()
	return nil
}

// lastMessage returns the last message of a runtime's log, whose lines are text or JSON.
func lastMessage(log []byte) string {
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	last := lines[len(lines)-1]
	if _, after, found := strings.Cut(last, `msg="`); found {
		return strings.TrimSuffix(after, `"`)
	}
	return last
}

func (c *container) wait() {
	defer close(c.ended)
	state, err := c.process.Wait()
	if err != nil {
		c.exit.code = 255 // the process was no child of ours any more, so its exit code is lost
		return
	}
	c.exit.code = state.ExitCode()
	if status, ok := state.Sys().(unix.WaitStatus); ok && status.Signaled() {
		c.exit.signal, c.exit.code = int(status.Signal()), 128+int(status.Signal())
	}
	c.exit.oom = outOfMemory(c.id)
}

// outOfMemory reports whether the kernel killed a process of a container that reached its own limit
// of memory. When the whole machine is out of memory, the kernel counts killed processes, too, but
// not as reaching the limit.
func outOfMemory(id string) bool {
	first, second := filepath.Join("/sys/fs/cgroup/memory", cgroupParent, id), filepath.Join("/sys/fs/cgroup", cgroupParent, id)
	if control, err := os.ReadFile(filepath.Join(first, "memory.oom_control")); err == nil {
		reached, err := os.ReadFile(filepath.Join(first, "memory.failcnt"))
		return counted(control, "oom_kill ") && err == nil && counted(reached, "")
	}
	events, err := os.ReadFile(filepath.Join(second, "memory.events"))
	return err == nil && counted(events, "oom_kill ") && counted(events, "oom ")
}

// counted reports whether a file of the kernel has a line with this name and a number above 0.
func counted(text []byte, name string) bool {
	for line := range strings.Lines(string(text)) {
		if number, found := strings.CutPrefix(strings.TrimSpace(line), name); found {
			if n, err := strconv.Atoi(number); err == nil && n > 0 {
				return true
			}
		}
	}
	return false
}

// hook runs a command with the files of a container, as its user. It enters no other namespace of
// the container, which would take a runtime ten times as long. The hooks of trials only copy files.
func (c *container) hook(ctx context.Context, user specs.User, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) // #nosec G204 -- what the pod's maker wrote
	cmd.Dir = "/"
	cmd.Env = []string{defaultPath}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     fmt.Sprintf("/proc/%d/root", c.process.Pid),
		Credential: &syscall.Credential{Uid: user.UID, Gid: user.GID, Groups: user.AdditionalGids},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// signal sends a signal to the first process of a container.
func (c *container) signal(sig unix.Signal) error {
	if err := c.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end container %s: %w", c.id, err)
	}
	return nil
}

// delete removes the remains of a container that has ended: the runtime's record, and its control
// groups. The runtime would need a process for each container to do so.
func (r *runtimeOCI) delete(ctx context.Context, id string) error {
	var err error
	if !r.rootless {
		err = removeGroups(id)
	}
	if err == nil {
		err = os.RemoveAll(filepath.Join(r.state, id))
	}
	if err == nil {
		return nil
	}
	out, forced := r.command(ctx, "delete", "--force", id).CombinedOutput()
	if forced != nil {
		return fmt.Errorf("remove container %s: %w: %s", id, errors.Join(err, forced), strings.TrimSpace(string(out)))
	}
	return nil
}

func (r *runtimeOCI) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, r.program, append([]string{"--root", r.state}, args...)...) // #nosec G204 -- the runtime that the user chose
}

// standardMounts are the mounts that every container has, as in a cluster.
func standardMounts(cgroups bool) []specs.Mount {
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
	}
	if cgroups {
		mounts = append(mounts, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "relatime", "ro"}})
	}
	return mounts
}

// maskedPaths and readOnlyPaths are the same as in containerd.
var (
	maskedPaths   = []string{"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware", "/proc/scsi"}
	readOnlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// spec returns the description of a container for the runtime.
func (r *runtimeOCI) spec(c *corev1.Container, img *image, p *pod, id string, mounts []specs.Mount) (*specs.Spec, error) {
	args := command(c, img)
	if len(args) == 0 {
		return nil, fmt.Errorf("container %s has no command, and image %s names none", c.Name, c.Image)
	}
	cwd := "/"
	if img.config.WorkingDir != "" {
		cwd = img.config.WorkingDir
	}
	if c.WorkingDir != "" {
		cwd = c.WorkingDir
	}
	user, err := userOf(c, img, p.spec)
	if err != nil {
		return nil, err
	}
	security := c.SecurityContext
	granted := r.capabilities(security)
	s := &specs.Spec{
		Version: "1.0.2", Hostname: p.hostname(),
		Root: &specs.Root{Path: "rootfs", Readonly: security != nil && security.ReadOnlyRootFilesystem != nil && *security.ReadOnlyRootFilesystem},
		Process: &specs.Process{
			User: user, Args: args, Env: p.environment(c, img), Cwd: cwd,
			Capabilities:    &specs.LinuxCapabilities{Bounding: granted, Effective: granted, Permitted: granted},
			NoNewPrivileges: security != nil && security.AllowPrivilegeEscalation != nil && !*security.AllowPrivilegeEscalation,
		},
		Mounts: append(standardMounts(!r.rootless), mounts...),
		Linux: &specs.Linux{
			MaskedPaths: maskedPaths, ReadonlyPaths: readOnlyPaths,
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace},
				{Type: specs.NetworkNamespace, Path: p.network},
			},
		},
	}
	if !r.rootless {
		s.Linux.CgroupsPath, s.Linux.Resources = "/"+cgroupParent+"/"+id, resources(c)
		if unified() { // as the runtimes of a cluster do with cgroup v2 only
			s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.CgroupNamespace})
		}
	}
	if pod := p.spec.Spec.SecurityContext; pod != nil && len(pod.Sysctls) > 0 {
		s.Linux.Sysctl = map[string]string{}
		for _, set := range pod.Sysctls {
			s.Linux.Sysctl[set.Name] = set.Value
		}
	}
	return s, nil
}

// command returns the command of a container. The command of Kubernetes replaces the entrypoint of
// the image.
func command(c *corev1.Container, img *image) []string {
	switch {
	case len(c.Command) > 0:
		return slices.Concat(c.Command, c.Args)
	case len(c.Args) > 0:
		return slices.Concat(img.config.Entrypoint, c.Args)
	}
	return slices.Concat(img.config.Entrypoint, img.config.Cmd)
}

// userOf returns the user of a container as numbers: the user that the pod names, else that of the
// image.
func userOf(c *corev1.Container, img *image, p *corev1.Pod) (user specs.User, err error) {
	if text := img.config.User; text != "" {
		uid, gid, _ := strings.Cut(text, ":")
		if user.UID, err = number(uid); err != nil && (c.SecurityContext == nil || c.SecurityContext.RunAsUser == nil) {
			return user, fmt.Errorf("container %s: its image names the user %q; give the number in runAsUser", c.Name, text)
		}
		if user.GID, err = number(gid); err != nil {
			user.GID = 0
		}
	}
	if s := c.SecurityContext; s != nil {
		if s.RunAsUser != nil {
			user.UID = uint32(*s.RunAsUser) // #nosec G115 -- bounded by the schema
		}
		if s.RunAsGroup != nil {
			user.GID = uint32(*s.RunAsGroup) // #nosec G115 -- bounded by the schema
		}
	}
	if s := p.Spec.SecurityContext; s != nil && s.FSGroup != nil {
		user.AdditionalGids = []uint32{uint32(*s.FSGroup)} // #nosec G115 -- bounded by the schema
	}
	return user, nil
}

func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

// capabilities returns the capabilities that a container gets: those that it asks for and this
// process has.
func (r *runtimeOCI) capabilities(security *corev1.SecurityContext) []string {
	all := []string{}
	if security == nil || security.Capabilities == nil {
		return all
	}
	for _, c := range security.Capabilities.Add {
		if r.granted[string(c)] {
			all = append(all, "CAP_"+string(c))
		}
	}
	return all
}

// period of a limit of processor time, in microseconds, as in the kubelet.
const period = uint64(100000)

// resources returns the weight and the limits of a container. The weight follows from its requests.
func resources(c *corev1.Container) *specs.LinuxResources {
	shares := uint64(2)
	if cpu := c.Resources.Requests.Cpu().MilliValue(); cpu > 0 {
		shares = max(shares, uint64(cpu)*1024/1000)
	}
	r := &specs.LinuxResources{CPU: &specs.LinuxCPU{Shares: &shares}, Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}}
	if cpu := c.Resources.Limits.Cpu().MilliValue(); cpu > 0 {
		quota, every := max(cpu*int64(period)/1000, 1000), period
		r.CPU.Quota, r.CPU.Period = &quota, &every
	}
	if memory := c.Resources.Limits.Memory().Value(); memory > 0 {
		r.Memory = &specs.LinuxMemory{Limit: &memory}
	}
	return r
}

// bundle makes the folder from which the runtime starts a container. It has a root file system over
// that of the image, and the description of the container.
func (r *runtimeOCI) bundle(dir string, img *image, spec *specs.Spec) error {
	upper, work, root := filepath.Join(dir, "upper"), filepath.Join(dir, "work"), filepath.Join(dir, "rootfs")
	for _, d := range []string{upper, work, root} {
		if err := os.MkdirAll(d, 0o755); err != nil { // #nosec G301 -- containers have users of their own
			return fmt.Errorf("make the root file system: %w", err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", img.root, upper, work)
	if r.rootless {
		options += ",userxattr" // the kernel records removed directories in user attributes
	}
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		// The kernel or the file system has no overlays: every container gets a copy.
		if err := os.CopyFS(root, os.DirFS(img.root)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("copy the image: %w", err)
		}
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode the configuration of the container: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}
