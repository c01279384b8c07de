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
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/instants"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/node/protocol"
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

// takeOver is how long an engine that has not seen a trial before tries to carry it on, whatever
// the trial's deadline says.
const takeOver = 2 * time.Minute

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

// cache is what the engine keeps between calls, by trial; all of it can be made again.
type cache struct {
	mu     sync.Mutex
	trials map[types.UID]*entry
}

// entry is what is kept of one trial.
type entry struct {
	key          types.NamespacedName
	since        time.Time     // when the engine first saw it
	seen         instants.Seen // of its status
	rendered     *rendered
	system       *v1alpha1.SystemSpec
	created      bool            // its objects exist
	prepared     []protocol.File // not nil once the prepare step's output has been read
	preparing    bool            // the prepare step's agent has its directive
	noted        map[string]bool // actions of faults that were reported, by their ID
	progress     time.Time       // when it was last published
	asked        time.Time       // when it was last asked why pods are missing
	checked      time.Time       // when it was last asked what is left of it
	unstored     unstored        // the last attempt to store its results, if it failed
	release      *Release        // what the run was released with
	replacements map[types.UID]*render.Pod
	occurrences  []*fault.Occurrence // of faults that an injector carries out
}

func (c *cache) of(trial *v1alpha1.Trial) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trials == nil {
		c.trials = map[types.UID]*entry{}
	}
	if c.trials[trial.UID] == nil {
		c.trials[trial.UID] = &entry{
			key: types.NamespacedName{Namespace: trial.Namespace, Name: trial.Name}, noted: map[string]bool{}, replacements: map[types.UID]*render.Pod{},
		}
	}
	return c.trials[trial.UID]
}

func (c *cache) forget(key types.NamespacedName) (forgotten []types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, e := range c.trials {
		if e.key == key {
			delete(c.trials, uid)
			forgotten = append(forgotten, uid)
		}
	}
	return forgotten
}

func (c *cache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.trials)
}
