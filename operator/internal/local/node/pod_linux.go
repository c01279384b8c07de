package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/internal/engine"
)

// pod is one that runs on this machine.
type pod struct {
	m       *Machine
	spec    *corev1.Pod
	dir     string
	index   int
	ip      netip.Addr
	network string // the file of its network namespace

	// deleted is closed when the pod is to end.
	deleted chan struct{}
	once    sync.Once

	mu       sync.Mutex
	inits    []corev1.ContainerStatus
	mains    []corev1.ContainerStatus
	running  map[string]*container
	phase    corev1.PodPhase
	failure  string
	restarts sync.WaitGroup
}

const (
	// restartPause is how long a container stays down that has ended more than once.
	restartPause = 10 * time.Second
	// imageRetry is how soon an image is looked for again at first, imageRetryMost in the end. A
	// file that is just being written is there soon; a registry that does not answer is there
	// later.
	imageRetry, imageRetryMost = time.Second, 16 * time.Second
	// stopTimeout is how long a container may take that ends after its pod's grace.
	stopTimeout = 5 * time.Second
)

func (p *pod) hostname() string {
	if p.spec.Spec.Hostname != "" {
		return p.spec.Spec.Hostname
	}
	return p.spec.Name
}

// end asks the pod to end.
func (p *pod) end() { p.once.Do(func() { close(p.deleted) }) }

func (p *pod) ending() bool {
	select {
	case <-p.deleted:
		return true
	default:
		return false
	}
}

// run the pod until it is deleted, and remove it.
func (p *pod) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, p.end)
	defer stop()
	go func() {
		<-p.deleted
		cancel()
	}()
	if err := p.setUp(ctx); err != nil {
		p.fail(err.Error())
	} else {
		p.publish()
		if err := p.startAll(ctx); err != nil && !p.ending() {
			p.fail(err.Error())
		}
	}
	<-p.deleted
	after := context.WithoutCancel(ctx)
	p.stopAll()
	p.conclude()
	if err := p.tearDown(after); err != nil {
		p.m.Log.Error(err, "Failed to clean up after a pod; the next start does", "pod", p.spec.Name)
	}
	p.m.gone(p)
}

// fail ends the pod with a reason.
func (p *pod) fail(why string) {
	p.mu.Lock()
	p.phase, p.failure = corev1.PodFailed, why
	p.mu.Unlock()
	p.publish()
}

// setUp gives the pod its folder, its network and its volumes.
func (p *pod) setUp(ctx context.Context) error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil { // #nosec G301 -- containers have users of their own
		return fmt.Errorf("make the pod's folder: %w", err)
	}
	var err error
	if p.network, err = p.m.network.attach(string(p.spec.UID), p.index, p.ip); err != nil {
		return err
	}
	if err := p.volumes(); err != nil {
		return err
	}
	domain := p.m.Domain
	service := p.spec.Spec.Subdomain + "." + p.spec.Namespace + ".svc." + domain
	if p.spec.Spec.Subdomain != "" {
		p.m.names.add(p.ip, p.hostname()+"."+service, service)
	}
	for name, content := range map[string]string{
		"hosts":       fmt.Sprintf("127.0.0.1\tlocalhost\n::1\tlocalhost\n%s\t%s.%s\t%s\n", p.ip, p.hostname(), service, p.hostname()),
		"hostname":    p.hostname() + "\n",
		"resolv.conf": fmt.Sprintf("nameserver %s\nsearch %s.svc.%s svc.%s %s\noptions ndots:5\n", gateway, p.spec.Namespace, domain, domain, domain),
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o644); err != nil { // #nosec G306 -- for every user of the pod
			return fmt.Errorf("write the pod's %s: %w", name, err)
		}
	}
	return ctx.Err()
}

