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

// cgroupParent of all containers, in each hierarchy.
const cgroupParent = "assay-local"

// runtimeOCI runs containers by runc or another program with its command line.
type runtimeOCI struct {
	program string
	// state of the program, and bundles of the containers.
	state string
	// granted capabilities: those that this process has itself.
	granted map[string]bool
	// rootless: there are no control groups.
	rootless bool
}

// container is one that runs or has run.
type container struct {
	id, bundle, log string
	process         *os.Process
	began           time.Time
	// ended is closed when it is over, and exit says how.
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

// ownCapabilities are those of this process.
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

// start a container whose bundle is ready.
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
		why, _ := os.ReadFile(said) // empty: it said nothing
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
	// The runtime has ended, and its child is now ours: see Machine.Run.
	if c.process, err = os.FindProcess(pid); err != nil {
		return fmt.Errorf("find the process of container %s: %w", c.id, err)
	}
	c.ended = make(chan struct{})
	go c.wait()
	return nil
}

// lastMessage of a runtime's log, whose lines are text or JSON.
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
		c.exit.code = 255 // it was not our child any more, and only the kernel's owner takes it away
		return
	}
	c.exit.code = state.ExitCode()
	if status, ok := state.Sys().(unix.WaitStatus); ok && status.Signaled() {
		c.exit.signal, c.exit.code = int(status.Signal()), 128+int(status.Signal())
	}
	c.exit.oom = outOfMemory(c.id)
}

// outOfMemory says whether the kernel killed a process of a container that had used up its memory.
// It counts what it kills when the whole machine is out of memory, too, but not that the
// container's limit was reached.
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

// hook runs a command in the files of a container, as its user. It is in none of the container's
// other namespaces, which a runtime would take ten times as long to enter: the hooks of trials copy
// files.
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

// signal the first process of a container.
func (c *container) signal(sig unix.Signal) error {
	if err := c.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end container %s: %w", c.id, err)
	}
	return nil
}

// delete what is kept of a container that has ended: the runtime's record, and its control groups.
// The runtime would do the same in a process of its own for each container.
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

// mounts that every container has, as in a cluster.
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

// maskedPaths and readOnlyPaths are those of containerd.
var (
	maskedPaths   = []string{"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware", "/proc/scsi"}
	readOnlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// spec is what the runtime is told about a container.
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
		if unified() { // as runtimes of a cluster do with cgroup v2, and not with v1
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

// command of a container: Kubernetes' command is the entrypoint.
func command(c *corev1.Container, img *image) []string {
	switch {
	case len(c.Command) > 0:
		return slices.Concat(c.Command, c.Args)
	case len(c.Args) > 0:
		return slices.Concat(img.config.Entrypoint, c.Args)
	}
	return slices.Concat(img.config.Entrypoint, img.config.Cmd)
}

// userOf a container: as the pod says, else as the image says, in numbers.
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

// capabilities that a container gets: those that it asks for and this process has.
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

// period of the limit of a processor, in microseconds, as the kubelet has it.
const period = uint64(100000)

// resources of a container: its request is its weight, its limits are limits.
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

// bundle makes the folder that the runtime starts a container from: a root file system over the
// image's, and what it is told.
func (r *runtimeOCI) bundle(dir string, img *image, spec *specs.Spec) error {
	upper, work, root := filepath.Join(dir, "upper"), filepath.Join(dir, "work"), filepath.Join(dir, "rootfs")
	for _, d := range []string{upper, work, root} {
		if err := os.MkdirAll(d, 0o755); err != nil { // #nosec G301 -- containers have users of their own
			return fmt.Errorf("make the root file system: %w", err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", img.root, upper, work)
	if r.rootless {
		options += ",userxattr" // where the kernel keeps what it must remember of removed directories
	}
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		// A kernel or a file system without overlays: every container has a copy.
		if err := os.CopyFS(root, os.DirFS(img.root)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("copy the image: %w", err)
		}
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("write what the runtime is told: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}
