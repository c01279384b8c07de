package main

import (
	"context"
	"fmt"
	"time"
)

// part is what a group runs in one place, job after job. Its events are kept until they are told to the tally, in the group's turn: a part that runs beside another group
// is begun long before that.
//
//	turn of        infra                integration            netem                        e2e
//	runs           infra                integration                                         e2e
//	and beside it  netem, in the        netem, here: told in ->  first this part, then that
//	               virtual machine: told in ------------------>  of the virtual machine
//
// What fails in a part is run again in the group's turn, alone.
type part struct {
	what    []string // is skipped if there is no time to begin
	beside  string   // the group with which it was begun; none if that is its own
	said    *queue
	stopped chan struct{} // closed when it has come to an end

	took time.Duration // these are set by then
	err  error
}

// begin begins a part of a group, after another one has ended if there is one. The jobs are asked for when they begin.
func (s *session) begin(ctx context.Context, g group, after *part, p part, jobs func() []job) *part {
	p.said, p.stopped = newQueue(), make(chan struct{})
	go func() {
		defer close(p.stopped)
		defer p.said.close()
		if after != nil {
			<-after.stopped
		}
		if p.err = s.bound.late(); p.err != nil {
			return
		}
		began := time.Now()
		ctx, cancel := s.bound.context(ctx, 2*g.timeout)
		defer cancel()
		for _, j := range jobs() {
			if e := s.run(ctx, j, p.said.say); e.status == noVM || ctx.Err() != nil {
				break
			}
		}
		p.took, p.err = time.Since(began), context.Cause(ctx)
	}()
	s.parts = append(s.parts, &p)
	return &p
}

// tell tells the tally of a part, as it goes on if it has not ended.
func (p *part) tell(t *tally) error {
	for before := t.told; ; {
		i, ok := p.said.next()
		switch e := i.end; {
		case !ok:
			return t.late(p.what, p.err)
		case e == nil:
			t.take(i)
		case e.status == noVM:
			t.skip(p.what[0], e.last)
		case e.err != nil && t.told == before:
			t.fail(e.name, e.err.Error()+"\n")
		default:
			before = t.told
		}
	}
}

// besides begins the parts of groups whose turn is yet to come that run beside this one, which has been prepared. What they need is prepared first: scripts that install
// packages would be in each other's way, and in that of tests which do.
func (s *session) besides(ctx context.Context, name string) {
	for _, g := range s.groups[s.turn+1:] {
		if s.bound.late() != nil || ctx.Err() != nil || len(s.byGroup[g.name]) == 0 {
			continue
		}
		if g.vmBeside == name && s.there[g.name] == nil && s.canRunBeside(ctx, g.inVM(), name, g.vmPrepare) {
			s.there[g.name] = s.beginThere(ctx, g, name)
		}
		if g.beside == name && s.here[g.name] == nil && s.canRunBeside(ctx, g.name, name, g.prepare) {
			s.here[g.name] = s.beginHere(ctx, g, s.env[g.name], name)
		}
	}
}

// canRunBeside prepares a part and says what it runs beside. If it cannot be prepared, it has another attempt in its turn, and what is wrong is told then.
func (s *session) canRunBeside(ctx context.Context, what, name string, prepare func(context.Context) ([]string, error)) bool {
	if prepare != nil {
		ctx, cancel := s.bound.before(ctx)
		defer cancel()
		env, err := prepare(ctx)
		if err != nil {
			fmt.Fprintf(s.t.complaints, "%s does not run beside %s: %v\n", what, name, err)
			return false
		}
		s.env[what] = env
	}
	fmt.Fprintf(s.t.w, "== %s runs beside %s, and is shown in its turn\n", what, name)
	return true
}
