package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// stopAll ends the containers within the pod's grace: first those of the System, then those of
// Assay.
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

// stop asks a container to end, and kills it after the grace.
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

// tearDown removes everything of the pod.
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
