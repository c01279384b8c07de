// Package coordinator is the manager's side of package protocol. The agents of all pods dial it,
// report what they see, and receive their directives.
//
// It decides nothing. The trial controller registers a trial's pods, sets their directives and
// reads their reports. The coordinator passes both on, checks which pod is talking, and stores
// agents' deliveries before it acknowledges them. It keeps everything in memory: after a restart of
// the manager the agents report again, and the controller sets the same directives again.
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
	// UID identifies the pod. A later pod of the same name has another one.
	UID types.UID
	// Trial owns the pod.
	Trial types.NamespacedName
	// Name is the pod's name in the trial's layout. For a client it is the host name.
	Name string
	// Part is the pod's part in the trial: v1alpha1.PodTypeReplica, PodTypeClient or
	// PodTypePrepare. Empty: the pod resets a machine.
	Part string
	// Index is the index of a client pod.
	Index int
}

// RejectedError gives the reason why the manager will never store an agent's delivery.
type RejectedError struct{ Reason string }

func (e *RejectedError) Error() string { return "it is rejected: " + e.Reason }

// Store keeps agents' deliveries. Every call returns only once the delivery is safe. A
// *RejectedError is final; after other errors agents send again. A call unpacks the delivery, calls
// read, and only then writes. The function read frees the memory of the unpacking for others.
type Store interface {
	StorePrepared(ctx context.Context, pod Pod, packed []byte, read func()) error
	StoreResults(ctx context.Context, pod Pod, packed []byte, read func()) error
	StoreCollected(ctx context.Context, pod Pod, packed []byte, read func()) error
}

// Identifier finds the pod that a token belongs to.
type Identifier interface {
	// Claimed reads the pod's UID out of a token. It asks no one whether the token is good.
	Claimed(token string) (uid types.UID, ok bool)
	// Known returns the pod of a token that was accepted a moment ago. It asks no one.
	Known(token string) (uid types.UID, ok bool)
	// Identify asks the API server.
	Identify(ctx context.Context, token string) (types.UID, error)
}

// Options of a Coordinator. All are needed.
type Options struct {
	Clock      clock.Clock
	Log        logr.Logger
	Identifier Identifier
	Store      Store
	Archive    Archive
	// Notify is called when a trial's reports change in a way that matters to a controller. It must
	// not block.
	Notify func(trial types.NamespacedName)
	// Instance names this manager's process, whose clock is Clock.
	Instance string
	// Leading reports whether this manager leads. Managers that do not lead answer 503.
	Leading func() bool
}

// Coordinator serves the agents.
type Coordinator struct {
	Options

	refusals refusals
	// receiving bounds the memory of request bodies, and decoding the memory for reading them. Both
	// are in bytes.
	receiving, decoding *semaphore.Weighted

	mu       sync.Mutex
	sessions map[types.UID]*session
	trials   map[types.NamespacedName]map[string]*session
}

// session holds everything known about one pod. The coordinator's mutex guards it.
type session struct {
	pod       Pod
	directive protocol.Directive
	files     []protocol.File
	directed  bool          // the trial controller has set directive and files
	changed   chan struct{} // closed and replaced when directive changes
	report    *protocol.Report
	reported  time.Time
	tickets   int // number of tickets given for files
	// reporting and delivering each admit one request. linksRead holds the last report's links;
	// only the admitted report uses it.
	reporting, delivering *semaphore.Weighted
	linksRead             linksRead
	// trial is the share of receiving that all pods of the trial use together.
	trial *semaphore.Weighted
}

// New returns a coordinator without pods.
func New(o Options) *Coordinator {
	return &Coordinator{
		Options: o, receiving: semaphore.NewWeighted(maxReceived), decoding: semaphore.NewWeighted(maxDecoded),
		sessions: map[types.UID]*session{}, trials: map[types.NamespacedName]map[string]*session{},
	}
}

// Register sets the pods of a trial. Pods that were already registered keep their directives and
// reports. Pods of the trial that are not in the list are forgotten.
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

// Forget drops everything known about a trial.
func (c *Coordinator) Forget(trial types.NamespacedName) {
	c.Register(trial, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.trials, trial)
}

// Direct sets a pod's directive and its files. It ignores a pod that is not registered. The trial
// controller directs every pod each time it looks at the trial, and most directives are unchanged.
// Comparing them costs little, since they share their large parts. The caller must not change
// anything that a directive refers to.
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

// directiveOf returns the directive of a pod. It also reports whether the pod is registered, and
// whether the trial controller has directed it.
func (c *Coordinator) directiveOf(trial types.NamespacedName, name string) (d protocol.Directive, known, directed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.trials[trial][name]
	if s == nil {
		return d, false, false
	}
	return s.directive, true, s.directed
}

// Report returns a pod's last report and when it arrived. Nil: there is none.
func (c *Coordinator) Report(trial types.NamespacedName, name string) (*protocol.Report, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.trials[trial][name]
	if s == nil {
		return nil, time.Time{}
	}
	return s.report, s.reported
}

// reader returns a pod's session, the number of pods of its trial, and the network in the pod's
// directive. Nil session: the pod belongs to no trial.
func (c *Coordinator) reader(uid types.UID) (s *session, pods int, network *protocol.Network) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s = c.sessions[uid]; s == nil {
		return nil, 0, nil
	}
	return s, len(c.trials[s.pod.Trial]), s.directive.Network
}

// setVersion derives the directive's version from its content, so that the same directive has the
// same version in every manager.
func setVersion(d *protocol.Directive) {
	d.Version = ""
	sum := sha256.New()
	if err := d.Encode(sum); err != nil {
		panic("a directive cannot be encoded: " + err.Error()) // a directive consists of plain data
	}
	d.Version = hex.EncodeToString(sum.Sum(nil))[:16]
}

// observe keeps a report. The result first reports whether it is the pod's first one here; changed
// reports whether a controller must look at it.
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

// significant returns a copy of a report without the values that change all the time.
func significant(r *protocol.Report) protocol.Report {
	s := *r
	s.Progress, s.ClockOffset, s.ClockError, s.TCPResets, s.DirectiveVersion, s.Sequence = nil, 0, 0, 0, "", 0
	if s.Load != nil {
		s.Load = &protocol.Load{} // a trial that may start waits for the first load
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

// next returns the pod's directive, and a channel that is closed when the directive changes.
func (c *Coordinator) next(uid types.UID) (now assignment, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[uid]
	if s == nil {
		return assignment{}, false
	}
	return assignment{s.directive, s.files, s.directed, s.changed}, true
}

// assignment holds a pod's directive and its files.
type assignment struct {
	directive protocol.Directive
	files     []protocol.File
	// directed: the trial controller has set the directive. A manager that has just taken over
	// knows the pod a moment before it knows the directive.
	directed bool
	changed  <-chan struct{} // closed when there is another assignment
}
