package simulation

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// agent is the agent of a pod, with the launchers and processes of its containers, and the
// kubelet's work for them. It speaks the protocol like package agent. These parts differ:
//
//   - It shapes, kills and measures nothing. Its measurements are made up, and are right unless the
//     history wants a wrong one.
//   - All containers of a pod start, run and end together, as one process.
//   - It learns each manager's clock from every answer, to within a millisecond, and measures no
//     drift.
//   - Commands of steps, checks and roles succeed.
//   - The only faults that it carries out are kills, pauses and partitions, each at its instant.
type agent struct {
	*cluster

	world  *world
	key    types.NamespacedName
	uid    types.UID
	number int
	of     types.UID // UID of the trial
	trial  string
	node   *node
	part   string

	// up: the container runs. over: the pod is gone.
	up, over bool
	life     int // counts the restarts of the container; work from an earlier life is dropped
	talking  bool
	manager  *manager // the one that it is connected to
	news     bool     // there is a change to report
	failures int

	disk journalled
	mem  remembered
	// process is the process of the system's containers, as their launchers know it.
	process process1
	// truth has the real events.
	truth truth
}

// journalled has the facts that survive a restart of the agent.
type journalled struct {
	directive *protocol.Directive
	digest    string // of the written files
	launched  int    // the launchers' boot in which the process was started; 0: it was not started
	settled   bool
	manager   string
	base      time.Duration // of the manager's clock when the run was agreed
	client    *protocol.ClientRun
	over      bool
	sent      bool
	actions   []protocol.ActionRecord
	commands  []protocol.CommandResult
	stepped   time.Duration
	failure   string
	// unreadable: failure is about the client's report. damaged: the report is damaged.
	unreadable, damaged bool
}

// remembered has the facts that a restart of the agent loses.
type remembered struct {
	sequence             uint64
	begun                map[string]bool
	resolved, ready      bool
	tried, baseline      bool
	proven, watched      bool
	load, used           bool
	finished, handedOver bool
	incarnation          string
	lastOffset           time.Duration
	heard                bool
}

// process1 is the process of a pod.
type process1 struct {
	state    string
	starts   int
	code     int
	expected bool
	exited   time.Duration // relative to t = 0
	launcher int           // counts the launchers' lives
	lost     bool          // the launcher is not the one that started the process
	digest   string        // of the files that existed when it was started
	released time.Time
}

// truth has what the world knows of a pod.
type truth struct {
	ranWithout string // what was wrong with the files when the process was started
	killedAt   map[string]time.Time
	starts     int
	handed     []handed // files that are safe, as the agent was told
}

func newAgent(c *cluster, n *node, pod *corev1.Pod) *agent {
	c.serial++
	a := &agent{
		cluster: c, world: c.of, key: client.ObjectKeyFromObject(pod), uid: pod.UID, number: c.serial, node: n, part: pod.Labels[v1alpha1.LabelPodType],
	}
	if t := c.of.trialNamed(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelTrial]}); t != nil {
		a.of, a.trial = t.UID, t.Name
	}
	f := c.of.factsOf(a.of)
	f.agents = append(f.agents, a)
	a.process.state, a.process.launcher = protocol.StateWaiting, 1
	a.truth.killedAt = map[string]time.Time{}
	return a
}

// alive: the agent's container runs, on a node that runs.
func (a *agent) alive() bool { return a.up && a.node.up && !a.over }

// later calls do after a time, if the agent's present life still lasts.
func (a *agent) later(d time.Duration, do func()) {
	life := a.life
	a.after(d, func() {
		if a.life == life && a.alive() {
			do()
		}
	})
}

// once calls do after a time, once in a life.
func (a *agent) once(what string, d time.Duration, do func()) {
	if a.mem.begun[what] {
		return
	}
	a.mem.begun[what] = true
	a.later(d, func() {
		do()
		a.tell()
		a.act()
	})
}

// act carries out the steps of the directive that it has not carried out yet.
func (a *agent) act() {
	d := a.disk.directive
	if !a.alive() || d == nil {
		return
	}
	if d.Finish {
		a.finish(d)
		return
	}
	a.fetch(d)
	a.connect(d)
	a.start(d)
	a.steps(d)
	if d.SampleLoad && !a.mem.load {
		a.once("load", 200*time.Millisecond, func() { a.mem.load = true })
	}
	if d.Run != nil {
		a.runs(d)
	}
}

// fetch gets the files of the directive.
func (a *agent) fetch(d *protocol.Directive) {
	if d.FilesDigest == "" || a.disk.digest == d.FilesDigest || a.mem.begun["files"] {
		if d.FilesDigest != "" && a.disk.digest == d.FilesDigest && !a.mem.resolved {
			a.once("names", a.between(5*time.Millisecond, 100*time.Millisecond), func() { a.mem.resolved = true })
		}
		return
	}
	a.mem.begun["files"] = true
	wanted := d.FilesDigest
	a.ask(http.MethodGet, "/v1/files", nil, false, func(r answer) {
		a.mem.begun["files"] = false
		var files []protocol.File
		if r.code != http.StatusOK || json.Unmarshal(r.body, &files) != nil || protocol.FilesDigest(files) != wanted {
			a.later(a.backoff(), a.act)
			return
		}
		a.disk.digest = wanted
		a.truth.ranWithout = ""
		if protocol.FilesDigest(files) != wanted {
			a.truth.ranWithout = "files of no directive"
		}
		a.tell()
		a.act()
	})
}

