package probe

import (
	"context"
	"net/netip"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
)

// ProveOptions of Prove and Baseline.
type ProveOptions struct {
	// Options of the first round. Its Probes double from round to round. Its Spacing shrinks with
	// the number of pairs, but not below 20ms. Its Deadline is a margin on top of the longest
	// requested round trip; 0: 500ms.
	Options
	// Rounds at most; 0: 3. From the second one on, Prove probes only pairs that are still wrong.
	Rounds int
	// Tolerance; all zero: DefaultTolerance.
	Tolerance Tolerance
}

func (o ProveOptions) orDefault(pairs int) ProveOptions {
	if o.Rounds == 0 {
		o.Rounds = 3
	}
	if o.Deadline == 0 {
		o.Deadline = 500 * time.Millisecond
	}
	if o.Tolerance == (Tolerance{}) {
		o.Tolerance = DefaultTolerance
	}
	o.Options = o.Options.orDefault(pairs)
	return o
}

// Proof is the result of a pod's measurements before a trial.
type Proof struct {
	// Measurements of the last round that each pair took part in, in the order of the pairs.
	Measurements []Measurement `json:"measurements"`
	// Wrong pairs after the last round. Without any, the network is as requested.
	Wrong []Wrong `json:"wrong,omitempty"`
	// Probed pairs in each round; its length is the number of rounds.
	Probed []int `json:"probed"`
	// Undirected says, for each pair, that its directions have different requested delays, and that
	// the clocks of the two pods could not tell them apart. The measurement would not show it if
	// they were swapped.
	Undirected []bool        `json:"undirected,omitempty"`
	Took       time.Duration `json:"took"`
}

// Prove measures the pairs of one pod and judges them. It measures wrong pairs again, with more
// probes: on a busy machine the least of seven may still be noise. A round replaces the results of
// the one before. So a network that became right in the meantime counts as right.
func Prove(ctx context.Context, config Config, pairs []Pair, baseline []Measurement, options ProveOptions) (Proof, error) {
	options = options.orDefault(len(pairs))
	judge := func(pairs []Pair, measured []Measurement) []Wrong {
		return Judge(pairs, baseline, measured, options.Tolerance)
	}
	proof, err := inRounds(ctx, config, pairs, options, judge)
	proof.Undirected = undirected(pairs, proof.Measurements, options.Tolerance)
	return proof, err
}

// undirected says which pairs' directions could be swapped without a visible difference. The
// measurements are in the order of the pairs.
func undirected(pairs []Pair, measurements []Measurement, tolerance Tolerance) []bool {
	unseen := make([]bool, len(pairs))
	for i, pair := range pairs {
		m, difference := measurements[i], (pair.Out.Delay - pair.In.Delay).Abs()
		unseen[i] = difference > 0 && !pair.Cut() && (!m.OneWay || difference <= m.Error+tolerance.Late)
	}
	return unseen
}

// Baseline measures the times of the undelayed paths. No pod may shape its links before all pods
// have done so. Wrong lists the peers without an answer, and the peers with a path that takes
// longer than the tolerance. Only the names and peers of pairs are used.
func Baseline(ctx context.Context, config Config, pairs []Pair, options ProveOptions) (Proof, error) {
	options = options.orDefault(len(pairs))
	undelayed := make([]Pair, len(pairs))
	for i, pair := range pairs {
		undelayed[i] = Pair{From: pair.From, To: pair.To, Peer: pair.Peer}
	}
	judge := func(pairs []Pair, measured []Measurement) []Wrong {
		return Judge(pairs, measured, measured, options.Tolerance)
	}
	return inRounds(ctx, config, undelayed, options, judge)
}

func inRounds(
	ctx context.Context, config Config, pairs []Pair, options ProveOptions, judge func([]Pair, []Measurement) []Wrong,
) (Proof, error) {
	began := launcher.Monotonic()
	proof := Proof{Measurements: make([]Measurement, len(pairs))}
	position := make(map[netip.Addr]int, len(pairs))
	for i, pair := range pairs {
		position[pair.Peer] = i
		proof.Measurements[i].Peer = pair.Peer
	}
	left, margin, spacing := pairs, options.Deadline, options.Spacing
	for round := range options.Rounds {
		options.Deadline = longest(left) + margin
		measured, err := Measure(ctx, config, peersOf(left), options.Options)
		for _, m := range measured {
			proof.Measurements[position[m.Peer]] = m
		}
		proof.Probed = append(proof.Probed, len(left))
		proof.Wrong = judge(left, measured)
		proof.Took = time.Duration(launcher.Monotonic() - began)
		if err != nil || len(proof.Wrong) == 0 || round == options.Rounds-1 {
			return proof, err
		}
		options.Probes *= 2
		left = only(pairs, proof.Wrong)
		options.Spacing = max(min(spacing, quick), spacing*time.Duration(len(left))/time.Duration(len(pairs)))
	}
	return proof, nil
}

// longest requested round trip.
func longest(pairs []Pair) time.Duration {
	var most time.Duration
	for _, pair := range pairs {
		most = max(most, pair.Out.Delay+pair.Out.Jitter+pair.In.Delay+pair.In.Jitter)
	}
	return most
}

func peersOf(pairs []Pair) []netip.Addr {
	peers := make([]netip.Addr, len(pairs))
	for i, pair := range pairs {
		peers[i] = pair.Peer
	}
	return peers
}

// only returns the pairs that are wrong.
func only(pairs []Pair, wrong []Wrong) []Pair {
	named := make(map[netip.Addr]bool, len(wrong))
	for _, w := range wrong {
		named[w.Peer] = true
	}
	var left []Pair
	for _, pair := range pairs {
		if named[pair.Peer] {
			left = append(left, pair)
		}
	}
	return left
}
