package agent

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/timeline"
)

const (
	// roleLead is how long before an action that targets a role the replica asks whether it has the
	// role. roleTimeout is how long the answer may take. The rest is for the action's preparation.
	roleLead    = 300 * time.Millisecond
	roleTimeout = 250 * time.Millisecond
	// rolePause is how often the output is looked at: often, so that lines of two streams are known
	// in their order.
	rolePause = 50 * time.Millisecond
)

// takesPart reports whether this replica carries out an action. A replica without the role does not
// carry out an action for the replicas with a role, nor the end of such an action.
func (a *Agent) takesPart(ctx context.Context, run protocol.Run, action timeline.Action) (takes bool, err error) {
	switch {
	case action.Ends != "":
		known := slices.ContainsFunc(run.Actions, func(b timeline.Action) bool { return b.ID == action.Ends })
		if !known {
			return false, fmt.Errorf("it ends %q, which is no action of this pod", action.Ends)
		}
		err = a.await(ctx, func() bool {
			record, recorded := a.recordedLocked(action.Ends)
			takes = a.seen.acting[action.Ends] || recorded && !record.Skipped
			return takes || recorded
		})
		return takes, err
	case action.Role == "":
		return true, nil
	default:
		if err := a.until(ctx, run.ZeroUnixNanos+int64(action.At-roleLead)); err != nil {
			return false, err
		}
		return a.hasRole(ctx, action)
	}
}

// hasRole asks whether the replica has the role of an action now. One that does not answer in time
// does not have it.
func (a *Agent) hasRole(ctx context.Context, action timeline.Action) (bool, error) {
	probes := a.directive().Roles
	i := slices.IndexFunc(probes, func(p protocol.RoleProbe) bool { return p.Role == action.Role })
	if i < 0 {
		return false, fmt.Errorf("the directive does not say how to find the role %q", action.Role)
	}
	if probe := probes[i]; probe.Gate != nil {
		ctx, cancel := context.WithTimeout(ctx, roleTimeout)
		defer cancel()
		if probe.Gate.Command == nil {
			return a.holds(ctx, *probe.Gate, ""), nil
		}
		id := fmt.Sprintf("role/%s/%s", action.ID, a.seen.incarnation)
		result, err := a.runIn(ctx, probe.Gate.Container, protocol.Command{ID: id, Command: probe.Gate.Command, Timeout: roleTimeout})
		return err == nil && result.Error == "" && result.ExitCode == 0, nil
	}
	a.mu.Lock()
	watched := a.roles[action.Role]
	a.mu.Unlock()
	if watched == nil {
		return false, fmt.Errorf("the role %q is not watched", action.Role)
	}
	return watched.look()
}

// doRoles follows the output of replicas whose roles are told by it.
func (a *Agent) doRoles(ctx context.Context) {
	if a.await(ctx, func() bool { return len(a.directiveLocked().Roles) > 0 }) != nil {
		return
	}
	var watched []*roleLog
	defer func() {
		for _, w := range watched {
			w.close()
		}
	}()
	for _, probe := range a.directive().Roles {
		if probe.Gate != nil {
			continue
		}
		w, err := newRoleLog(probe, a.outputFile)
		if err != nil {
			a.fail(fmt.Errorf("role %s: %w", probe.Role, err))
			return
		}
		watched = append(watched, w)
		a.mu.Lock()
		a.roles[probe.Role] = w
		a.mu.Unlock()
	}
	for len(watched) > 0 && pause(ctx, rolePause) {
		for _, w := range watched {
			if _, err := w.look(); err != nil {
				a.failUnlessDone(ctx, fmt.Errorf("role %s: %w", w.role, err))
				return
			}
		}
	}
}

// loseRoles forgets the roles that output has told of: its process is dead, and the one that
// follows begins without.
func (a *Agent) loseRoles() {
	a.mu.Lock()
	var watched []*roleLog
	for _, w := range a.roles {
		watched = append(watched, w)
	}
	a.mu.Unlock()
	for _, w := range watched {
		w.forget()
	}
}

// roleLog knows a role by the lines that tell that it was gained or lost.
type roleLog struct {
	role         string
	gained, lost *regexp.Regexp // lost may be nil

	mu        sync.Mutex
	followers []*follower
	has       bool
}

func newRoleLog(probe protocol.RoleProbe, file func(container, stream string) string) (*roleLog, error) {
	w := &roleLog{role: probe.Role}
	var err error
	if w.gained, err = regexp.Compile(probe.Gained); err != nil {
		return nil, fmt.Errorf("the line that tells that it was gained: %w", err)
	}
	if probe.Lost != "" {
		if w.lost, err = regexp.Compile(probe.Lost); err != nil {
			return nil, fmt.Errorf("the line that tells that it was lost: %w", err)
		}
	}
	w.followers = follow(probe.Container, probe.Stream, file)
	return w, nil
}

// look reads what is new, and reports whether the replica has the role.
func (w *roleLog) look() (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.followers {
		if err := f.lines(func(line []byte) bool {
			switch line = bytes.TrimSuffix(line, []byte("\r")); {
			case w.gained.Match(line):
				w.has = true
			case w.lost != nil && w.lost.Match(line):
				w.has = false
			}
			return false
		}); err != nil {
			return false, err
		}
	}
	return w.has, nil
}

func (w *roleLog) forget() {
	_, _ = w.look() // an error is told by who looks for the role
	w.mu.Lock()
	defer w.mu.Unlock()
	w.has = false
}

func (w *roleLog) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.followers {
		f.close()
	}
}
