// Package engine carries one trial out. It has the pods made, hands their agents what to do phase
// by phase, agrees t = 0, collects and judges the results, and has everything deleted again.
//
// It knows the world by interfaces of its own (see World), and no API server. The trial's
// controller gives it adapters to Kubernetes. Anything else that has pods, a record, attachments
// and a clock may carry trials out by it.
//
// Each call of Advance observes once (scope) and runs the phases in order until one is not done:
//
//	(faults ->) deploy -> network (-> nodes) -> start -> load (-> scraped) -> release -> run (-> check) (-> measure) -> collect -> clean up
//
// The engine never decides from conditions what can be observed again (pods, reports). The instant
// t = 0 and the outcome cannot be. They are written to the record before anything acts on them, so
// that a process that takes over goes on with the same run. A trial whose run is lost is not
// repeated silently: it ends as Invalid.
package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/incarnation"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// World is all that the engine knows of the world. Faults, Nodes and Prometheus may be nil: then
// nothing carries out such faults, and nothing answers such measurements.
type World struct {
	Pods        Pods
	Record      Record
	Attachments Attachments
	Clock       Clock
	Agents      Agents
	Experiment  Experiment
	Faults      Injector
	Nodes       NodeResetter
	// Prometheus of the cluster; nil: it has none.
	Prometheus func() Prometheus
	// Domain of the cluster's names.
	Domain string
	// Near: the agents run on this machine, too, and answer within milliseconds.
	Near bool
}

// Engine carries trials out. Any number may be brought forward at the same time, but each by one
// goroutine only.
type Engine struct {
	World

	phases  []phase
	cleanUp phase
	cache   cache
}

// New returns an engine, and makes its phases once.
func New(w World) *Engine {
	e := &Engine{World: w}
	r := &renderer{record: w.Record, attachments: w.Attachments}
	d := &director{agents: w.Agents}
	n := &nodes{resetter: w.Nodes, director: d}
	f := &faults{injector: w.Faults}
	e.phases = []phase{
		f,
		&deploy{pods: w.Pods, attachments: w.Attachments, agents: w.Agents, renderer: r, director: d},
		&network{director: d},
		n,
		&start{director: d},
		&load{director: d, prometheus: w.Prometheus, clock: w.Clock},
		&release{near: w.Near, record: w.Record, experiment: w.Experiment, clock: w.Clock, faults: f, nodes: n, director: d},
		&run{experiment: w.Experiment, director: d},
		&check{director: d},
		&measure{prometheus: w.Prometheus, clock: w.Clock},
		&collect{attachments: w.Attachments, heavy: &r.heavy},
	}
	e.cleanUp = &cleanUp{pods: w.Pods, attachments: w.Attachments, experiment: w.Experiment, faults: f, renderer: r, director: d}
	return e
}

// Advance brings a trial forward, and says how soon to call it again if nothing happens before; 0:
// when something happens. The error ErrConflict says that the trial was read too early: nothing is
// lost by reading it again.
//
// Above the deadlines of the phases stands that of the trial. When it is over, whatever fails or is
// waited for ends the trial: it holds its pools meanwhile.
func (e *Engine) Advance(ctx context.Context, trial *v1alpha1.Trial) (after time.Duration, err error) {
	s := newScope(trial, e.cache.of(trial), e.Clock.Now())
	known := s.outcomeKnown()
	err = e.observe(ctx, s)
	switch {
	case err == nil && s.outcomeKnown() && !known:
		after = time.Millisecond // it was given up by what was observed
	case err == nil:
		after, err = e.advance(ctx, s)
	}
	if !s.outcomeKnown() && s.overdue() && !errors.Is(err, ErrConflict) {
		why := "it waits"
		if err != nil {
			why = err.Error()
		}
		s.fail(v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("All that the trial may take is over, and it is not: %s", why))
		after, err = time.Millisecond, nil
	}
	hold, saveErr := e.save(ctx, s)
	switch {
	case err != nil:
		return 0, err
	case saveErr != nil:
		return 0, saveErr
	case hold > 0 && (after == 0 || after > hold):
		return hold, nil
	}
	return after, nil
}

