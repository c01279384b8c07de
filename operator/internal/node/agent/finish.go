package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
)

// finishReach is how long a launcher that cannot be reached is tried: one that is gone took its
// processes along.
const finishReach = 5 * time.Second

// finish ends all processes as the directive says and puts the pod's network back.
func (a *Agent) finish(ctx context.Context) {
	stop := a.directive().Stop
	var ends sync.WaitGroup
	for _, name := range a.containerNames() {
		ends.Go(func() {
			if err := a.launchers.endContainer(ctx, name, launcher.Stop{Signal: stop.Signal, Grace: stop.Grace}); err != nil && ctx.Err() == nil {
				a.fail(err)
			}
		})
	}
	ends.Wait()
	a.watcher.noteHealth() // the last word, before what is held back is dropped
	if err := a.shaping.restoreNetwork(); err != nil {
		a.fail(err)
	}
	a.note(func() { a.volatile.finished = true })
}

func (l *launchers) endContainer(ctx context.Context, name string, stop launcher.Stop) error {
	reach, cancel := context.WithTimeout(ctx, finishReach)
	defer cancel()
	if l.await(reach, func() bool { return l.conns[name] != nil && l.conns[name].client != nil }) != nil {
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, stop.Grace+3*finishReach)
	defer cancel()
	l.mu.Lock()
	client := l.conns[name].client
	l.mu.Unlock()
	if client == nil {
		return nil
	}
	if _, err := client.Call(limited, launcher.Request{Stop: &stop}); err != nil {
		return fmt.Errorf("end container %s: %w", name, err)
	}
	return nil
}
