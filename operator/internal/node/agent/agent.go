// Package agent is one pod's side of a trial: it prepares the pod, tells its launchers what to do
// and when, and tells the coordinator what it sees.
//
// It is a set of small straight-line stages that wait for each other through one shared state
// (state.go). Each stage belongs to a part. A part has references to the parts that it uses:
//
//	session     reports, gets the directive and the files          (session.go, coordinator.go, files.go)
//	clockSync   measures the offset to the coordinator's clock     (clocksync.go; clock.go, runclock.go)
//	launchers   keeps a connection to each container's launcher    (launchers.go)
//	resolver    waits until all names resolve                      (names.go)
//	starter     starts the processes, in order, also in containers that a fault restarts (starter.go, processes.go, restarts.go)
//	gates       finds out when the pod is ready                    (gates.go, tail.go)
//	commands    runs the steps' commands                           (commands.go)
//	client      releases the client, sends its report; the prepare step (run.go, client.go, prepare.go)
//	roles       finds out whether the replica has a role           (roles.go)
//	faults      carries out the actions                            (actions.go, scheduler.go; a file for each kind of action, such as pauses.go; drops.go, isolation.go)
//	shaping     tries, measures, shapes and verifies the links     (network.go, shaper.go, backends.go, links.go, restore.go)
//	watcher     reads the links back; canary probes                (watch.go)
//	sampler     reads what containers, network and node do         (sampler.go, samples.go, readings.go, load.go, host.go)
//	uploads     gives the pod's files away                         (upload.go, collect.go; termination.go, for a pod that is deleted in the middle of a run)
//	reboots     resets a machine                                   (reboot.go)
//
// The files use each other in one direction, as packages import each other: they form no circle.
// All parts use config.go, podfiles.go, journal.go, state.go, clock.go and runclock.go.
//
// When the trial is over, the agent ends everything and puts the network back.
//
// An agreed run goes on by the pod's own clock: no step of it needs the coordinator, which may die
// and come back. The agent may die and come back, too. Before it takes a step that must not happen
// twice, it writes the step to a journal, or the launchers remember it (journal.go).
//
// An agent that resets a machine has three parts only: session, clockSync and reboots.
//
// Time. The coordinator's clock is "CLOCK_MONOTONIC of this node plus an offset", which the agent
// measures. It converts every instant of a directive once, and then uses only the monotonic clock.
// It only reports the offset of the pod's wall clock.
package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/netem"
)

// Agent of one pod. Its parts share the state, and each has references to the parts that it uses.
type Agent struct {
	*state
	clock     *runClock
	drops     *drops
	isolation *isolation

	session   *session
	clockSync *clockSync
	launchers *launchers
	resolver  *resolver
	starter   *starter
	gates     *gates
	commands  *commandRunner
	client    *clientRunner
	roles     *roleWatcher
	faults    *faultScheduler
	shaping   *linkShaper
	watcher   *watcher
	sampler   *sampler
	marks     *markReader
	uploads   *uploader
	reboots   *rebooter
}

