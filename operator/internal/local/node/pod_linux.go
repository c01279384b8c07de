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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod is a pod that runs on this machine.
type pod struct {
	m       *Machine
	spec    *corev1.Pod
	dir     string
	index   int
	ip      netip.Addr
	network string // file of its network namespace

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
	// restartPause is how long a container stays down after it has ended more than once.
	restartPause = 10 * time.Second
	// imageRetry is the first pause before looking for an image again, imageRetryMost the longest.
	// A file that is being written is there soon. A registry that does not answer takes longer.
	imageRetry, imageRetryMost = time.Second, 16 * time.Second
	// stopTimeout is how long a container may take to end after its pod's grace.
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

// run runs the pod until it is deleted, and removes it.
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

// setUp makes the pod's folder, network and volumes.
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

// defaultPath is for containers whose image sets no PATH.
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

// postStart runs the hook that completes the start of a container.
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

// complete waits for the end of an init container, which must exit with 0.
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

// supervise records the end of a container, and restarts the container if the pod's policy says so.
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

// start starts one container. It waits for a missing image.
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
