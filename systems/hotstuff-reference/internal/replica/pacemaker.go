package replica

import (
	"slices"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// pacemaker is a replica's knowledge of views. The paper leaves much of it open (Sections 4.4 and
// 6). Here replicas come into one view in this way:
//
//   - A replica enters view v+1 when it has voted in view v (chained) or decided in view v (basic).
//     It also does so when a certificate shows that a quorum was in view v.
//   - A replica whose timer ends leaves its view. It wishes for the first view of the next leader,
//     and acts in none before that. It says so to all (NewView), and repeats it until it is there.
//   - If f+1 replicas wish for a view, another one wishes for it too, since one of them is correct.
//   - If n-f replicas wish for a view, they enter it.
//
// A correct replica leaves a view only if it has entered it. So wishes of correct replicas are at
// most one leader's tenure above the wishes of f+1 correct replicas, and lost messages do not let
// replicas drift apart. A failed view costs n*n messages. A successful view has a linear number, as
// in the paper.
type pacemaker struct {
	view message.View // curView
	wish message.View // the replica acts in no lower view; it has left its view if wish > view
	// failures counts views that were left since the last commit. They lengthen the timer.
	failures int
	timing   bool                // the timer runs
	newTimer bool                // it must be set anew
	newViews []*message.NewView  // the latest of each replica
	early    []*message.Proposal // of each leader, the latest proposal that came too early to vote for it
}

// leader of a view. Each leads for Tenure views.
func (r *Replica) leader(v message.View) int {
	return int(uint64(v) / uint64(r.cfg.Tenure) % uint64(r.cfg.N))
}

// nextTenure is the first view above v that another replica leads.
func (r *Replica) nextTenure(v message.View) message.View {
	t := message.View(r.cfg.Tenure)
	return (v/t + 1) * t
}

// enter a view, unless the replica is in it already or has wished for a later one.
func (r *Replica) enter(v message.View) {
	if v <= r.view || v < r.wish {
		return
	}
	r.view, r.wish = v, v
	r.newTimer = true
	r.retry()
}

// retry considers the proposal of the view again that came too early.
func (r *Replica) retry() {
	l := r.leader(r.view)
	p := r.early[l]
	if p != nil && p.Block.View <= r.view {
		r.early[l] = nil
		if p.Block.View == r.view {
			r.consider(l, p)
		}
	}
}

// Timeout is called when the time of SetTimer is over.
func (r *Replica) Timeout() {
	if r.broken != nil {
		return
	}
	r.timing = false
	if r.Waiting() == 0 && len(r.missed) == 0 && r.wish == r.view {
		return
	}
	if r.wish == r.view {
		r.leave(r.nextTenure(r.view))
	}
	r.sayView()
	r.forward()
	r.askAround()
	r.settle()
}

// leave the view for a later one: the interrupt of Algorithm 2, line 34, and Algorithm 3, line 26.
func (r *Replica) leave(wish message.View) {
	r.wish = wish
	r.failures++
	r.Counters.ViewsLeft++
	r.newTimer = true
}

// sayView sends all replicas the view that this one wishes for. In the paper it sends it only to
// the leader (Algorithm 2, line 35; Algorithm 3, line 27).
func (r *Replica) sayView() {
	m := r.newView()
	m.Ask = true
	r.broadcast(m)
}

func (r *Replica) newView() *message.NewView {
	return &message.NewView{View: r.wish, HighQC: r.highQC, CommitQC: r.commitQC}
}

// forwarded is how many commands a replica passes on when its timer ends.
const forwarded = 100

// forward makes all replicas wait for the same commands as this one: a client may not have reached
// them, and a replica without waiting commands does not leave its view.
func (r *Replica) forward() {
	oldest := r.commands.batch(forwarded, r.cfg.Limits.BlockBytes, nil)
	if len(oldest) == 0 {
		return
	}
	r.toOthers(&message.Forward{Commands: oldest})
}

func (r *Replica) onNewView(from int, m *message.NewView) {
	if m.CommitQC != nil {
		r.decide(from, m.CommitQC)
	}
	if !r.learn(from, m.HighQC) {
		return
	}
	if old := r.newViews[from]; old == nil || old.View < m.View {
		r.newViews[from] = m
	}
	if w := r.wished(r.cfg.F + 1); w > r.wish {
		r.leave(w)
		r.sayView()
	}
	r.enter(r.wished(r.cfg.Quorum))
	if m.Ask && from != r.cfg.ID {
		r.send(from, r.newView())
	}
}

// wished is the highest view that at least this many replicas wish for or have passed.
func (r *Replica) wished(by int) message.View {
	views := make([]message.View, 0, r.cfg.N)
	for _, m := range r.newViews {
		if m != nil {
			views = append(views, m.View)
		}
	}
	if len(views) < by {
		return 0
	}
	slices.Sort(views)
	return views[len(views)-by]
}