// save writes what has become of the trial, if anything has.
func (e *Engine) save(ctx context.Context, s *scope) (time.Duration, error) {
	if s.unchanged() {
		return 0, nil
	}
	return e.Record.Save(ctx, s.before, s.trial, s.events)
}

// advance runs the phases until one is not done. Once the outcome is known only the clean-up is
// left, and it starts in a call of its own, after the outcome has been written.
func (e *Engine) advance(ctx context.Context, s *scope) (time.Duration, error) {
	phases, known := e.phases, s.outcomeKnown()
	if known {
		phases = []phase{e.cleanUp}
	}
	for _, p := range phases {
		next, after, err := s.apply(p, p.run(ctx, s))
		switch {
		case err != nil:
			return 0, err
		case !known && s.outcomeKnown():
			return time.Millisecond, nil
		case !next:
			return after, nil
		}
	}
	return 0, nil
}

// Forget drops what is kept of every trial that had the name, and returns their UIDs.
func (e *Engine) Forget(key types.NamespacedName) []types.UID { return e.cache.forget(key) }

// Cached is how many trials something is kept of.
func (e *Engine) Cached() int { return e.cache.len() }

// observe fills a scope. The error of something that the trial wrote itself and that is gone gives
// it up: it would hold its pools for ever.
func (e *Engine) observe(ctx context.Context, s *scope) error {
	var err error
	if s.system, err = e.systemOf(ctx, s); err != nil {
		return s.lost(v1alpha1.ReasonRenderFailed, err) // the snapshot is never written again
	}
	s.layout = placement.NewLayout(s.trial.Namespace, s.trial.Name, &s.trial.Spec, s.system).InDomain(e.Domain)
	if s.pods, err = e.Pods.Observe(ctx, s.subject()); err != nil {
		return err
	}
	occurrences := s.occurrences()
	if e.Faults != nil {
		s.injection = e.Faults.Of(s.subject(), s.pods, occurrences)
	}
	s.history = &incarnation.History{
		Trial: s.trial, System: s.system, Names: s.everyName(), Pods: s.pods, Reports: s.report, Occurrences: occurrences, Now: s.now,
	}
	s.readReports(e.Agents, nil) // of predecessors, too, which are about to be forgotten
	if err := e.detectReplacements(ctx, s); err != nil {
		return s.lost(v1alpha1.ReasonRunLost, err)
	}
	resetters, err := e.Pods.Authorize(ctx, s.subject(), s.pods)
	if err != nil {
		return err
	}
	s.readReports(e.Agents, resetters)
	return nil
}

// systemOf reads the System as it was when the experiment was accepted.
func (e *Engine) systemOf(ctx context.Context, s *scope) (*v1alpha1.SystemSpec, error) {
	if s.cache.system == nil {
		system, err := e.Record.System(ctx, s.trial)
		if err != nil {
			return nil, err
		}
		s.cache.system = system
	}
	return s.cache.system, nil
}

// detectReplacements finds out which pods of a run have been replaced, and writes it down.
func (e *Engine) detectReplacements(ctx context.Context, s *scope) error {
	if !s.history.Applies() {
		return nil
	}
	kept, err := s.release(ctx, e.Record)
	var lost *LostError
	if errors.As(err, &lost) && s.outcomeKnown() {
		return nil // it is deleted with all that the trial made
	}
	if err != nil {
		return err
	}
	changed, err := s.history.Update(kept.Incarnations, func(p *corev1.Pod) (string, error) { return e.Pods.Impostor(ctx, s.subject(), p) })
	if err != nil || !changed {
		return err
	}
	s.cache.release = nil
	if err := e.Record.SaveIncarnations(ctx, s.subject(), s.history.Of); err != nil {
		return err
	}
	s.cache.release = &Release{Addresses: kept.Addresses, Incarnations: s.history.Of}
	return nil
}
