package agent

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// roleLead is how long before an action that targets a role the agent asks whether its replica
	// has the role. The answer may take roleTimeout. The remaining time is for the action's
	// preparation.
	roleLead    = 300 * time.Millisecond
	roleTimeout = 250 * time.Millisecond
	// rolePause is the wait between two readings of the output. It is short, so that the order of
	// lines in two streams is known.
	rolePause = 50 * time.Millisecond
)

// roleWatcher knows whether this replica has a role, such as leader.
type roleWatcher struct {
	*state
	clock     *runClock
	launchers *launchers
	gates     *gates
	logs      map[string]*roleLog // by role; guarded by the state's mutex
}

// takesPart reports whether this replica carries out an action. A replica without the role of an
// action skips the action and its end. The second result says why the answer was not known in time;
// empty: it was.
func (r *roleWatcher) takesPart(ctx context.Context, run protocol.Run, action timeline.Action) (takes bool, unanswered string, err error) {
	switch {
	case action.Ends != "":
		known := slices.ContainsFunc(run.Actions, func(b timeline.Action) bool { return b.ID == action.Ends })
		if !known {
			return false, "", fmt.Errorf("it ends %q, which is no action of this pod", action.Ends)
		}
		err = r.await(ctx, func() bool {
			record, recorded := r.recordedLocked(action.Ends)
			takes = r.volatile.acting[action.Ends] || recorded && !record.Skipped
			return takes || recorded
		})
		return takes, "", err
	case action.Role == "":
		return true, "", nil
	default:
		if err := r.clock.until(ctx, run.ZeroUnixNanos+int64(action.At-roleLead)); err != nil {
			return false, "", err
		}
		takes, unanswered, err = r.hasRole(ctx, action)
		if late := r.clock.since(run.ZeroUnixNanos, launcher.Monotonic()) - action.At; err == nil && unanswered == "" && !takes && late > 0 {
			unanswered = fmt.Sprintf("the answer came %v after the fault was to begin", late.Round(time.Millisecond))
		}
		return takes, unanswered, err
	}
}

// hasRole asks whether the replica has the role of an action now. If the replica does not answer in
// time, unanswered says why.
func (r *roleWatcher) hasRole(ctx context.Context, action timeline.Action) (has bool, unanswered string, err error) {
	probes := r.directive().Roles
	i := slices.IndexFunc(probes, func(p protocol.RoleProbe) bool { return p.Role == action.Role })
	if i < 0 {
		return false, "", fmt.Errorf("the directive does not say how to find the role %q", action.Role)
	}
	if probe := probes[i]; probe.Gate != nil {
		ctx, cancel := context.WithTimeout(ctx, roleTimeout)
		defer cancel()
		if probe.Gate.Command == nil {
			return r.gates.holds(ctx, *probe.Gate, ""), "", nil
		}
		id := fmt.Sprintf("role/%s/%s", action.ID, r.volatile.incarnation)
		result, err := r.launchers.runIn(ctx, probe.Gate.Container, protocol.Command{ID: id, Command: probe.Gate.Command, Timeout: roleTimeout})
		switch {
		case err != nil:
			unanswered = "its command could not be run: " + err.Error()
		case strings.HasSuffix(result.Error, launcher.RunsNoCommand):
			// A replica that another fault has killed or paused does not have the role.
		case result.Error != "":
			unanswered = "its command did not end: " + result.Error
		}
		return err == nil && result.Error == "" && result.ExitCode == 0, unanswered, nil
	}
	r.mu.Lock()
	watched := r.logs[action.Role]
	r.mu.Unlock()
	if watched == nil {
		return false, "", fmt.Errorf("the role %q is not watched", action.Role)
	}
	has, err = watched.look()
	return has, "", err
}

// doRoles follows the output of replicas whose roles are told by it.
func (r *roleWatcher) doRoles(ctx context.Context) {
	if r.await(ctx, func() bool { return len(r.directiveLocked().Roles) > 0 }) != nil {
		return
	}
	var watched []*roleLog
	defer func() {
		for _, w := range watched {
			w.close()
		}
	}()
	for _, probe := range r.directive().Roles {
		if probe.Gate != nil {
			continue
		}
		w, err := newRoleLog(probe, r.outputFile)
		if err != nil {
			r.fail(fmt.Errorf("role %s: %w", probe.Role, err))
			return
		}
		watched = append(watched, w)
		r.mu.Lock()
		r.logs[probe.Role] = w
		r.mu.Unlock()
	}
	for len(watched) > 0 && pause(ctx, rolePause) {
		for _, w := range watched {
			if _, err := w.look(); err != nil {
				r.failUnlessDone(ctx, fmt.Errorf("role %s: %w", w.role, err))
				return
			}
		}
	}
}

// loseRoles forgets the roles that the output has reported: the process is dead, and the next
// process begins without a role.
func (r *roleWatcher) loseRoles() {
	r.mu.Lock()
	var watched []*roleLog
	for _, w := range r.logs {
		watched = append(watched, w)
	}
	r.mu.Unlock()
	for _, w := range watched {
		w.forget()
	}
}

// roleLog knows a role by the lines that tell that it was gained or lost.
type roleLog struct {
	role         string
	gained, lost *regexp.Regexp // lost may be nil

	mu      sync.Mutex
	tailers []*logTailer
	has     bool
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
	w.tailers = follow(probe.Container, probe.Stream, file)
	return w, nil
}

// look reads the new output, and reports whether the replica has the role.
func (w *roleLog) look() (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.tailers {
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
	_, _ = w.look() // the next caller gets the error
	w.mu.Lock()
	defer w.mu.Unlock()
	w.has = false
}

func (w *roleLog) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.tailers {
		f.close()
	}
}
