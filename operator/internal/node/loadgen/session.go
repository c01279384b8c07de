package loadgen

import (
	"fmt"
	"math"
	"time"
)

// The lengths of sessions.
const (
	// LengthFixed: all have the same number of requests.
	LengthFixed = "Fixed"
	// LengthGeometric: after each request a session continues with the same probability.
	LengthGeometric = "Geometric"
)

// UserSession makes each arrival of an open loop the arrival of a user. The user sends several
// requests one after the other and then leaves. This is the semi-open system of Schroeder, Wierman
// and Harchol-Balter, "Open versus closed: a cautionary tale", NSDI 2006.
type UserSession struct {
	// Requests is the mean number of requests of a session, 1 to 100000. Sessions arrive at the
	// rate divided by it, so that the rate always counts requests.
	Requests int32 `json:"requests"`
	// Length: Fixed or Geometric.
	Length string `json:"length"`
}

// MaxSession bounds the mean number of requests of a session.
const MaxSession = 100_000

func (s *UserSession) validate() (errs []error) {
	if s.Requests < 1 || s.Requests > MaxSession {
		errs = append(errs, fmt.Errorf("session.requests is %d; it must be from 1 to %d", s.Requests, MaxSession))
	}
	if s.Length != LengthFixed && s.Length != LengthGeometric {
		errs = append(errs, fmt.Errorf("session.length is %q; it must be Fixed or Geometric", s.Length))
	}
	return errs
}

// perArrival is how many requests an arrival stands for.
func (c Config) perArrival() int64 {
	if c.Session == nil {
		return 1
	}
	return int64(c.Session.Requests)
}

// requests draws the number of requests of the next session.
func (c *client) requests() int64 {
	s := c.run.cfg.Session
	switch {
	case s == nil:
		return 1
	case s.Length == LengthFixed || s.Requests == 1:
		return int64(s.Requests)
	}
	// P(N > n) = (1 - 1/mean)^n, from n = 0 on. N is the least n for which 1 minus that is above a
	// uniform number.
	return 1 + int64(math.Log(1-c.rng.Float64())/math.Log1p(-1/float64(s.Requests)))
}

// furtherRequests sends the remaining requests of a session whose first request has ended.
func (c *client) furtherRequests(n int64, now time.Duration) {
	think := time.Duration(c.run.cfg.ThinkTime)
	for ; n > 0; n-- {
		now = c.wait(now, think)
		if now >= c.run.last || c.run.stopped.Load() {
			return
		}
		c.issued(now)
		now = c.transaction(now, now)
	}
}
