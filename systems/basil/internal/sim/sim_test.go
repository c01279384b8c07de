package sim

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"assay.dev/assay/systems/basil/internal/quorum"
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
	var total coverage
	start := time.Now()
	for seed := first; seed <= last; seed++ {
		s := newScenario(seed, mutation{})
		if err := s.execute(); err != nil {
			t.Errorf("seed %d: %v\nrun it again: go test ./systems/basil/internal/sim -run TestSeeds -seed %d", seed, err, seed)
		}
		total.add(s.coverage)
		if *oneSeed != 0 {
			t.Logf("%+v", s.coverage)
		}
	}
	t.Logf("%d seeds in %v: %+v", last-first+1, time.Since(start).Round(time.Millisecond), total)
	if *oneSeed == 0 && last >= 1000 {
		total.insist(t)
	}
}

func (c *coverage) add(o coverage) {
	c.commits += o.commits
	c.aborts += o.aborts
	c.slow += o.slow
	c.fallbacks += o.fallbacks
	c.recoveries += o.recoveries
	c.deps += o.deps
	c.decFB += o.decFB
	c.learned += o.learned
	c.settled += o.settled
	c.timeouts += o.timeouts
}

// insist fails when a path of the protocol was hardly taken by any seed.
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
		a, b := newScenario(seed, mutation{}), newScenario(seed, mutation{})
		if errA, errB := a.execute(), b.execute(); a.trace != b.trace || fmt.Sprint(errA) != fmt.Sprint(errB) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

// TestMutations shows that the checks can fail: each of these broken variants
// must be caught, as unsafe, within a number of seeds.
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
				// A mutation has to be caught for what it breaks, not for being slow.
				if err := newScenario(seed, m).execute(); err != nil && !errors.Is(err, errStuck) {
					t.Logf("caught by seed %d: %v", seed, err)
					return
				}
			}
			t.Errorf("not caught in %d seeds", limit)
		})
	}
}
