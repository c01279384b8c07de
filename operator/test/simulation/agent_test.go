package simulation

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
)

// agent is a pod's, with the launchers and processes of its containers, and the kubelet's part in
// them. It speaks the protocol as package agent does. These differ:
//
//   - Nothing is shaped, killed or measured: what an agent would find out is made up, and is right
//     unless the history wants it otherwise.
//   - All containers of a pod start, run and end together, as one process.
//   - It hears of each manager's clock with every answer, to within a millisecond, and measures no
//     drift.
//   - Commands of steps, checks and roles succeed.
//   - Of faults it carries out kills, pauses and partitions, each at its instant.
type agent struct {
	*cluster

	world  *world
	key    types.NamespacedName
	uid    types.UID
	number int
	of     types.UID // the trial
	trial  string
	node   *node
	part   string

	// up: its container runs. The pod is gone when over.
	up, over bool
	life     int // counts the restarts of the container; what was begun in an earlier one is dropped
	talking  bool
	manager  *manager // that it is connected to
	news     bool     // there is something to report
	failures int

	disk journalled
	mem  remembered
	// process is that of the system's containers, as their launchers know it.
	process process1
	// truth is what really happened.
	truth truth
}

// journalled is what survives a restart of the agent.
type journalled struct {
	directive *protocol.Directive
	digest    string // of the files that are written
	launched  int    // in which boot of the launchers the process was started; 0: it was not
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
	// unreadable: failure is about the client's report, which damaged says that it is.
	unreadable, damaged bool
}

// remembered is what does not.
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
	lost     bool          // the launcher is another one than it was started in
	digest   string        // of the files that were there when it was started
	released time.Time
}

// truth is what the world knows of a pod.
type truth struct {
	ranWithout string // what was wrong with the files that the process was started with
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

// alive: the agent's container runs, on a node that does.
func (a *agent) alive() bool { return a.up && a.node.up && !a.over }

// later does something in the agent's present life.
func (a *agent) later(d time.Duration, do func()) {
	life := a.life
	a.after(d, func() {
		if a.life == life && a.alive() {
			do()
		}
	})
}

// once begins something that takes a while, once in a life.
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

// begin is the kubelet's start of the pod.
func (a *agent) begin() {
	pod, _ := a.find("Pod", a.key).(*corev1.Pod)
	if pod == nil || pod.UID != a.uid || a.over || !a.node.up || a.up {
		return
	}
	if pod.DeletionTimestamp != nil {
		a.terminate()
		return
	}
	now := pod.DeepCopy()
	now.Status.Phase, now.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.%d.%d.%d", a.number>>16&255, a.number>>8&255, a.number&255)
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(a.now)}}
	now.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "agent", ImageID: "sha256:agent", State: state}}
	for _, c := range pod.Spec.Containers {
		now.Status.ContainerStatuses = append(now.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, ImageID: "sha256:" + c.Name, State: state})
	}
	a.write(now)
	a.boot()
}

// boot starts the agent's container.
func (a *agent) boot() {
	a.up = true
	a.life++
	a.talking, a.failures = false, 0
	a.mem = remembered{begun: map[string]bool{}, incarnation: fmt.Sprintf("%d.%d", a.number, a.life)}
	a.tell()
	a.act()
}

// restartAgent is a crash of the agent's container alone.
func (a *agent) restartAgent() {
	if !a.alive() {
		return
	}
	a.up = false
	a.life++
	a.after(a.between(100*time.Millisecond, 2*time.Second), func() {
		if !a.over && a.node.up && !a.up {
			a.boot()
			a.after(a.between(0, 3*time.Second), func() { a.count(true, false) })
		}
	})
}

// powerOff is what a node that goes down does to the pod.
func (a *agent) powerOff() {
	a.up = false
	a.life++
	a.dies(137, false)
}

