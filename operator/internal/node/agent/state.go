package agent

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/protocol"
)

// state is shared by the parts of an agent. Each part writes its progress there, and waits there
// for the others.
type state struct {
	podFiles

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	urgent   uint64        // counts the changes that the coordinator must know at once
	journal  journal       // survives a restart of the agent
	volatile volatile
}

// volatile holds facts that the agent can find out again.
type volatile struct {
	manager       string // the one that the agent talks to
	incarnation   string
	resolved      map[string]bool
	processes     bool // all that start at once have started
	gatesHold     bool
	waitingFor    string
	atBarrier     bool
	progress      *protocol.Progress
	load          *protocol.Load
	finished      bool
	handedOver    bool
	failure       string
	unreadable    bool // failure is about the output or the report of a process
	directiveSeen bool
	heard         map[string]int64 // when actions that count from marks arrived, on CLOCK_MONOTONIC
	acting        map[string]bool  // actions that this replica is known to carry out
	health        netem.Health
	// healthUnreported is how often in a row the shaper did not report its health.
	healthUnreported int
}

// newState reads the journal of an earlier agent in the same pod.
func newState(config Config) (*state, error) {
	s := &state{
		podFiles: podFiles{config},
		changed:  make(chan struct{}),
		volatile: volatile{incarnation: crand.Text(), resolved: map[string]bool{}, acting: map[string]bool{}, heard: map[string]int64{}},
	}
	var err error
	if s.journal, err = loadJournal(config.RunDir); err != nil {
		return nil, err
	}
	s.volatile.directiveSeen = s.journal.Directive != nil
	return s, nil
}

// await returns when the condition holds; it is called with the state locked. It fails only when
// ctx is done.
func (s *state) await(ctx context.Context, condition func() bool) error {
	for {
		s.mu.Lock()
		holds, changed := condition(), s.changed
		s.mu.Unlock()
		if holds {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// note changes the state and causes a report at once.
func (s *state) note(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.urgent++
	s.wake()
}

// noteQuietly changes the state without a report of its own.
func (s *state) noteQuietly(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.wake()
}

// record changes the journal, and returns when the change is on disk.
func (s *state) record(change func(*journal)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.journal)
	if err := s.journal.save(s.config.RunDir, s.config.Durable); err != nil {
		s.failLocked(fmt.Errorf("write the journal: %w", err))
	}
	s.urgent++
	s.wake()
}

// wake makes all that await look again. The caller holds the lock.
func (s *state) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// fail reports to the coordinator why the agent cannot go on. Only the first reason is kept.
func (s *state) fail(err error) {
	s.note(func() { s.failLocked(err) })
}

func (s *state) failLocked(err error) {
	if s.volatile.failure == "" {
		var report *unreadableError
		s.volatile.failure, s.volatile.unreadable = err.Error(), errors.As(err, &report)
		s.config.Log.Error("Cannot go on", "error", err)
	}
}

// directive returns the current directive.
func (s *state) directive() protocol.Directive {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.directiveLocked()
}

func (s *state) directiveLocked() protocol.Directive {
	if s.journal.Directive == nil {
		return protocol.Directive{}
	}
	return *s.journal.Directive
}

// failUnlessDone reports an error, unless the error only says that ctx is done.
func (s *state) failUnlessDone(ctx context.Context, err error) {
	if ctx.Err() == nil {
		s.fail(err)
	}
}

// nextAction finds the earliest action that is neither begun nor recorded. The caller holds the
// lock.
func (s *state) nextAction(begun map[string]bool) (next timeline.Action, found bool) {
	d := s.directiveLocked()
	if d.Run == nil {
		return next, false
	}
	for _, action := range d.Run.Actions {
		if begun[action.ID] || found && action.At >= next.At {
			continue
		}
		if _, recorded := s.recordedLocked(action.ID); !recorded {
			next, found = action, true
		}
	}
	return next, found
}

// recordedLocked returns the record of an action. The caller holds the lock.
func (s *state) recordedLocked(id string) (protocol.ActionRecord, bool) {
	i := slices.IndexFunc(s.journal.Actions, func(r protocol.ActionRecord) bool { return r.ID == id })
	if i < 0 {
		return protocol.ActionRecord{}, false
	}
	return s.journal.Actions[i], true
}

// containerNames are those of the directive, in its order.
func (s *state) containerNames() []string {
	var names []string
	for _, c := range s.directive().Containers {
		names = append(names, c.Name)
	}
	return names
}

// pause waits, or returns false when ctx is done.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// unreadableError is an error in a client's report or in the output of a prepare step. The fault is
// that of the system.
type unreadableError struct{ error }

func unreadable(err error) error { return &unreadableError{err} }

func (e *unreadableError) Unwrap() error { return e.error }