// volumes makes the pod's own.
func (p *pod) volumes() error {
	for _, v := range p.spec.Spec.Volumes {
		at := p.volume(v.Name)
		if claim := v.PersistentVolumeClaim; claim != nil {
			if at == "" {
				return fmt.Errorf("volume %s: one machine has no PersistentVolumeClaim %s", v.Name, claim.ClaimName)
			}
			continue // the folder outlives the pod
		}
		if err := os.MkdirAll(at, 0o755); err != nil { // #nosec G301 -- containers have users of their own
			return fmt.Errorf("make volume %s: %w", v.Name, err)
		}
		var err error
		switch {
		case v.EmptyDir != nil:
			err = p.emptyDir(at, v.EmptyDir)
		case v.Projected != nil:
			err = p.project(at, v.Projected)
		default:
			err = errors.New("one machine has volumes of the kinds emptyDir, projected and persistentVolumeClaim only")
		}
		if err != nil {
			return fmt.Errorf("make volume %s: %w", v.Name, err)
		}
	}
	return nil
}

// volume is the folder of a volume; empty: of a claim that this machine does not have.
func (p *pod) volume(name string) string {
	for i := range p.spec.Spec.Volumes {
		if claim := p.spec.Spec.Volumes[i].PersistentVolumeClaim; claim != nil && p.spec.Spec.Volumes[i].Name == name {
			return p.m.Claims[claim.ClaimName]
		}
	}
	return filepath.Join(p.dir, "volumes", name)
}

// claimed reports whether a volume is a claim, which outlives the pod.
func (p *pod) claimed(name string) bool {
	return slices.ContainsFunc(p.spec.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name && v.PersistentVolumeClaim != nil })
}

// makeShared makes a directory of a claim that pods with users of their own write to, as a kubelet
// does. Several pods may be about it at once.
func makeShared(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { // #nosec G301 -- containers have users of their own
		return fmt.Errorf("make a directory of a claim: %w", err)
	}
	return os.Chmod(dir, 0o777) // #nosec G302 -- containers have users of their own
}

func (p *pod) emptyDir(at string, v *corev1.EmptyDirVolumeSource) error {
	kind, options := "", "mode=0777"
	switch v.Medium {
	case corev1.StorageMediumMemory:
		kind = "tmpfs"
		if v.SizeLimit != nil && v.SizeLimit.Value() > 0 {
			options += fmt.Sprintf(",size=%d", v.SizeLimit.Value())
		}
	case corev1.StorageMediumHugePages:
		kind = "hugetlbfs"
	}
	if kind != "" {
		if err := unix.Mount(kind, at, kind, unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return err
		}
	}
	if group := p.spec.Spec.SecurityContext; group != nil && group.FSGroup != nil {
		if err := os.Chown(at, -1, int(*group.FSGroup)); err != nil {
			return err
		}
	}
	return os.Chmod(at, 0o777|os.ModeSetgid)
}

// project writes the agent's token, and what the pod says of itself.
func (p *pod) project(at string, v *corev1.ProjectedVolumeSource) error {
	write := func(path, content string) error {
		return os.WriteFile(filepath.Join(at, filepath.Base(path)), []byte(content), 0o644) // #nosec G306 -- for every user of the container that mounts it
	}
	for _, s := range v.Sources {
		switch {
		case s.ServiceAccountToken != nil:
			if err := write(s.ServiceAccountToken.Path, p.m.identities.issue(p.spec.UID)); err != nil {
				return err
			}
		case s.DownwardAPI != nil:
			for _, item := range s.DownwardAPI.Items {
				if item.FieldRef == nil {
					return fmt.Errorf("%s is not known here", item.Path)
				}
				if err := write(item.Path, p.field(item.FieldRef.FieldPath)); err != nil {
					return err
				}
			}
		default:
			return errors.New("one machine projects tokens and the pod's own fields only")
		}
	}
	return nil
}

