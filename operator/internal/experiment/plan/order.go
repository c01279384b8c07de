package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Slot is one repetition of one point. It needs a valid trial.
type Slot struct {
	Point      int32
	Repetition int32
}

// Rounds lists the slots that every point gets, round by round, in the order of their first
// attempts. With repetitions.until, further rounds may follow for the points that need them.
func Rounds(p *Plan, seed int64) [][]Slot {
	each := make([]int32, len(p.Points))
	for i := range each {
		each[i] = p.leastRepetitions() + p.Spec.AdditionalRepetitions
	}
	return rounds(p, seed, each)
}

// rounds lists the slots if point i gets each[i] repetitions. It draws the order of a round for all
// points, and then removes the points that need no trial in the round. So removed points do not
// change the order of the others.
func rounds(p *Plan, seed int64, each []int32) [][]Slot {
	points := int32(len(p.Points))
	var rounds [][]Slot
	if p.Spec.Order == v1alpha1.OrderSequential {
		for point := range points {
			round := make([]Slot, each[point])
			for r := range round {
				round[r] = Slot{Point: point, Repetition: int32(r)}
			}
			rounds = append(rounds, round)
		}
		return rounds
	}
	for r := range slices.Max(each) {
		var round []Slot
		for _, point := range permutation(points, derive("order", seed, int64(r))) {
			if each[point] > r {
				round = append(round, Slot{Point: point, Repetition: r})
			}
		}
		rounds = append(rounds, round)
	}
	return rounds
}

// TrialSeed is the seed of one attempt. It has 53 bits, so that JSON readers that keep numbers as
// doubles keep it. It is never 0.
//
//	first 8 bytes, big-endian, of SHA-256("trial\n<seed>\n<point>\n<repetition>\n<attempt>\n"), less its top 11 bits, or 1 for 0
func TrialSeed(seed int64, point, repetition, attempt int32) int64 {
	return max(1, int64(derive("trial", seed, int64(point), int64(repetition), int64(attempt))>>11))
}

// derive hashes a purpose and numbers to 64 bits.
func derive(purpose string, numbers ...int64) uint64 {
	text := purpose + "\n"
	for _, n := range numbers {
		text += fmt.Sprintf("%d\n", n)
	}
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:8])
}

// permutation shuffles 0..n-1 by Fisher-Yates. The numbers come from splitmix64 (Steele, Lea,
// Flood, OOPSLA 2014). They do not come from math/rand, whose sequence a later version of Go might
// change. A seed must always give the same order.
func permutation(n int32, state uint64) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	for i := uint64(len(order)); i > 1; i-- {
		var j uint64
		j, state = below(i, state)
		order[i-1], order[j] = order[j], order[i-1]
	}
	return order
}

// below draws a number less than n, each equally likely. It rejects numbers of the incomplete last
// multiple of n, and draws again.
func below(n, state uint64) (drawn, next uint64) {
	limit := -n % n // 2^64 mod n
	for {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb
		z ^= z >> 31
		if z >= limit {
			return z % n, state
		}
	}
}