// powerOn starts the pod's containers again, or fails the pod where none are restarted.
func (a *agent) powerOn() {
	if a.over {
		return
	}
	pod, _ := a.find("Pod", a.key).(*corev1.Pod)
	if pod == nil || pod.UID != a.uid {
		return
	}
	if pod.Status.PodIP == "" {
		a.after(a.between(time.Second, 5*time.Second), a.begin)
		return
	}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		a.fails("Error", "The node was shut down.")
		return
	}
	a.process.launcher++
	a.process.lost = a.disk.launched != 0
	a.after(a.between(time.Second, 10*time.Second), func() {
		if a.over || !a.node.up || a.up {
			return
		}
		a.boot()
		// The kubelet reports the restarts when its turn comes.
		a.after(a.between(200*time.Millisecond, 10*time.Second), func() { a.count(true, true) })
	})
}

// restartContainers is the end of all containers of the system, by their launchers: a runtime that
// loses its shims. They are restarted where the pod's are.
func (a *agent) restartContainers() {
	pod, _ := a.find("Pod", a.key).(*corev1.Pod)
	if pod == nil || pod.UID != a.uid || !a.alive() {
		return
	}
	a.dies(137, false)
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		a.fails("Error", "")
		return
	}
	a.process.launcher++
	a.process.lost = a.disk.launched != 0
	a.tell()
	a.later(a.between(10*time.Millisecond, 3*time.Second), func() { a.count(false, true) })
}

// count reports restarts in the pod's status.
func (a *agent) count(agent, containers bool) {
	pod, _ := a.find("Pod", a.key).(*corev1.Pod)
	if pod == nil || pod.UID != a.uid || a.over || !a.node.reachable() {
		return
	}
	now := pod.DeepCopy()
	for i := range now.Status.InitContainerStatuses {
		if agent {
			now.Status.InitContainerStatuses[i].RestartCount++
		}
	}
	for i := range now.Status.ContainerStatuses {
		if containers {
			now.Status.ContainerStatuses[i].RestartCount++
		}
	}
	a.write(now)
}

// fails ends the pod for good, as the kubelet says: its containers are not restarted, or it evicts
// it for its own needs.
func (a *agent) fails(reason, message string) {
	a.dies(137, false)
	a.up, a.over = false, true
	a.life++
	a.after(a.between(20*time.Millisecond, time.Second), func() {
		pod, _ := a.find("Pod", a.key).(*corev1.Pod)
		if pod == nil || pod.UID != a.uid {
			return
		}
		now := pod.DeepCopy()
		now.Status.Phase, now.Status.Reason, now.Status.Message = corev1.PodFailed, reason, message
		a.write(now)
		if pod.DeletionTimestamp != nil {
			a.gone()
		}
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "StatefulSet" {
			a.after(a.between(20*time.Millisecond, time.Second), func() {
				a.syncSet(types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name})
			})
		}
	})
}

// terminate is the kubelet's end of a pod that was deleted: processes get SIGTERM, the agent says
// farewell, and the object goes.
func (a *agent) terminate() {
	if !a.node.reachable() {
		return // it is told when it is back
	}
	if a.over {
		a.gone()
		return
	}
	// The launcher takes the signal, and kills its process: it was asked to.
	if a.process.state == protocol.StateRunning {
		a.dies(137, true)
		a.process.state, a.process.expected = protocol.StateHeld, true
		a.tell()
	}
	a.after(a.between(50*time.Millisecond, 3*time.Second), func() {
		if !a.node.reachable() {
			return
		}
		a.up, a.over = false, true
		a.life++
		pod, _ := a.find("Pod", a.key).(*corev1.Pod)
		if pod == nil || pod.UID != a.uid {
			a.removed()
			return
		}
		now := pod.DeepCopy()
		now.Status.Phase = corev1.PodSucceeded
		a.write(now)
		a.gone()
	})
}

// gone has the kubelet take the pod's object away.
func (a *agent) gone() {
	a.after(a.between(20*time.Millisecond, 800*time.Millisecond), func() {
		zero := int64(0)
		if p := a.find("Pod", a.key); p != nil && p.GetUID() == a.uid && a.node.reachable() {
			_ = a.remove(p, client.DeleteOptions{GracePeriodSeconds: &zero})
		}
	})
}

// removed forgets the pod: its object is gone, and its processes if the kubelet saw that.
func (a *agent) removed() {
	if a.node.reachable() || !a.node.up {
		a.up, a.over = false, true
		a.life++
		a.dies(137, true)
		delete(a.node.pods, a.uid)
	}
}