// field of the pod, as the downward API has it.
func (p *pod) field(path string) string {
	switch path {
	case "metadata.name":
		return p.spec.Name
	case "metadata.namespace":
		return p.spec.Namespace
	case "metadata.uid":
		return string(p.spec.UID)
	case "spec.nodeName":
		return p.spec.Spec.NodeName
	case "status.podIP":
		return p.ip.String()
	}
	if key, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
		return p.spec.Annotations[strings.TrimSuffix(key, "']")]
	}
	if key, ok := strings.CutPrefix(path, "metadata.labels['"); ok {
		return p.spec.Labels[strings.TrimSuffix(key, "']")]
	}
	return ""
}

// defaultPath of containers whose image has none.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func (p *pod) environment(c *corev1.Container, img *image) []string {
	env := slices.Clone(img.config.Env)
	if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "PATH=") }) {
		env = append(env, defaultPath)
	}
	env = append(env, "HOSTNAME="+p.hostname())
	for _, e := range c.Env {
		value := e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			value = p.field(e.ValueFrom.FieldRef.FieldPath)
		}
		env = append(env, e.Name+"="+value)
	}
	return env
}

// startAll runs the init containers, in order, then starts all others.
func (p *pod) startAll(ctx context.Context) error {
	for i := range p.spec.Spec.InitContainers {
		c := &p.spec.Spec.InitContainers[i]
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		started, err := p.start(ctx, c)
		if err != nil {
			return err
		}
		if sidecar {
			if err := p.postStart(ctx, c, started); err != nil {
				return err
			}
			p.supervise(ctx, c, started, true)
			continue
		}
		if err := p.complete(ctx, c, started); err != nil {
			return err
		}
	}
	var starts sync.WaitGroup
	errs := make([]error, len(p.spec.Spec.Containers))
	for i := range p.spec.Spec.Containers {
		starts.Go(func() {
			c := &p.spec.Spec.Containers[i]
			started, err := p.start(ctx, c)
			if errs[i] = err; err == nil {
				p.supervise(ctx, c, started, p.spec.Spec.RestartPolicy != corev1.RestartPolicyNever)
			}
		})
	}
	starts.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	p.mu.Lock()
	if p.phase == corev1.PodPending {
		p.phase = corev1.PodRunning
	}
	p.mu.Unlock()
	p.publish()
	return nil
}

// postStart runs a container's hook, with which its start is complete.
func (p *pod) postStart(ctx context.Context, c *corev1.Container, started *container) error {
	if c.Lifecycle == nil || c.Lifecycle.PostStart == nil || c.Lifecycle.PostStart.Exec == nil {
		return nil
	}
	img, err := p.m.Images.get(ctx, c.Image)
	if err != nil {
		return err
	}
	user, err := userOf(c, img, p.spec)
	if err != nil {
		return err
	}
	if err := started.hook(ctx, user, c.Lifecycle.PostStart.Exec.Command); err != nil {
		return fmt.Errorf("hook of container %s: %w", c.Name, err)
	}
	return nil
}

// complete waits for an init container that must end well.
func (p *pod) complete(ctx context.Context, c *corev1.Container, started *container) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-started.ended:
	}
	p.note(c.Name, func(s *corev1.ContainerStatus) { s.State = terminated(started, p.m.now()) })
	p.publish()
	if started.exit.code != 0 {
		return fmt.Errorf("init container %s exited with %d: %s", c.Name, started.exit.code, tail(started.log))
	}
	return nil
}

// supervise notes the end of a container, and starts it again if that is its pod's policy.
func (p *pod) supervise(ctx context.Context, c *corev1.Container, started *container, restart bool) {
	p.restarts.Go(func() {
		for n := 0; ; n++ {
			<-started.ended
			p.note(c.Name, func(s *corev1.ContainerStatus) {
				s.LastTerminationState, s.State, s.Ready = s.State, terminated(started, p.m.now()), false
				s.LastTerminationState = s.State
			})
			p.settle()
			if p.ending() || !restart {
				return
			}
			p.publish()
			if n > 0 && !pause(ctx, restartPause) {
				return
			}
			again, err := p.start(ctx, c)
			if err != nil {
				if !p.ending() {
					p.fail(err.Error())
				}
				return
			}
			p.note(c.Name, func(s *corev1.ContainerStatus) { s.RestartCount++ })
			p.publish()
			started = again
		}
	})
}