// connect measures the links, and shapes them if the directive says so.
func (a *agent) connect(d *protocol.Directive) {
	n := d.Network
	if n == nil || a.disk.digest != d.FilesDigest {
		return
	}
	a.once("try", a.between(5*time.Millisecond, 50*time.Millisecond), func() { a.mem.tried = true })
	a.once("baseline", a.between(50*time.Millisecond, 400*time.Millisecond), func() { a.mem.baseline = true })
	if n.Shape && a.mem.baseline {
		a.once("prove", a.between(100*time.Millisecond, 800*time.Millisecond), func() { a.mem.proven = true })
	}
}

// start starts the process, once in the pod's life.
func (a *agent) start(d *protocol.Directive) {
	if !d.Start || a.disk.digest != d.FilesDigest && d.Prepare == nil {
		return
	}
	held := d.Client != nil && !d.Client.WaitReady
	if a.disk.launched == 0 && !held {
		a.launch()
	}
	if a.process.state == protocol.StateRunning && !a.process.lost && !a.mem.ready {
		a.once("ready", a.between(20*time.Millisecond, 600*time.Millisecond), func() { a.mem.ready = true })
	}
	if held {
		a.mem.ready = true
	}
	if d.Client != nil && d.Run == nil && a.process.state == protocol.StateExited && !a.disk.over {
		a.disk.over = true // it ended before the start
		a.tell()
	}
	if d.Prepare != nil && a.process.state == protocol.StateRunning {
		a.once("prepare", a.between(200*time.Millisecond, 3*time.Second), a.prepare)
	} else if d.Prepare != nil && a.disk.over && !a.disk.sent {
		a.once("prepare again", 0, a.prepare)
	}
}

func (a *agent) launch() {
	a.disk.launched = a.process.launcher
	a.process.state, a.process.starts, a.process.digest = protocol.StateRunning, a.process.starts+1, a.disk.digest
	a.truth.starts++
	a.world.startedProcess(a)
	a.tell()
}

// prepare sends the output of the prepare step.
func (a *agent) prepare() {
	a.dies(0, true)
	a.disk.over = true
	a.send("/v1/prepared", preparedOutput, func(ok bool, why string) {
		if a.disk.sent = ok; !ok {
			a.disk.failure, a.disk.unreadable = "send the prepare step's output: "+why, true
		}
		a.tell()
	})
}

// preparedOutput is a packed key.
var preparedOutput = func() []byte {
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	t := tar.NewWriter(gz)
	if err := t.WriteHeader(&tar.Header{Name: "0.priv", Mode: 0o600, Size: 1, Typeflag: tar.TypeReg}); err != nil {
		panic(err)
	}
	if _, err := t.Write([]byte("k")); err != nil {
		panic(err)
	}
	if t.Close() != nil || gz.Close() != nil {
		panic("pack")
	}
	return b.Bytes()
}()

func (a *agent) steps(d *protocol.Directive) {
	if !a.mem.ready || len(d.Commands) == len(a.disk.commands) {
		return
	}
	id := d.Commands[len(a.disk.commands)].ID
	a.once("command "+id, a.between(20*time.Millisecond, 500*time.Millisecond), func() {
		if !slices.ContainsFunc(a.disk.commands, func(c protocol.CommandResult) bool { return c.ID == id }) {
			a.disk.commands = append(a.disk.commands, protocol.CommandResult{ID: id})
		}
	})
}

// at calls do at an instant of the run, or at once if that has passed.
func (a *agent) at(what string, instant time.Duration, do func()) {
	a.once(what, a.zero().Add(instant).Sub(a.now), do)
}

// runs carries out the agreed run.
func (a *agent) runs(d *protocol.Directive) {
	if !a.disk.settled {
		return
	}
	w := d.Run.Windows
	for i := range d.Run.Actions {
		x := d.Run.Actions[i]
		if slices.ContainsFunc(a.disk.actions, func(r protocol.ActionRecord) bool { return r.ID == x.ID }) {
			continue
		}
		a.at("action "+x.ID, x.At, func() { a.carryOut(x) })
	}
	a.at("used", w.Measure+50*time.Millisecond, func() { a.mem.used = true })
	a.at("counted", w.LastRequest(), func() { a.mem.watched = true })
	if d.Client != nil {
		a.runClient(d, w)
	}
}

// carryOut carries out one action of a fault, unless the history makes it fail.
func (a *agent) carryOut(x timeline.Action) {
	started := a.now.Sub(a.zero())
	r := protocol.ActionRecord{ID: x.ID, Planned: x.At, Started: started, Confirmed: started + time.Millisecond}
	if a.world.faultsFail[a.of] {
		r.Error, r.Confirmed = "the launcher did not answer", 0
		a.disk.actions = append(a.disk.actions, r)
		return
	}
	switch x.Kind {
	case timeline.Kill:
		if a.process.state == protocol.StateRunning {
			a.process.state, a.process.code, a.process.expected = protocol.StateHeld, 137, true
		}
	case timeline.Revive:
		if a.process.state == protocol.StateHeld {
			a.process.state, a.process.starts, a.process.code = protocol.StateRunning, a.process.starts+1, 0
		}
	case timeline.Heal:
		r.Packets = 12
	default:
	}
	a.truth.killedAt[x.ID] = a.now
	a.disk.actions = append(a.disk.actions, r)
}
