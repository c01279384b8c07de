package replica

import (
	"fmt"
	"time"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// Replica of a group. Only one goroutine at a time calls its methods.
type Replica struct {
	cfg Config
	env Env

	Counters Counters

	tree     *tree
	commands *commands
	verified verified

	// Variables of the algorithms. highQC is prepareQC of the basic protocol and genericQC of the
	// chained one: of all certificates that this replica has seen, the one of the highest view.
	highQC, lockedQC *message.QC
	commitQC         *message.QC // basic; the latest, or nil
	votedView        message.View
	votedPhase       message.Phase

	pacemaker
	collected
	missed []*message.QC // of certified blocks that are not in the tree
	asking int           // the replica that was asked last, or -1
	around int           // the one that was asked last when the timer ended

	broken error
	local  []message.Message // to itself
}

// New starts a replica: it is in view 1.
func New(cfg Config, env Env) (*Replica, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg.Limits = cfg.Limits.withDefaults()
	return &Replica{
		cfg: cfg, env: env,
		tree:     newTree(cfg.Limits.LogBlocks, cfg.Limits.LogBytes),
		commands: newCommands(cfg.Limits),
		highQC:   message.GenesisQC, lockedQC: message.GenesisQC,
		pacemaker: pacemaker{view: 1, wish: 1, newViews: make([]*message.NewView, cfg.N), early: make([]*message.Proposal, cfg.N)},
		asking:    -1,
		collected: collected{votes: map[message.Phase][]*message.Vote{}},
	}, nil
}

// View that the replica is in.
func (r *Replica) View() message.View { return r.view }

// Waiting is how many unexecuted commands the replica knows.
func (r *Replica) Waiting() int { return len(r.commands.waiting) }

// Broken reports that agreement is broken: more than f replicas are faulty. The replica has
// stopped.
func (r *Replica) Broken() error { return r.broken }

// Submit passes a client's command to the replica. executed reports that it has been executed
// already. taken is false if there is no room for it.
func (r *Replica) Submit(c message.Command) (executed, taken bool) {
	if r.broken != nil {
		return false, false
	}
	if r.commands.executed(c.CommandID) {
		return true, true
	}
	taken = r.submit(c)
	r.settle()
	return false, taken
}

func (r *Replica) submit(c message.Command) bool {
	taken := c.Size() <= r.cfg.Limits.BlockBytes && r.commands.submit(c)
	if !taken {
		r.Counters.Refused++
	}
	return taken
}

// Handle handles a message from another replica.
func (r *Replica) Handle(from int, m message.Message) {
	if r.broken != nil || from < 0 || from >= r.cfg.N || from == r.cfg.ID {
		return
	}
	r.dispatch(from, m)
	r.settle()
}

func (r *Replica) dispatch(from int, m message.Message) {
	switch m := m.(type) {
	case *message.Proposal:
		r.onProposal(from, m)
	case *message.Vote:
		r.onVote(from, m)
	case *message.Announce:
		r.onAnnounce(from, m.QC)
	case *message.NewView:
		r.onNewView(from, m)
	case *message.Fetch:
		r.onFetch(from, m)
	case *message.Blocks:
		r.onBlocks(from, m)
	case *message.Forward:
		for _, c := range m.Commands {
			r.submit(c)
		}
	}
}

// settle handles the replica's messages to itself, proposes blocks and informs others, until there
// is nothing left to do.
func (r *Replica) settle() {
	for r.broken == nil {
		if len(r.local) > 0 {
			m := r.local[0]
			r.local = r.local[1:]
			r.dispatch(r.cfg.ID, m)
		} else if !r.propose() && !r.tell() {
			break
		}
	}
	r.keepTime()
}

func (r *Replica) send(to int, m message.Message) {
	if to == r.cfg.ID {
		r.local = append(r.local, m)
	} else {
		r.env.Send(to, m)
	}
}

func (r *Replica) broadcast(m message.Message) {
	for i := range r.cfg.N {
		r.send(i, m)
	}
}

func (r *Replica) toOthers(m message.Message) {
	for i := range r.cfg.N {
		if i != r.cfg.ID {
			r.env.Send(i, m)
		}
	}
}

// learn handles a certificate of the phase that justifies proposals. It reports whether the
// certificate is valid.
func (r *Replica) learn(from int, qc *message.QC) bool {
	if !r.valid(qc, r.justifies()) {
		return false
	}
	if qc.View > r.highQC.View {
		r.highQC = qc
	}
	r.need(from, qc)
	if r.cfg.Protocol == Chained {
		r.update(qc)
		r.enter(qc.View + 1)
	} else {
		r.enter(qc.View)
	}
	return true
}

// connected makes the replica act on a block that has come into the tree.
func (r *Replica) connected(b *message.Block) {
	if r.cfg.Protocol == Chained {
		r.update(b.Justify)
		if r.highQC.Block == b.Digest() {
			r.update(r.highQC)
		}
	} else if r.commitQC != nil && r.commitQC.Block == b.Digest() {
		r.commit(b)
	}
}

// commit executes the commands of a block and of its ancestors that are not executed yet.
func (r *Replica) commit(b *message.Block) {
	if r.broken != nil || b.View <= r.tree.committed.View {
		return
	}
	path, ok := r.tree.commit(b)
	if !ok {
		r.broken = fmt.Errorf("the block %v of view %d is committed and does not descend from the last committed block %v of view %d",
			b.Digest(), b.View, r.tree.committed.Digest(), r.tree.committed.View)
		r.env.SetTimer(0)
		return
	}
	r.failures = 0
	for _, p := range path {
		var executed []message.Command
		for _, c := range p.Commands {
			if r.commands.execute(c.CommandID) {
				executed = append(executed, c)
			}
		}
		r.Counters.Blocks++
		if len(p.Commands) == 0 {
			r.Counters.EmptyBlocks++
		}
		r.Counters.Commands += uint64(len(executed))
		r.Counters.Repeated += uint64(len(p.Commands) - len(executed))
		r.env.Commit(p, executed)
	}
	r.forgetMissed()
}

// keepTime sets the timer while the replica waits, and stops it otherwise: a group without commands
// is silent.
func (r *Replica) keepTime() {
	waits := r.broken == nil && (r.Waiting() > 0 || len(r.missed) > 0 || r.wish > r.view)
	switch {
	case waits && (!r.timing || r.newTimer):
		r.env.SetTimer(r.patience())
	case !waits && r.timing:
		r.env.SetTimer(0)
	}
	r.timing, r.newTimer = waits, false
}

// patience is how long the timer runs.
func (r *Replica) patience() time.Duration {
	d := r.cfg.Timeout
	if r.wish > r.view {
		return d // the replica repeats its messages
	}
	for range r.failures {
		if d >= r.cfg.MaxTimeout/2 {
			return r.cfg.MaxTimeout
		}
		d *= 2
	}
	return d
}