// settle says that a pod whose containers run once is over when they are.
func (p *pod) settle() {
	if p.spec.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return
	}
	p.mu.Lock()
	phase := corev1.PodSucceeded
	for _, s := range p.mains {
		switch t := s.State.Terminated; {
		case t == nil:
			p.mu.Unlock()
			return
		case t.ExitCode != 0:
			phase = corev1.PodFailed
		}
	}
	p.phase = phase
	p.mu.Unlock()
	p.publish()
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// start one container. An image that is not there is looked for until it is.
func (p *pod) start(ctx context.Context, c *corev1.Container) (*container, error) {
	img, err := p.m.Images.get(ctx, c.Image)
	for wait := imageRetry; err != nil; wait = min(2*wait, imageRetryMost) {
		p.note(c.Name, func(s *corev1.ContainerStatus) {
			s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: err.Error()}}
		})
		p.publish()
		if !pause(ctx, wait) {
			return nil, ctx.Err()
		}
		img, err = p.m.Images.get(ctx, c.Image)
	}
	p.mu.Lock()
	n := p.status(c.Name).RestartCount
	if last := p.running[c.Name]; last != nil {
		n++
	}
	p.mu.Unlock()
	id := fmt.Sprintf("%s.%s.%d", p.spec.UID, c.Name, n)
	started := &container{began: p.m.now(), id: id, bundle: filepath.Join(p.dir, "containers", fmt.Sprintf("%s.%d", c.Name, n)), log: p.m.LogFile(p.spec.Name, c.Name)}
	mounts, err := p.mounts(c)
	if err != nil {
		return nil, err
	}
	message, err := started.takeMessage(c)
	if err != nil {
		return nil, err
	}
	spec, err := p.m.runtime.spec(c, img, p, id, append(mounts, message))
	if err != nil {
		return nil, err
	}
	if err := p.m.runtime.bundle(started.bundle, img, spec); err != nil {
		return nil, err
	}
	if err := p.m.runtime.start(ctx, started); err != nil {
		return nil, err
	}
	yes := true
	p.note(c.Name, func(s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started.began)}}
		s.ImageID, s.ContainerID, s.Ready, s.Started = img.id, "oci://"+id, true, &yes
	})
	p.mu.Lock()
	p.running[c.Name] = started
	p.mu.Unlock()
	return started, nil
}

// mounts of a container beside those that all have.
func (p *pod) mounts(c *corev1.Container) ([]specs.Mount, error) {
	var mounts []specs.Mount
	for _, name := range []string{"hosts", "hostname", "resolv.conf"} {
		mounts = append(mounts, specs.Mount{Destination: "/etc/" + name, Type: "bind", Source: filepath.Join(p.dir, name), Options: []string{"rbind", "rprivate", "rw"}})
	}
	for _, v := range c.VolumeMounts {
		options := []string{"rbind", "rprivate", "rw"}
		if v.ReadOnly {
			options[2] = "ro"
		}
		source := p.volume(v.Name)
		if v.SubPath != "" {
			source = filepath.Join(source, filepath.Clean("/"+v.SubPath))
		}
		if v.SubPath != "" && p.claimed(v.Name) {
			if err := makeShared(source); err != nil {
				return nil, err
			}
		}
		if !exists(source) {
			return nil, fmt.Errorf("container %s mounts %s, which is no volume of its pod", c.Name, v.Name)
		}
		mounts = append(mounts, specs.Mount{Destination: v.MountPath, Type: "bind", Source: source, Options: options})
	}
	return mounts, nil
}