// dies ends the process, if it runs.
func (a *agent) dies(code int, expected bool) {
	if a.process.state != protocol.StateRunning {
		return
	}
	a.process.state, a.process.code, a.process.expected = protocol.StateExited, code, expected
	a.process.exited = 0
	if d := a.disk.directive; d == nil || !d.Finish && d.Prepare == nil && (d.Client == nil || code != 0) {
		a.world.processDied(a)
	}
	if d := a.disk.directive; d != nil && d.Run != nil && a.disk.settled {
		if a.process.exited = a.now.Sub(a.zero()); a.process.exited == 0 {
			a.process.exited = 1
		}
	}
	if d := a.disk.directive; d != nil && (d.Finish || d.Prepare != nil || d.Client != nil && d.Run != nil) {
		a.process.expected = true
	}
}

// zero is t = 0 on the world's clock.
func (a *agent) zero() time.Time {
	return time.Unix(0, a.disk.directive.Run.ZeroUnixNanos).Add(-a.disk.base)
}

// tell has the state reported soon.
func (a *agent) tell() {
	a.news = true
	a.later(a.between(5*time.Millisecond, 25*time.Millisecond), a.talk)
}

// talk sends a report, if one is due and none is on its way.
func (a *agent) talk() {
	if a.talking || !a.news {
		return
	}
	a.talking, a.news = true, false
	a.mem.sequence++
	body, err := json.Marshal(a.report())
	if err != nil {
		panic(err)
	}
	a.ask(http.MethodPost, "/v1/sync", body, false, func(r answer) {
		a.talking = false
		if r.code != http.StatusOK {
			a.news = true
			a.later(a.backoff(), a.talk)
			return
		}
		a.failures = 0
		var d protocol.Directive
		if err := json.Unmarshal(r.body, &d); err != nil {
			panic(err)
		}
		if a.disk.directive == nil || a.disk.directive.Version != d.Version {
			a.disk.directive = &d
			a.tell()
		}
		a.hear(r.manager)
		a.act()
		if a.news {
			a.tell()
		}
	})
}

func (a *agent) backoff() time.Duration {
	a.failures++
	return a.between(10*time.Millisecond, min(20*time.Millisecond<<min(a.failures, 10), time.Second))
}

// hear notes a manager's clock.
func (a *agent) hear(name string) {
	offset, known := a.world.clockOf(name)
	if !known {
		return
	}
	a.mem.lastOffset, a.mem.heard = offset, true
	d := a.disk.directive
	if a.disk.settled {
		if by := (offset - a.disk.base).Abs(); by > time.Millisecond {
			a.disk.stepped = max(a.disk.stepped, by)
			a.tell()
		}
		return
	}
	if d != nil && d.Run != nil {
		a.disk.settled, a.disk.base, a.disk.manager = true, offset, name
	}
}

// ask sends a request to one of the managers, whichever answers at the address.
func (a *agent) ask(method, path string, body []byte, stores bool, then func(answer)) {
	life := a.life
	answered := false
	reply := func(r answer) {
		a.after(a.between(200*time.Microsecond, 2*time.Millisecond), func() {
			if !answered && a.life == life && a.alive() {
				answered = true
				if !a.node.reachable() || a.world.dropped() {
					r = answer{}
				}
				if r.code/100 != 2 {
					a.manager = nil // and the next connection may reach another
				}
				then(r)
			}
		})
	}
	// A request without an answer is over after a while.
	a.after(20*time.Second, func() {
		if !answered {
			reply(answer{})
		}
	})
	if a.manager == nil || a.manager.gone {
		a.manager = a.world.pickManager()
	}
	m := a.manager
	if m == nil || !a.node.reachable() || a.world.dropped() {
		a.after(a.between(time.Millisecond, 2*time.Second), func() { reply(answer{}) })
		return
	}
	request := httptest.NewRequest(method, path, bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+string(a.uid))
	a.after(a.between(200*time.Microsecond, 2*time.Millisecond), func() { m.serve(request, stores, reply) })
}

