// Package agent is one pod's side of a trial: it prepares the pod, tells its launchers what to do
// and when, and tells the coordinator what it sees.
//
// It is a set of small straight-line stages that wait for each other through one shared state:
//
//	talk        report, get the directive, again and again         (sync.go)
//	clock       measure the offset to the coordinator's clock      (clock.go)
//	files       fetch and write the files                          (files.go)
//	names       wait until all names resolve                       (names.go)
//	network     try, measure, shape and prove the links            (network.go, backends.go, links.go)
//	watch       read the links back; canary probes                 (watch.go)
//	processes   start the processes, in order                      (processes.go)
//	restarts    start them again in containers that come anew      (restarts.go)
//	gates       find out when the pod is ready                     (gates.go)
//	commands    run the steps' commands                            (commands.go)
//	run         release the client                                 (run.go)
//	actions     carry out the actions                              (actions.go; faults.go, pauses.go, cuts.go, degrades.go)
//	roles       find out whether the replica has a role            (roles.go)
//	load        read how busy the machine is, before the run       (load.go)
//	samples     read what containers, network and node do          (samples.go, readings.go)
//	client      notice the client's end, read and send its report  (client.go)
//	prepare     wait for the prepare step, send its output         (prepare.go)
//	finish      end everything and put the network back            (finish.go, restore.go)
//	hand over   give the pod's files away                          (handover.go; farewell.go, for a pod that is deleted in the middle of a run)
//
// Once a run is agreed it goes on by the pod's own clock: nothing in it needs the coordinator,
// which may die and come back. The agent itself may, too: what must not happen twice is written to
// a journal before or remembered by the launchers (journal.go).
//
// An agent that resets a machine has three stages only: talk, clock and machine (machine.go).
//
// Time. The coordinator's clock is "CLOCK_MONOTONIC of this node plus an offset", which the agent
// measures; every instant of a directive is converted once and then kept with the monotonic clock
// alone. The pod's wall clock is only reported on.
package agent

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/netem/probe"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/timeline"
)

// Config of an agent.
type Config struct {
	// Coordinator is its host:port.
	Coordinator string
	// CAFile holds the certificates that may sign the coordinator's, TokenFile the pod's token.
	// Both are read at every use, since they rotate.
	CAFile, TokenFile string
	// RunDir and OutDir are shared with the launchers.
	RunDir, OutDir string
	// PodUID is the pod's.
	PodUID string
	// Durable: what is in RunDir must outlive the machine, since the agent resets it.
	Durable bool
	// FileRoots are the directories under which files may be written.
	FileRoots []string
	// Backends that may shape the pod's links, best first. None: they are measured only.
	Backends []Backend
	// Wall reads the pod's wall clock.
	Wall func() time.Time
	// Parse reads a client's report.
	Parse func(format string, report io.Reader, about ReportFacts) (results.Client, error)
	// Random spreads the retries of a trial's many agents.
	Random *rand.Rand
	Log    *slog.Logger
}

// ReportFacts are what a parser must know about the client whose report it reads.
type ReportFacts struct {
	ZeroMonotonicNanos, ZeroUnixNanos int64
	// StartNanos is when the client's process was started, relative to t = 0.
	StartNanos                  int64
	Windows                     timeline.Windows
	Index, FirstClient, Clients int32
	Misbehaving                 int32
	Records                     *results.Records
	Histograms                  *results.Histograms
	Summary                     []results.SummaryNumber
	// Whole: the client ended by itself with exit code 0.
	Whole    bool
	Arrivals io.Reader
}

// Agent of one pod.
type Agent struct {
	config      Config
	coordinator *coordinator
	clock       *clock
	silence     silencer
	cuts        cuts
	links       links
	host        protocol.Host

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	urgent  uint64        // counts the changes that the coordinator must know at once
	journal journal       // survives a restart of the agent
	seen    seen
	boxes   map[string]*box
	roles   map[string]*roleLog
	canary  *probe.Canary // nil but during the window
}

// seen is what the agent knows and can find out again.
type seen struct {
	manager       string // that is talked to
	incarnation   string
	resolved      map[string]bool
	processes     bool // all that start at once were started
	gatesHold     bool
	waitingFor    string
	atBarrier     bool
	progress      *protocol.Progress
	load          *protocol.Load
	finished      bool
	handedOver    bool
	failure       string
	directiveSeen bool
	acting        map[string]bool // actions of which it is known that this replica carries them out
	health        netem.Health
	mute          int // how often in a row the shaper did not tell its health
}

