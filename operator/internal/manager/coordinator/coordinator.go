// Package coordinator is the manager's side of package protocol: the agents of all pods dial it,
// tell it what they see, and get what they should do.
//
// It decides nothing. The trial controller registers a trial's pods, sets their directives and
// reads their reports. The coordinator carries both to and fro, checks which pod is talking, and
// stores what agents send before it acknowledges it. It keeps everything in memory: after a restart
// of the manager the agents report again and the controller sets the same directives again.
package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"assay.dev/assay/operator/internal/node/protocol"
)

// Pod is a pod of a trial.
type Pod struct {
	// UID of the pod; a pod that is made again under the same name is another one.
	UID types.UID
	// Trial that the pod belongs to.
	Trial types.NamespacedName
	// Name in the trial's layout, which for a client is its host name.
	Name string
	// Part of the trial that the pod has: v1alpha1.PodTypeReplica, PodTypeClient or PodTypePrepare.
	// Empty for one that resets a machine.
	Part string
	// Index of a client pod.
	Index int
}

// RejectedError says why the manager never stores a report of an agent.
type RejectedError struct{ Reason string }

func (e *RejectedError) Error() string { return "it is rejected: " + e.Reason }

// Store keeps what agents send. All calls return only when it is safe. A *RejectedError is final;
// after others agents send again. They call read when they have read what is packed, before they
// write it anywhere: the memory for that is then free for others.
type Store interface {
	StorePrepared(ctx context.Context, pod Pod, packed []byte, read func()) error
	StoreResults(ctx context.Context, pod Pod, packed []byte, read func()) error
	StoreCollected(ctx context.Context, pod Pod, packed []byte, read func()) error
}

// Identifier tells which pod a token belongs to.
type Identifier interface {
	// Claimed reads the pod's UID out of a token without asking anybody whether the token is good.
	Claimed(token string) (uid types.UID, ok bool)
	// Known returns the pod of a token that was found good a moment ago, without asking anybody.
	Known(token string) (uid types.UID, ok bool)
	// Identify asks.
	Identify(ctx context.Context, token string) (types.UID, error)
}

// Options of a Coordinator. All are needed.
type Options struct {
	Clock      clock.Clock
	Log        logr.Logger
	Identifier Identifier
	Store      Store
	Archive    Archive
	// Notify is called when a trial's reports changed in a way that a controller cares about. It
	// must not block.
	Notify func(trial types.NamespacedName)
	// Instance names this manager's process, whose clock is Clock.
	Instance string
	// Leading reports whether this manager leads. Others answer 503.
	Leading func() bool
}

// Coordinator serves the agents.
type Coordinator struct {
	Options

	refusals refusals
	// receiving bounds the memory that the bodies of requests take, decoding what it takes to read
	// them, in bytes.
	receiving, decoding *semaphore.Weighted

	mu       sync.Mutex
	sessions map[types.UID]*session
	trials   map[types.NamespacedName]map[string]*session
}

// session is what is known of one pod. It is guarded by the coordinator's mutex.
type session struct {
	pod       Pod
	directive protocol.Directive
	files     []protocol.File
	directed  bool          // directive and files are the trial controller's
	changed   chan struct{} // closed and replaced when directive changes
	report    *protocol.Report
	reported  time.Time
	tickets   int // that were given for files
	// reporting and delivering let in one request each. linksRead is the last report's links, for
	// the one that reports.
	reporting, delivering *semaphore.Weighted
	linksRead             linksRead
	// trial is the part of what is received that all pods of the trial share.
	trial *semaphore.Weighted
}

// New returns a coordinator that knows no pod.
func New(o Options) *Coordinator {
	return &Coordinator{
		Options: o, receiving: semaphore.NewWeighted(maxReceived), decoding: semaphore.NewWeighted(maxDecoded),
		sessions: map[types.UID]*session{}, trials: map[types.NamespacedName]map[string]*session{},
	}
}

// Register makes pods known. Pods that are registered already keep their directives and reports;
// pods of the trial outside the list are forgotten.
func (c *Coordinator) Register(trial types.NamespacedName, pods []Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.trials[trial]
	now := make(map[string]*session, len(pods))
	share := semaphore.NewWeighted(maxOfTrial)
	for _, s := range old {
		share = s.trial
	}
	for _, p := range pods {
		s := old[p.Name]
		if s == nil || s.pod.UID != p.UID {
			s = &session{pod: p, changed: make(chan struct{}), reporting: semaphore.NewWeighted(1), delivering: semaphore.NewWeighted(1), trial: share}
			setVersion(&s.directive)
		}
		now[p.Name] = s
		c.sessions[p.UID] = s
	}
	for name, s := range old {
		if now[name] != s {
			delete(c.sessions, s.pod.UID)
			close(s.changed)
		}
	}
	c.trials[trial] = now
}