// send delivers something until a manager has it, or never will.
func (a *agent) send(path string, packed []byte, then func(ok bool, why string)) {
	a.ask(http.MethodPost, path, packed, true, func(r answer) {
		switch {
		case r.code/100 == 2:
			then(true, "")
		case r.code == http.StatusBadRequest || r.code == http.StatusRequestEntityTooLarge:
			then(false, strings.TrimSpace(string(r.body)))
		default:
			a.later(a.backoff(), func() { a.send(path, packed, then) })
		}
	})
}

// act does what the directive says and has not been done.
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

// connect measures the links, and shapes them when it is to.
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

// prepare sends what the prepare step has made.
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

// at does something at an instant of the run, or at once if it has passed.
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

// carryOut does one action of a fault, unless the history has it fail.
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

// runClient releases the client, ends it after the drain, and sends its report.
func (a *agent) runClient(d *protocol.Directive, w timeline.Windows) {
	if a.disk.client == nil {
		released := max(a.now.Sub(a.zero()), -w.WarmUp)
		if d.Client.WaitReady {
			a.release(a.now.Sub(a.zero()))
		} else {
			a.at("release", released, func() {
				if a.disk.client == nil {
					a.launch()
					a.release(a.now.Sub(a.zero()))
				}
			})
			return
		}
	}
	if !a.disk.over {
		if a.process.state == protocol.StateExited || a.process.lost {
			a.endClient()
			return
		}
		a.at("end", w.LastRequest()+20*time.Millisecond, func() {
			if !a.disk.over {
				a.dies(0, true)
				a.endClient()
			}
		})
		return
	}
	if !a.disk.sent && !a.mem.begun["results"] && a.disk.failure == "" {
		a.mem.begun["results"] = true
		a.results(d, w)
	}
}

func (a *agent) release(at time.Duration) {
	a.disk.client = &protocol.ClientRun{Released: at}
	a.process.released = a.now
	a.tell()
}

func (a *agent) endClient() {
	a.disk.over = true
	ended := a.now.Sub(a.zero())
	if a.process.exited != 0 {
		ended = min(ended, a.process.exited)
	}
	client := *a.disk.client
	client.Ended, client.ExitCode = ended, a.process.code
	a.disk.client = &client
	a.tell()
	a.act()
}

func (a *agent) results(d *protocol.Directive, w timeline.Windows) {
	if a.process.code != 0 || a.disk.damaged {
		a.disk.failure = "the client's report at /assay/out/result.json is damaged or missing"
		a.disk.unreadable = true
		a.tell()
		return
	}
	a.later(a.between(10*time.Millisecond, 300*time.Millisecond), func() {
		a.send("/v1/results", packedResults(d.Client, w), func(ok bool, why string) {
			if a.disk.sent = ok; !ok {
				a.disk.failure = "send the client's results: " + why
			}
			a.tell()
		})
	})
}

// resultsCache holds packed results of clients, which many histories have in common.
var resultsCache sync.Map

// packedResults are those of a client that committed ten times a second.
func packedResults(c *protocol.Client, w timeline.Windows) []byte {
	key := fmt.Sprint(c.Index, c.FirstClient, c.Clients, w)
	if b, made := resultsCache.Load(key); made {
		return b.([]byte)
	}
	h := results.NewHistogram()
	commits := int64(w.Measure / (100 * time.Millisecond))
	bins := int((w.WarmUp + w.Measure + w.CoolDown) / (100 * time.Millisecond))
	line := results.NewTimeline(-w.WarmUp.Milliseconds(), bins)
	for i := range commits {
		h.Record(5 * time.Millisecond)
		bin := int(w.WarmUp/(100*time.Millisecond)) + int(i)
		line.Committed[bin]++
		line.LatencySumMicros[bin] += 5000
	}
	latency, err := h.Encode()
	if err != nil {
		panic(err)
	}
	b, err := results.EncodeClient(results.Client{
		Index: c.Index, FirstClient: c.FirstClient, Clients: c.Clients, StartedNanos: -w.WarmUp.Nanoseconds(), MeasureNanos: w.Measure.Nanoseconds(),
		Counters: results.Counters{Offered: commits, Committed: commits}, Latency: latency, Timeline: line,
	})
	if err != nil {
		panic(err)
	}
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	if _, err := gz.Write(b); err != nil || gz.Close() != nil {
		panic("pack the results")
	}
	resultsCache.Store(key, packed.Bytes())
	return packed.Bytes()
}

