package htb

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
)

// maxJitter is the largest jitter of netem, which would cut a larger one off without an error.
const maxJitter = math.MaxInt32 * time.Nanosecond

// leafLimit is how many packets one netem may hold. It drops further packets, and Health reports
// them.
const leafLimit = 100_000

// class is the work of one netem qdisc, in the units of netem.
type class struct {
	delay, jitter time.Duration
	loss          uint32 // of 1<<32
	rate          uint64 // bytes per second; 0: none
}

// classOf translates a link.
func classOf(l shaping.Link) class {
	c := class{delay: l.Delay, jitter: l.Jitter, loss: probability(l.Loss)}
	if rate := l.RateOrDefault(); l.Jitter > 0 || rate != shaping.DefaultRate {
		c.rate = max(rate/8, 1)
	}
	return c
}

// shared reports whether all peers with such links can be in one class.
func (c class) shared() bool { return c.jitter == 0 && c.loss == 0 && c.rate == 0 }

// maxPoliced is the fastest rate of a policer, in bytes per second. A faster class has no bound on
// its backlog.
const maxPoliced = math.MaxUint32

// policed is the rate of the policer before the class; 0: there is none.
func (c class) policed() uint64 {
	if c.rate > maxPoliced {
		return 0
	}
	return c.rate
}

// link translates a class back to a link.
func (c class) link() shaping.Link {
	l := shaping.Link{Delay: c.delay, Jitter: c.jitter, Loss: fraction(c.loss), Rate: shaping.DefaultRate}
	if c.rate != 0 {
		l.Rate = c.rate * 8
	}
	return l
}

func probability(p float64) uint32 {
	if p == 0 {
		return 0
	}
	return uint32(min(max(math.Round(p*(1<<32)), 1), math.MaxUint32))
}

// fraction is p rounded to nine digits, which the kernel's 32 bits can tell apart. So it equals the
// requested fraction if that had at most nine digits.
func fraction(p uint32) float64 {
	if p == math.MaxUint32 {
		return 1
	}
	return math.Round(float64(p)/(1<<32)*1e9) / 1e9
}

// classes of a table, by address. The error says why netem cannot shape a link.
func classes(table shaping.Table) (map[netip.Addr]class, error) {
	wanted := map[netip.Addr]class{}
	for _, peer := range table.Normalized() {
		if peer.Out.Jitter > maxJitter {
			return nil, fmt.Errorf("peer %s: out: jitter %v: the kernel's netem does at most %v", peer.Address, peer.Out.Jitter, maxJitter)
		}
		wanted[peer.Address] = classOf(peer.Out)
	}
	return wanted, nil
}