// New prepares an agent and reads the journal of an earlier agent in the same pod.
func New(config Config) (*Agent, error) {
	_, portText, err := net.SplitHostPort(config.Coordinator)
	if err != nil {
		return nil, fmt.Errorf("read the coordinator's address: %w", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("read the coordinator's port: %w", err)
	}
	isolated, err := netem.OpenSilence(uint16(port))
	if err != nil {
		return nil, err
	}
	dropped, err := netem.OpenCut()
	if err != nil {
		return nil, err
	}
	board, err := newState(config)
	if err != nil {
		return nil, err
	}
	c := &clock{wall: config.Wall}
	if board.journal.Clock != nil && board.journal.Reset == nil { // the monotonic clock of a machine that was reset counts from 0 again
		c.add(*board.journal.Clock)
		if board.journal.Directive != nil && board.journal.Directive.Run != nil {
			c.settle()
		}
	}
	return assemble(board, c, &drops{filter: dropped, inForce: map[string]drop{}}, &isolation{filter: isolated}), nil
}

// assemble makes the parts of an agent, each after the parts that it uses.
func assemble(board *state, c *clock, d *drops, i *isolation) *Agent {
	a := &Agent{state: board, clock: &runClock{state: board, clock: c}, drops: d, isolation: i}
	coordinator, shaped := newCoordinator(board.config), &links{}
	a.launchers = &launchers{state: board, clock: a.clock, conns: map[string]*launcherConn{}}
	a.resolver = &resolver{state: board}
	a.gates = &gates{state: board, launchers: a.launchers, resolver: a.resolver}
	a.roles = &roleWatcher{state: board, clock: a.clock, launchers: a.launchers, gates: a.gates, logs: map[string]*roleLog{}}
	a.starter = &starter{state: board, clock: a.clock, launchers: a.launchers, resolver: a.resolver, roles: a.roles}
	a.commands = &commandRunner{state: board, launchers: a.launchers, gates: a.gates, starter: a.starter}
	a.uploads = &uploader{state: board, coordinator: coordinator}
	a.client = &clientRunner{state: board, clock: a.clock, coordinator: coordinator, launchers: a.launchers, gates: a.gates, starter: a.starter, uploads: a.uploads}
	a.shaping = &linkShaper{state: board, clock: a.clock, drops: d, isolation: i, links: shaped}
	a.watcher = &watcher{state: board, clock: a.clock, links: shaped, shaping: a.shaping}
	a.faults = &faultScheduler{state: board, clock: a.clock, drops: d, isolation: i, links: shaped, launchers: a.launchers, roles: a.roles, watcher: a.watcher}
	a.marks = &markReader{state: board, clock: a.clock}
	a.sampler = &sampler{state: board, clock: a.clock, launchers: a.launchers}
	a.clockSync = &clockSync{state: board, clock: a.clock, coordinator: coordinator}
	a.session = &session{state: board, clock: a.clock, coordinator: coordinator, launchers: a.launchers, gates: a.gates, resolver: a.resolver,
		shaping: a.shaping, sampler: a.sampler, host: hostFacts()}
	a.reboots = &rebooter{state: board, clock: a.clock}
	return a
}

// Run is the agent's life. It returns when ctx is done, after it has put the pod's network back.
func (a *Agent) Run(ctx context.Context) error {
	a.adopt()
	work, stopWork := context.WithCancel(ctx)
	defer stopWork()
	var stages, talk sync.WaitGroup
	for _, stage := range []func(context.Context){
		a.session.doFiles, a.resolver.doNames, a.starter.doProcesses, a.starter.doRestarts, a.gates.doGates, a.commands.doCommands,
		a.client.doRun, a.client.doClient, a.client.doPrepare, a.client.doProgress, a.faults.doActions, a.roles.doRoles, a.marks.doMarks,
		a.shaping.doNetwork, a.watcher.doWatch, a.watcher.doCanary, a.sampler.doResets, a.sampler.doSamples, a.sampler.doLoad,
	} {
		stages.Go(func() { stage(work) })
	}
	talk.Go(func() { a.session.doTalk(ctx) })
	talk.Go(func() { a.clockSync.doClock(ctx) })
	talk.Go(func() { a.launchers.doConnections(ctx) })
	if a.await(ctx, func() bool { return a.journal.Directive != nil && a.journal.Directive.Finish }) == nil {
		stopWork()
		stages.Wait()
		a.finish(ctx)
		a.uploads.upload(ctx)
	}
	<-ctx.Done()
	stages.Wait()
	talk.Wait()
	a.uploads.uploadOnTermination(ctx)
	return errors.Join(a.shaping.restoreNetwork(), a.drops.filter.Close(), a.isolation.filter.Close())
}

// adopt takes over the changes that an agent before this one made to the pod's network. It runs
// before all other steps.
func (a *Agent) adopt() {
	d := a.directive()
	if d.Finish {
		return
	}
	if d.Run != nil {
		if err := a.faults.adoptDrops(*d.Run); err != nil {
			a.fail(err)
		}
	}
	a.shaping.adopt(d)
}

// RunMachine is the life of an agent whose directive names a node to be reset. It continues the
// work of an agent before it, which went down with the same node:
//
//	T - armLead   what will have been done is written to the disk
//	T             the machine is reset                                   -> Started
//	              ... the machine starts, its kubelet starts this pod ...
//	              this agent finds itself on another machine than before -> Confirmed
//
// It returns when ctx is done.
func (a *Agent) RunMachine(ctx context.Context, m Machine) error {
	came := launcher.Monotonic()
	var stages sync.WaitGroup
	stages.Go(func() { a.session.doTalk(ctx) })
	stages.Go(func() { a.clockSync.doClock(ctx) })
	if err := a.reboots.doMachine(ctx, m, came); ctx.Err() == nil {
		a.fail(err)
	}
	<-ctx.Done()
	stages.Wait()
	return errors.Join(a.drops.filter.Close(), a.isolation.filter.Close())
}

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
	a.watcher.noteHealth() // the last report of health, before the backend drops the packets that it holds back
	if err := a.shaping.restoreNetwork(); err != nil {
		a.fail(err)
	}
	a.note(func() { a.volatile.finished = true })
}