// New prepares an agent and reads what one before it in the same pod left behind.
func New(config Config) (*Agent, error) {
	_, portText, err := net.SplitHostPort(config.Coordinator)
	if err != nil {
		return nil, fmt.Errorf("read the coordinator's address: %w", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("read the coordinator's port: %w", err)
	}
	silence, err := netem.OpenSilence(uint16(port))
	if err != nil {
		return nil, err
	}
	cutOff, err := netem.OpenCut()
	if err != nil {
		return nil, err
	}
	a := &Agent{
		config:  config,
		clock:   &clock{wall: config.Wall},
		silence: silencer{silence: silence},
		cuts:    cuts{cut: cutOff, inForce: map[string]cut{}},
		host:    hostFacts(),
		changed: make(chan struct{}),
		boxes:   map[string]*box{},
		roles:   map[string]*roleLog{},
		seen:    seen{incarnation: crand.Text(), resolved: map[string]bool{}, acting: map[string]bool{}},
	}
	a.coordinator = newCoordinator(config)
	if a.journal, err = loadJournal(config.RunDir); err != nil {
		return nil, err
	}
	if a.journal.Clock != nil && a.journal.Reset == nil { // a machine that was reset counts from 0 again
		a.clock.add(*a.journal.Clock)
		if a.journal.Directive != nil && a.journal.Directive.Run != nil {
			a.clock.settle()
		}
	}
	a.seen.directiveSeen = a.journal.Directive != nil
	return a, nil
}

// Run is the agent's life. It returns when ctx is done, after it has put the pod's network back.
func (a *Agent) Run(ctx context.Context) error {
	a.adopt()
	work, stopWork := context.WithCancel(ctx)
	defer stopWork()
	var stages, talk sync.WaitGroup
	for _, stage := range []func(context.Context){
		a.doFiles, a.doNames, a.doProcesses, a.doRestarts, a.doGates, a.doCommands, a.doRun, a.doActions, a.doResets, a.doClient, a.doPrepare, a.doProgress,
		a.doNetwork, a.doWatch, a.doCanary, a.doRoles, a.doSamples, a.doLoad,
	} {
		stages.Go(func() { stage(work) })
	}
	talk.Go(func() { a.doTalk(ctx) })
	talk.Go(func() { a.doClock(ctx) })
	talk.Go(func() { a.doBoxes(ctx) })
	if a.await(ctx, func() bool { return a.journal.Directive != nil && a.journal.Directive.Finish }) == nil {
		stopWork()
		stages.Wait()
		a.finish(ctx)
		a.handOver(ctx)
	}
	<-ctx.Done()
	stages.Wait()
	talk.Wait()
	a.farewell(ctx)
	return errors.Join(a.restoreNetwork(), a.cuts.cut.Close(), a.silence.silence.Close())
}

// await returns when the condition holds; it is called with the state locked. It fails only when
// ctx is done.
func (a *Agent) await(ctx context.Context, condition func() bool) error {
	for {
		a.mu.Lock()
		holds, changed := condition(), a.changed
		a.mu.Unlock()
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

// note changes the state and has it reported at once.
func (a *Agent) note(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	a.urgent++
	a.wake()
}

// noteQuietly changes the state without a report of its own.
func (a *Agent) noteQuietly(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	a.wake()
}

// record changes the journal, and returns when the change is on disk.
func (a *Agent) record(change func(*journal)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.journal)
	if err := a.journal.save(a.config.RunDir, a.config.Durable); err != nil {
		a.failLocked(fmt.Errorf("write the journal: %w", err))
	}
	a.urgent++
	a.wake()
}

// wake makes all that await look again. The caller holds a.mu.
func (a *Agent) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// fail tells the coordinator why the agent cannot go on. The first reason stays.
func (a *Agent) fail(err error) {
	a.note(func() { a.failLocked(err) })
}

func (a *Agent) failLocked(err error) {
	if a.seen.failure == "" {
		a.seen.failure = err.Error()
		a.config.Log.Error("Cannot go on", "error", err)
	}
}

// directive returns the directive that holds now.
func (a *Agent) directive() protocol.Directive {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.directiveLocked()
}

func (a *Agent) directiveLocked() protocol.Directive {
	if a.journal.Directive == nil {
		return protocol.Directive{}
	}
	return *a.journal.Directive
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