// stopAll ends the containers: those of the System first, then what Assay adds, within the pod's
// grace.
func (p *pod) stopAll() {
	grace := 30 * time.Second
	if g := p.spec.Spec.TerminationGracePeriodSeconds; g != nil {
		grace = time.Duration(*g) * time.Second
	}
	deadline := p.m.now().Add(grace)
	for _, group := range [][]corev1.Container{p.spec.Spec.Containers, p.spec.Spec.InitContainers} {
		var ends sync.WaitGroup
		for i := range group {
			p.mu.Lock()
			c := p.running[group[i].Name]
			p.mu.Unlock()
			if c == nil {
				continue
			}
			ends.Go(func() {
				if err := c.stop(deadline.Sub(p.m.now())); err != nil {
					p.m.Log.Error(err, "Failed to end a container", "pod", p.spec.Name)
				}
			})
		}
		ends.Wait()
	}
	p.restarts.Wait()
}

// stop a container: ask, then kill.
func (c *container) stop(grace time.Duration) error {
	if err := c.signal(unix.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(grace):
	}
	if err := c.signal(unix.SIGKILL); err != nil {
		return err
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("container %s has not ended %s after it was killed", c.id, stopTimeout)
	}
}

// conclude tells how a pod ended that was deleted.
func (p *pod) conclude() {
	p.mu.Lock()
	if p.phase != corev1.PodSucceeded && p.phase != corev1.PodFailed {
		p.phase = corev1.PodSucceeded
		for _, s := range p.mains {
			if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
				p.phase = corev1.PodFailed
			}
		}
	}
	p.mu.Unlock()
	p.publish()
}

// tearDown removes all that the pod had.
func (p *pod) tearDown(ctx context.Context) error {
	var errs []error
	p.m.names.remove(p.ip)
	p.m.identities.revoke(p.spec.UID)
	ids, err := os.ReadDir(filepath.Join(p.dir, "containers"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, one := range ids {
		errs = append(errs, p.m.runtime.delete(ctx, string(p.spec.UID)+"."+one.Name()))
	}
	errs = append(errs, p.m.network.detach(string(p.spec.UID)), unmountBelow(p.dir), os.RemoveAll(p.dir))
	return errors.Join(errs...)
}

// status of a container. The caller holds p.mu.
func (p *pod) status(name string) *corev1.ContainerStatus {
	for _, all := range [][]corev1.ContainerStatus{p.inits, p.mains} {
		for i := range all {
			if all[i].Name == name {
				return &all[i]
			}
		}
	}
	return &corev1.ContainerStatus{}
}

func (p *pod) note(container string, change func(*corev1.ContainerStatus)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p.status(container))
}

// publish writes the pod's status.
func (p *pod) publish() {
	p.mu.Lock()
	status := corev1.PodStatus{
		Phase: p.phase, Message: p.failure, HostIP: gateway.String(), PodIP: p.ip.String(), PodIPs: []corev1.PodIP{{IP: p.ip.String()}},
		InitContainerStatuses: slices.Clone(p.inits), ContainerStatuses: slices.Clone(p.mains),
	}
	p.mu.Unlock()
	if p.network == "" {
		status.PodIP, status.PodIPs = "", nil
	}
	if p.failure != "" {
		status.Reason = engine.PodNotRunnable
	}
	ready := corev1.ConditionFalse
	if status.Phase == corev1.PodRunning {
		ready = corev1.ConditionTrue
	}
	status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: ready},
	}
	if err := p.m.writeStatus(p.spec, status); err != nil {
		p.m.Log.Error(err, "Failed to write a pod's status", "pod", p.spec.Name)
	}
}

// statuses of containers that have not started.
func statuses(all []corev1.Container) (out []corev1.ContainerStatus) {
	for i := range all {
		out = append(out, corev1.ContainerStatus{
			Name: all[i].Name, Image: all[i].Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
		})
	}
	return out
}
