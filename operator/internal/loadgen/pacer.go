package loadgen

import (
	"math/rand/v2"
	"time"
)

// pacer says when the requests of an open loop are to be sent: each call returns the instant of the next one, after the start of the
// load. Instants never decrease. It is pure: no clock, and the same seed gives the same instants.
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

// poissonPacer sends requests at the arrivals of a Poisson process: gaps are exponentially distributed with mean 1 / rate. The sum
// of the processes of several generators is again one, with the sum of their rates.
type poissonPacer struct {
	rate float64
	rng  *rand.Rand
	at   float64 // seconds
}

func (p *poissonPacer) next() time.Duration {
	p.at += p.rng.ExpFloat64() / p.rate
	return time.Duration(p.at * float64(time.Second))
}

// Streams of random numbers from one seed.
const (
	arrivalStream = 1 << 32 // plus the generator's index
	backoffStream = 0       // plus the client's global index, which is below 1 << 31
)

func newPacer(c Config) pacer {
	if c.Arrivals == ArrivalsConstant {
		return &constantPacer{rate: c.Rate, phase: c.Phase}
	}
	return &poissonPacer{rate: c.Rate, rng: rand.New(rand.NewPCG(uint64(c.Seed), arrivalStream+uint64(c.Index)))}
}
