// Package engine carries one trial out. It has the pods made, hands their agents directives phase
// by phase, agrees t = 0, collects and judges the results, and has everything deleted again.
//
// It uses the world through interfaces of its own (see World), and no API server. The trial's
// controller gives it adapters to Kubernetes. Another program can use the engine, if it has pods, a
// record, attachments and a clock.
//
// Each call of Advance observes once (scope) and runs the phases in order until one is not done:
//
//	(faults ->) deploy -> network (-> nodes) -> start -> load (-> scraped) -> release -> run (-> check) (-> measure) -> collect -> clean up
//
// The engine decides from pods and reports, which it can observe again, and not from conditions
// about them. It cannot observe t = 0 and the outcome again. So it writes these to the record
// before it acts on them, and a process that takes over goes on with the same run. A trial whose
// run is lost is not repeated silently: it ends as Invalid.
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

// World has all the interfaces that the engine uses. Faults, Nodes and Prometheus may be nil: then
// no such fault is carried out, and no such measurement is answered.
type World struct {
	Pods        Pods
	Record      Record
	Attachments Attachments
	Clock       Clock
	Agents      Agents
	Experiment  Experiment
	Faults      Injector
	Nodes       NodeResetter
	// Prometheus of the cluster. Nil: the cluster has none.
	Prometheus func() Prometheus
	// Domain of the names in the cluster.
	Domain string
	// Near: the agents run on this machine, too, and answer within milliseconds.
	Near bool
}

// Engine carries trials out. Several trials may advance at the same time, but only one goroutine
// may advance each of them.
type Engine struct {
	World

	phases   []phase
	cleanUp  phase
	director director
	cache    cache
}

// New returns an engine. It makes the phases once.
func New(w World) *Engine {
	e := &Engine{World: w, director: director{agents: w.Agents}}
	r := &renderer{record: w.Record, attachments: w.Attachments}
	n := &nodes{resetter: w.Nodes}
	f := &faults{injector: w.Faults}
	e.phases = []phase{
		f,
		&deploy{pods: w.Pods, attachments: w.Attachments, agents: w.Agents, renderer: r},
		&network{},
		n,
		&start{},
		&load{prometheus: w.Prometheus, clock: w.Clock},
		&release{near: w.Near, record: w.Record, experiment: w.Experiment, clock: w.Clock, faults: f, nodes: n},
		&run{experiment: w.Experiment},
		&check{},
		&measure{prometheus: w.Prometheus, clock: w.Clock},
		&collect{attachments: w.Attachments, heavy: &r.heavy},
	}
	e.cleanUp = &cleanUp{pods: w.Pods, attachments: w.Attachments, experiment: w.Experiment, faults: f, renderer: r}
	return e
}

// Advance brings a trial forward, and says how soon to call it again if nothing happens before; 0:
// when something happens. The error ErrConflict says that the trial has changed since it was read:
// the caller reads it again, and nothing is lost.
//
// The trial has a deadline beyond those of its phases. After it, any failure or wait ends the
// trial, since the trial holds its pools meanwhile.
func (e *Engine) Advance(ctx context.Context, trial *v1alpha1.Trial) (after time.Duration, err error) {
	s := newScope(trial, e.cache.of(trial), e.Clock.Now())
	known := s.outcomeKnown()
	err = e.observe(ctx, s)
	switch {
	case err == nil && s.outcomeKnown() && !known:
		after = time.Millisecond // the observation gave the trial up
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

// save writes the status of the trial, if it has changed.
func (e *Engine) save(ctx context.Context, s *scope) (time.Duration, error) {
	if s.unchanged() {
		return 0, nil
	}
	began := e.Clock.Now()
	hold, err := e.Record.Save(ctx, s.before, s.trial, s.events)
	if took := e.Clock.Now().Sub(began); err == nil && took < slowestSave { // more: the clock was set
		s.cache.slowest = max(s.cache.slowest, took)
	}
	return hold, err
}

// advance runs the phases until one is not done. Once the outcome is known, only the clean-up is
// left. It starts in a later call, after the outcome has been written.
func (e *Engine) advance(ctx context.Context, s *scope) (time.Duration, error) {
	phases, known := e.phases, s.outcomeKnown()
	if known {
		phases = []phase{e.cleanUp}
	}
	for _, p := range phases {
		r := p.run(ctx, s)
		if r.stage != nil {
			e.director.direct(s, *r.stage)
		}
		next, after, err := s.apply(p, r)
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

// Forget drops the kept state of every trial with the name, and returns their UIDs.
func (e *Engine) Forget(key types.NamespacedName) []types.UID { return e.cache.forget(key) }

// Cached returns for how many trials the engine keeps state.
func (e *Engine) Cached() int { return e.cache.size() }

// observe fills a scope. If an object that the trial wrote itself is gone, it gives the trial up,
// which would otherwise hold its pools for ever.
func (e *Engine) observe(ctx context.Context, s *scope) error {
	var err error
	if s.system, err = e.systemOf(ctx, s); err != nil {
		return s.lost(v1alpha1.ReasonRenderFailed, err) // the frozen System is never written again
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
	s.readReports(e.Agents, nil) // also those of predecessors, which are about to be forgotten
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

// systemOf reads the System in the state in which the experiment was accepted.
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

// detectReplacements finds out which pods of a run have been replaced, and saves that.
func (e *Engine) detectReplacements(ctx context.Context, s *scope) error {
	if !s.history.Applies() {
		return nil
	}
	kept, err := s.readRelease(ctx, e.Record)
	var lost *LostError
	if errors.As(err, &lost) && s.outcomeKnown() {
		return nil // the clean-up deletes the release with the other objects of the trial
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