// Forget drops all that is known of a trial.
func (c *Coordinator) Forget(trial types.NamespacedName) {
	c.Register(trial, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.trials, trial)
}

// Direct sets what a pod should do and the files that it should have. A pod that is not registered
// is ignored. The trial controller directs every pod at each look at the trial. Most directives are
// those that the pods have. To compare them costs little, since they share what is large. The
// caller must not change anything that a directive refers to.
func (c *Coordinator) Direct(trial types.NamespacedName, name string, d protocol.Directive, files []protocol.File) {
	last, known, directed := c.directiveOf(trial, name)
	d.Version = last.Version
	if !known || directed && reflect.DeepEqual(last, d) {
		return
	}
	setVersion(&d)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.trials[trial][name]
	if s == nil || s.directed && s.directive.Version == d.Version {
		return
	}
	s.directive, s.files, s.directed = d, files, true
	close(s.changed)
	s.changed = make(chan struct{})
}

// directiveOf returns the directive of a pod, whether there is such a pod, and whether the trial
// controller has directed it.
func (c *Coordinator) directiveOf(trial types.NamespacedName, name string) (d protocol.Directive, known, directed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.trials[trial][name]
	if s == nil {
		return d, false, false
	}
	return s.directive, true, s.directed
}

// Report returns the last report of a pod and when it came, or nil.
func (c *Coordinator) Report(trial types.NamespacedName, name string) (*protocol.Report, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.trials[trial][name]
	if s == nil {
		return nil, time.Time{}
	}
	return s.report, s.reported
}

// reader returns a pod's session, the number of pods of its trial, and the network that the pod is
// to have. Nil: the pod belongs to no trial.
func (c *Coordinator) reader(uid types.UID) (s *session, pods int, network *protocol.Network) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s = c.sessions[uid]; s == nil {
		return nil, 0, nil
	}
	return s, len(c.trials[s.pod.Trial]), s.directive.Network
}

// setVersion names the directive by its content, so that the same directive has the same version in
// every manager.
func setVersion(d *protocol.Directive) {
	d.Version = ""
	sum := sha256.New()
	if err := d.Encode(sum); err != nil {
		panic("a directive cannot be encoded: " + err.Error()) // it consists of plain data
	}
	d.Version = hex.EncodeToString(sum.Sum(nil))[:16]
}

// observe keeps a report. It says whether it is the pod's first one here, and whether a controller
// must look at it.
func (c *Coordinator) observe(uid types.UID, r *protocol.Report) (pod Pod, first, changed, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[uid]
	if s == nil {
		return Pod{}, false, false, false
	}
	if last := s.report; last != nil && last.Incarnation == r.Incarnation && last.Sequence > r.Sequence {
		// The agent hung up on this report to send a newer one, which was faster.
		return s.pod, false, false, true
	}
	first = s.report == nil
	changed = first || !reflect.DeepEqual(significant(s.report), significant(r))
	s.report, s.reported = r, c.Clock.Now()
	return s.pod, first, changed, true
}

// significant is a report without what moves all the time.
func significant(r *protocol.Report) protocol.Report {
	s := *r
	s.Progress, s.ClockOffset, s.ClockError, s.TCPResets, s.DirectiveVersion, s.Sequence = nil, 0, 0, 0, "", 0
	if s.Load != nil {
		s.Load = &protocol.Load{} // a trial that may start waits for the first one
	}
	s.Containers = append([]protocol.ContainerState(nil), r.Containers...)
	for i := range s.Containers {
		s.Containers[i].Tail = ""
	}
	if r.Network != nil {
		n := *r.Network
		n.Links, n.Dropped, n.DroppedWhy, n.LateP99, n.Late = nil, 0, "", 0, 0
		s.Network = &n
	}
	return s
}

// next returns the pod's directive, and a channel that is closed when it changes.
func (c *Coordinator) next(uid types.UID) (now assignment, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[uid]
	if s == nil {
		return assignment{}, false
	}
	return assignment{s.directive, s.files, s.directed, s.changed}, true
}

// assignment is what a pod is to do and to have.
type assignment struct {
	directive protocol.Directive
	files     []protocol.File
	// directed: the trial controller has set the directive. A manager that has just taken over
	// knows the pod a moment before it knows the directive.
	directed bool
	changed  <-chan struct{} // is closed when there is another
}