// finish ends the process, and hands the pod's files over.
func (a *agent) finish(d *protocol.Directive) {
	a.once("finish", a.between(20*time.Millisecond, 500*time.Millisecond), func() {
		a.dies(143, true)
		if a.process.state == protocol.StateHeld {
			a.process.state = protocol.StateExited
		}
		a.mem.finished = true
		if d.HandOver {
			a.handOver(a.filesOf(d), true, a.now.Add(uploadLimit))
			return
		}
		if d.Collect == nil {
			a.mem.handedOver = true
			return
		}
		a.send("/v1/collected", []byte("packed files of "+a.key.Name), func(bool, string) {
			a.mem.handedOver = true
			a.tell()
		})
	})
}

// uploadLimit is how long the agent hands its files over.
const uploadLimit = 75 * time.Second

// filesOf the pod, by name, that go to the store.
func (a *agent) filesOf(d *protocol.Directive) []string {
	if a.disk.failure != "" && !a.disk.unreadable {
		return nil // there is no room to pack them
	}
	var names []string
	if d.Collect != nil && len(d.Collect.Patterns) > 0 {
		names = append(names, protocol.CollectedFile)
	}
	if d.Client != nil && a.disk.sent {
		names = append(names, protocol.ClientResultFile)
	}
	for _, c := range d.Containers {
		names = append(names, c.Name+".stdout.gz")
	}
	return append(names, "agent.log.gz")
}

// handOver gives the files to the store, one by one. From the first one on that it does not take,
// the manager gets them.
func (a *agent) handOver(names []string, direct bool, by time.Time) {
	if len(names) == 0 || !a.now.Before(by) {
		a.mem.handedOver = true
		a.tell()
		return
	}
	data := []byte("packed " + names[0] + " of " + a.key.Name)
	o := store.Describe("", data)
	u := protocol.Upload{Name: names[0], Size: o.Size, SHA256: o.SHA256}
	kept := func(safe, direct bool) {
		if safe {
			a.noteHanded(u)
		}
		a.handOver(names[1:], direct, by)
	}
	if !direct {
		a.keep(u, data, by, func(safe bool) { kept(safe, false) })
		return
	}
	a.putOnce(u, data, func(taken bool) {
		if taken {
			kept(true, true)
			return
		}
		a.keep(u, data, by, func(safe bool) { kept(safe, false) })
	})
}

// known is the name by which managers know the pod: that of a Job's has no suffix.
func (a *agent) known() string {
	if a.part == v1alpha1.PodTypeReplica {
		return a.key.Name
	}
	return a.key.Name[:strings.LastIndex(a.key.Name, "-")]
}

func (a *agent) noteHanded(u protocol.Upload) {
	if t := a.world.trialNamed(types.NamespacedName{Namespace: a.key.Namespace, Name: a.trial}); t != nil && t.UID == a.of {
		if f, err := store.TrialFolder(t); err == nil {
			a.truth.handed = append(a.truth.handed, handed{store.Object{Key: f.PodFile(a.known(), u.Name), Size: u.Size, SHA256: u.SHA256}, a.now})
		}
	}
}

// putOnce asks for a ticket, and puts a file into the store by it.
func (a *agent) putOnce(u protocol.Upload, data []byte, then func(taken bool)) {
	body, err := json.Marshal(u)
	if err != nil {
		panic(err)
	}
	a.ask(http.MethodPost, "/v1/upload", body, false, func(r answer) {
		var ticket protocol.Ticket
		if r.code != http.StatusOK || json.Unmarshal(r.body, &ticket) != nil {
			then(false)
			return
		}
		a.world.bucket.put(a, store.Object{Key: ticket.URL, Size: u.Size, SHA256: u.SHA256}, data, then)
	})
}

// keep has the manager keep a file, which is small enough for one part.
func (a *agent) keep(u protocol.Upload, data []byte, by time.Time, then func(safe bool)) {
	query := url.Values{"name": {u.Name}, "sha256": {u.SHA256}, "size": {strconv.FormatInt(u.Size, 10)}, "part": {"0"}}
	a.ask(http.MethodPost, "/v1/keep?"+query.Encode(), data, true, func(r answer) {
		switch {
		case r.code/100 == 2:
			then(true)
		case r.code == http.StatusBadRequest || r.code == http.StatusInsufficientStorage || !a.now.Before(by):
			then(false)
		default:
			a.later(a.backoff(), func() { a.keep(u, data, by, then) })
		}
	})
}

