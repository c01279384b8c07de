package sim

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
	"assay.dev/assay/systems/hotstuff-reference/internal/replica"
)

var (
	oneSeed = flag.Uint64("seed", 0, "run only this seed; 0: all")
	seeds   = flag.Uint64("seeds", 600, "number of seeds to run")
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
			t.Errorf("seed %d: %v\nrun it again: go test ./internal/sim -run %s -seed %d", seed, err, t.Name(), seed)
		}
		total.add(s.coverage)
	}
	t.Logf("%d histories in %v: %+v", last-first+1, time.Since(start).Round(time.Millisecond), total)
	if *oneSeed == 0 && last >= 500 {
		total.insist(t)
	}
}

func (c *coverage) add(o coverage) {
	c.blocks += o.blocks
	c.empty += o.empty
	c.repeated += o.repeated
	c.viewsLeft += o.viewsLeft
	c.fetched += o.fetched
	c.wrongShares += o.wrongShares
	c.equivocations += o.equivocations
	c.doubleVotes += o.doubleVotes
	c.oldQCs += o.oldQCs
	c.otherQCs += o.otherQCs
	c.outages += o.outages
	c.partitions += o.partitions
	c.liars += o.liars
}

// insist fails when hardly any history took a path of the protocol.
func (c *coverage) insist(t *testing.T) {
	t.Helper()
	for name, n := range map[string]uint64{
		"blocks": c.blocks, "empty blocks": c.empty, "repeated commands": c.repeated, "views left": c.viewsLeft,
		"blocks fetched": c.fetched, "wrong shares": c.wrongShares, "equivocations": c.equivocations,
		"double votes": c.doubleVotes, "old certificates": c.oldQCs, "certificates of other blocks": c.otherQCs, "outages": c.outages,
		"partitions": c.partitions, "liars": c.liars,
	} {
		if n < 50 {
			t.Errorf("%s: only %d times in all histories", name, n)
		}
	}
}

func TestSameSeedSameHistory(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		a, b := newScenario(seed, mutation{}), newScenario(seed, mutation{})
		if errA, errB := a.execute(), b.execute(); a.trace != b.trace || fmt.Sprint(errA) != fmt.Sprint(errB) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

// TestMutations shows that the checks of safety can fail: they must find each of these broken
// protocols within a number of histories.
func TestMutations(t *testing.T) {
	always := []replica.Rule{{Name: "always", Holds: func(replica.Locked, *message.Block) bool { return true }}}
	for _, p := range []replica.Protocol{replica.Chained, replica.Basic} {
		for name, m := range map[string]mutation{
			"a quorum of f+1":     {liars: true, config: func(c *replica.Config) { c.Quorum = c.F + 1 }},
			"a quorum of 2f":      {liars: true, config: func(c *replica.Config) { c.Quorum = 2 * c.F }},
			"every block is safe": {liars: true, config: func(c *replica.Config) { c.Rules = always }},
			"replicas forget":     {liars: true, amnesia: true},
		} {
			t.Run(fmt.Sprintf("%s/%v", name, p), func(t *testing.T) { mustCatch(t, m, p) })
		}
	}
}

func mustCatch(t *testing.T, m mutation, p replica.Protocol) {
	t.Helper()
	const limit = 4000
	m.patience = 3 * time.Second
	broken := m.config
	m.config = func(c *replica.Config) {
		c.Protocol = p
		if p == replica.Chained {
			c.Tenure = max(c.Tenure, 4)
		}
		if broken != nil {
			broken(c)
		}
	}
	for seed := uint64(1); seed <= limit; seed++ {
		// A mutation must be caught by a violation of safety, not by slowness.
		if err := newScenario(seed, m).execute(); err != nil && !errors.Is(err, errStuck) {
			t.Logf("caught by seed %d: %v", seed, err)
			return
		}
	}
	t.Errorf("not caught in %d histories", limit)
}

// TestRoundRobinNeedsFourLeaders shows the statement of Config.Tenure: with four replicas that lead
// for one view each, one of them silent, chained HotStuff commits nothing, and basic HotStuff
// commits. It also checks that the simulation notices a lack of progress.
func TestRoundRobinNeedsFourLeaders(t *testing.T) {
	histories := 0
	for seed := uint64(1); seed <= 200; seed++ {
		for _, p := range []replica.Protocol{replica.Chained, replica.Basic} {
			s := newScenario(seed, mutation{config: func(c *replica.Config) { c.Protocol, c.Tenure = p, 1 }})
			if s.cfg.N != 4 || s.replicas[0].fate != silent {
				break
			}
			histories++
			err := s.execute()
			if stuck := errors.Is(err, errStuck); stuck != (p == replica.Chained) {
				t.Fatalf("seed %d, protocol %v: %v", seed, p, err)
			}
		}
	}
	if histories < 10 {
		t.Errorf("only %d histories", histories)
	}
}
