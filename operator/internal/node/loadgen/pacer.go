package loadgen

import (
	"math/rand/v2"
	"time"
)

// pacer gives the instants of the requests of an open loop, after the start of the load. Each call
// returns the next instant. Instants never decrease. It is pure: it reads no clock, and the same
// seed gives the same instants.
type pacer interface{ next() time.Duration }

// constantPacer sends request n at (n + phase) / rate.
type constantPacer struct {
	rate  float64
	phase float64
	n     int64
}

// next computes each instant from n, so that rounding errors do not add up.
func (p *constantPacer) next() time.Duration {
	at := (float64(p.n) + p.phase) / p.rate * float64(time.Second)
	p.n++
	return time.Duration(at)
}

// poissonPacer sends requests at the arrivals of a Poisson process: gaps are exponentially
// distributed with mean 1 / rate. The sum of the processes of several generators is again a Poisson
// process, with the sum of their rates.
type poissonPacer struct {
	rate float64
	rng  *rand.Rand
	at   float64 // seconds
}

func (p *poissonPacer) next() time.Duration {
	p.at += p.rng.ExpFloat64() / p.rate
	return time.Duration(p.at * float64(time.Second))
}

// share passes on the arrivals for some of a generator's clients. Two shares of equal pacers split
// the clients: one takes the arrivals that the other leaves. Together they have exactly the
// arrivals of one pacer for all clients.
type share struct {
	of pacer
	// falls reports, for each arrival in turn, whether it is for these clients.
	falls func() bool
}

func (s *share) next() time.Duration {
	for {
		if at := s.of.next(); s.falls() {
			return at
		}
	}
}

// evenly decides, for each arrival in turn, whether it is for part of whole clients. Among whole
// arrivals in a row there are part such ones.
func evenly(part, whole int64) func() bool {
	k := int64(0)
	return func() bool {
		before := k * part / whole
		k++
		return k*part/whole > before
	}
}

// atRandom decides at random, for each arrival alone. The taken and the remaining arrivals of a
// Poisson process are then two independent Poisson processes.
func atRandom(part, whole int64, rng *rand.Rand) func() bool {
	return func() bool { return rng.Int64N(whole) < part }
}

// Streams of random numbers from one seed.
const (
	arrivalStream = 1 << 32 // plus the generator's index
	shareStream   = 2 << 32 // plus the generator's index
	backoffStream = 0       // plus the client's global index, which is below 1 << 31
)

// newPacer returns the pacer of the clients that misbehave, or of the others. At least one client
// is of the kind. trace has the arrivals of the configuration's trace for this generator.
func newPacer(c Config, trace []time.Duration, warmUp time.Duration, misbehaving bool) pacer {
	constant := c.Arrivals != ArrivalsPoisson
	all := c.plainPacer()
	if c.Trace != nil {
		all = &tracePacer{arrivals: trace, warmUp: warmUp}
	} else if len(c.Phases) > 0 {
		all = &shapedPacer{of: all, shape: newShape(c.Phases, warmUp)}
	}
	if c.Misbehaving == nil {
		return all
	}
	part, whole := int64(len(c.Misbehaving.Clients)), int64(c.Clients)
	theirs := evenly(part, whole)
	if !constant {
		theirs = atRandom(part, whole, rand.New(rand.NewPCG(uint64(c.Seed), shareStream+uint64(c.Index))))
	}
	return &share{of: all, falls: func() bool { return theirs() == misbehaving }}
}

// plainPacer is the pacer of a load that does not change.
func (c Config) plainPacer() pacer {
	rate := c.Rate / float64(c.perArrival())
	if c.Arrivals == ArrivalsConstant {
		return &constantPacer{rate: rate, phase: c.Phase}
	}
	return &poissonPacer{rate: rate, rng: rand.New(rand.NewPCG(uint64(c.Seed), arrivalStream+uint64(c.Index)))}
}
