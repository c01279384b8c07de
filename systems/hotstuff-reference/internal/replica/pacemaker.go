package replica

import (
	"slices"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// pacemaker is what a replica knows of views. The paper leaves much of it open (Sections 4.4 and
// 6); this is how replicas come to be in one view here:
//
//   - A replica enters view v+1 when it has voted in view v (chained), when it has decided in view
//     v (basic), and when it sees a certificate which shows that a quorum has been there.
//   - A replica whose timer ends leaves its view: it wishes for the first view of the next leader,
//     acts in none before that, says so to all (NewView), and says it again until it is there.
//   - f+1 replicas that wish for a view have another one wish for it, since one of them is correct.
//   - n-f of them enter it.
//
// A correct replica leaves a view only if it has entered it. So wishes of correct replicas are at
// most one leader's tenure above what f+1 correct replicas wish, and lost messages do not let
// replicas drift apart. That costs n*n messages for a view that fails; one that does not has a
// linear number, as in the paper.
type pacemaker struct {
	view message.View // curView
	wish message.View // the replica acts in no view below; it has left its view if wish > view
	// failures are views that were left since the last commit. They lengthen the timer.
	failures int
	timing   bool                // the timer runs
	newTimer bool                // it is to be set anew
	newViews []*message.NewView  // the latest of each replica
	early    []*message.Proposal // of each leader, the latest that cannot be voted for yet
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

// enter a view, unless the replica is there already or has wished for a later one.
func (r *Replica) enter(v message.View) {
	if v <= r.view || v < r.wish {
		return
	}
	r.view, r.wish = v, v
	r.newTimer = true
	r.retry()
}

// retry looks at the proposal of the view that has come too early.
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

// Timeout says that the time is over for which the replica has set its timer.
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

// sayView tells all replicas which view this one wishes for. In the paper it tells the leader alone
// (Algorithm 2, line 35; Algorithm 3, line 27).
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

// forward has all replicas wait for what this one waits for: a client may not have reached them,
// and a replica that waits for nothing does not leave its view.
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

// wished is the highest view that so many replicas wish for or are beyond.
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
