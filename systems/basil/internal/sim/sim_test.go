package sim

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/wire"
)

var (
	oneSeed = flag.Uint64("seed", 0, "run only this seed; 0: all")
	seeds   = flag.Uint64("seeds", 1200, "number of seeds to run")
)

func TestSeeds(t *testing.T) {
	first, last := uint64(1), *seeds
	if *oneSeed != 0 {
		first, last = *oneSeed, *oneSeed
	}
	total := runSeeds(t, first, last, mutation{})
	if *oneSeed == 0 && last >= 1000 {
		total.insist(t)
	}
}

// TestMisbehavingClients makes most clients misbehave in every first to third transaction. The
// correct clients must commit all their transactions.
func TestMisbehavingClients(t *testing.T) {
	first, last := uint64(1), *seeds/3
	if *oneSeed != 0 {
		first, last = *oneSeed, *oneSeed
	}
	total := runSeeds(t, first, last, mutation{misbehaving: true})
	if *oneSeed != 0 || last < 300 {
		return
	}
	for name, n := range map[string]uint64{
		"stalled early": total.stalledEarly, "stalled late": total.stalledLate,
		"equivocated": 2 * total.equivocated, // votes seldom justify both decisions
		"recoveries":  total.recoveries, "recovered": total.recovered, "fallbacks": total.fallbacks, "DEC-FB": total.decFB,
	} {
		if n < 50 {
			t.Errorf("%s: only %d times in all seeds", name, n)
		}
	}
}

// TestMisbehaviorIsNotHarmless shows that the other clients need recovery for their progress: when
// no request for a stalled transaction arrives, they stop.
func TestMisbehaviorIsNotHarmless(t *testing.T) {
	m := mutation{misbehaving: true, lost: func(m wire.Message) bool { _, is := m.(*wire.Fetch); return is }}
	for seed := uint64(1); seed <= 20; seed++ {
		if err := newScenario(seed, m).execute(); errors.Is(err, errStuck) {
			t.Logf("seed %d: %v", seed, err)
			return
		}
	}
	t.Error("all clients got done in 20 seeds")
}

func runSeeds(t *testing.T, first, last uint64, m mutation) (total coverage) {
	t.Helper()
	start := time.Now()
	for seed := first; seed <= last; seed++ {
		s := newScenario(seed, m)
		if err := s.execute(); err != nil {
			t.Errorf("seed %d: %v\nrun it again: go test ./systems/basil/internal/sim -run %s -seed %d", seed, err, t.Name(), seed)
		}
		total.add(s.coverage)
		if *oneSeed != 0 {
			t.Logf("%+v", s.coverage)
		}
	}
	t.Logf("%d seeds in %v: %+v", last-first+1, time.Since(start).Round(time.Millisecond), total)
	return total
}

func (c *coverage) add(o coverage) {
	c.commits += o.commits
	c.aborts += o.aborts
	c.slow += o.slow
	c.fallbacks += o.fallbacks
	c.recoveries += o.recoveries
	c.recovered += o.recovered
	c.stalledEarly += o.stalledEarly
	c.stalledLate += o.stalledLate
	c.equivocated += o.equivocated
	c.deps += o.deps
	c.decFB += o.decFB
	c.learned += o.learned
	c.settled += o.settled
	c.timeouts += o.timeouts
}

// insist fails when the seeds have hardly taken a path of the protocol.
func (c *coverage) insist(t *testing.T) {
	t.Helper()
	for name, n := range map[string]uint64{
		"commits": c.commits, "aborts": c.aborts, "slow path": c.slow, "fallbacks": c.fallbacks,
		"recoveries": c.recoveries, "dependencies": c.deps, "DEC-FB": c.decFB,
		"decisions learned from others": c.learned, "settled reads": c.settled,
	} {
		if n < 50 {
			t.Errorf("%s: only %d times in all seeds", name, n)
		}
	}
}

func TestSameSeedSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		m := mutation{misbehaving: seed%2 == 0}
		a, b := newScenario(seed, m), newScenario(seed, m)
		if errA, errB := a.execute(), b.execute(); a.trace != b.trace || fmt.Sprint(errA) != fmt.Sprint(errB) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

// TestMutations shows that the checks can fail: they must find each of these broken variants unsafe
// within a number of seeds.
func TestMutations(t *testing.T) {
	mutations := []mutation{
		{name: "commit quorum 2f+1", sizes: func(q *quorum.Sizes) { q.CommitSlow = 2*q.F + 1 }},
		{name: "fast commit with 3f+1", sizes: func(q *quorum.Sizes) { q.CommitFast = 3*q.F + 1 }},
		{name: "abort quorum 1 on the fast path", sizes: func(q *quorum.Sizes) { q.AbortFast = 1 }},
		{name: "log quorum 2f+1", sizes: func(q *quorum.Sizes) { q.Log = 2*q.F + 1 }},
		{name: "one replica vouches for a version", liars: true, sizes: func(q *quorum.Sizes) { q.Vouch = 1 }},
		{name: "reads are not validated", rules: without("reads-current")},
		{name: "writes are not validated", rules: without("writes-unread")},
		{name: "replicas forget their votes when they recover", amnesia: true},
	}
	const limit = 1200 // as many as TestSeeds runs
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			for seed := uint64(1); seed <= limit; seed++ {
				// A mutation must be caught by a violation of safety, not by slowness.
				if err := newScenario(seed, m).execute(); err != nil && !errors.Is(err, errStuck) {
					t.Logf("caught by seed %d: %v", seed, err)
					return
				}
			}
			t.Errorf("not caught in %d seeds", limit)
		})
	}
}