// report is all that the agent sees.
func (a *agent) report() *protocol.Report {
	d := a.disk.directive
	if d == nil {
		d = &protocol.Directive{}
	}
	r := &protocol.Report{
		Incarnation: a.mem.incarnation, Sequence: a.mem.sequence, DirectiveVersion: d.Version, FilesDigest: a.disk.digest, NamesResolved: a.mem.resolved,
		Ready:    a.mem.ready && (a.process.state == protocol.StateRunning || a.process.state == protocol.StateWaiting) && !a.process.lost,
		Commands: a.disk.commands, Actions: a.disk.actions, Client: a.disk.client, Over: a.disk.over, Sent: a.disk.sent, Finished: a.mem.finished,
		HandedOver: a.mem.handedOver, ResetsCounted: a.mem.watched, Failure: a.disk.failure, Unreadable: a.disk.unreadable, ClockError: time.Millisecond, ClockManager: a.disk.manager,
		ClockStepped: a.disk.stepped, Host: protocol.Host{Kernel: "6.12", CPUs: 4, Agent: "sim"},
	}
	r.AtBarrier = d.Client != nil && d.Start && a.mem.ready && (!d.Client.WaitReady || r.Ready)
	for _, c := range d.Containers {
		r.Containers = append(r.Containers, a.containerState(c.Name))
	}
	if a.mem.load {
		r.Load = &protocol.Load{CPUs: 4, Seconds: 1}
	}
	if a.mem.used && d.Run != nil {
		r.Resources = usedResources(d)
	}
	r.Network = a.networkReport(d.Network)
	return r
}

func (a *agent) containerState(name string) protocol.ContainerState {
	s := protocol.ContainerState{Name: name, State: a.process.state, ExitCode: a.process.code, Expected: a.process.expected, Starts: a.process.starts}
	if a.process.state != protocol.StateExited {
		s.Exited = 0
	} else {
		s.Exited = a.process.exited
	}
	if a.process.lost {
		s.State, s.ExitCode, s.Starts, s.Exited = protocol.StateLost, 137, max(1, a.process.starts), 0
	}
	return s
}

func usedResources(d *protocol.Directive) *results.Resources {
	seconds := d.Run.Measure.Seconds()
	r := &results.Resources{Seconds: seconds, CPUMeanCores: 0.2, CPUMaxCores: 0.3, Node: results.NodeUse{Seconds: seconds, CPUs: 4, BusyShare: 0.4}}
	for _, c := range d.Containers {
		r.Containers = append(r.Containers, results.ContainerUse{Name: c.Name, Seconds: seconds, CPUMeanCores: 0.2, LateShare: new(float64), Wakes: 800})
	}
	return r
}

// undelayed round trip between any two pods.
const undelayed = 200 * time.Microsecond

func (a *agent) networkReport(n *protocol.Network) *protocol.NetworkReport {
	if n == nil {
		return nil
	}
	r := &protocol.NetworkReport{Tried: a.mem.tried, Baseline: a.mem.baseline}
	if a.mem.tried {
		r.Backends = shaping.Backends
	}
	if !a.mem.proven {
		return r
	}
	r.Proven, r.Watched, r.Rounds, r.ApplyTook, r.ProveTook = true, a.mem.watched, 1, 20*time.Millisecond, 300*time.Millisecond
	for _, p := range n.Peers {
		l := protocol.LinkReport{
			Peer: p.Name, BaselineRTT: undelayed, RTT: p.Out.Delay + p.In.Delay + undelayed + 50*time.Microsecond,
			OutDelay: p.Out.Delay + undelayed/2, InDelay: p.In.Delay + undelayed/2,
		}
		if a.mem.watched {
			l.CanarySent, l.CanaryMin, l.CanaryMedian, l.CanaryMax = 20, l.RTT, l.RTT, l.RTT
		}
		r.Links = append(r.Links, l)
	}
	return r
}
