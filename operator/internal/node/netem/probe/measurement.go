package probe

import (
	"net/netip"
	"slices"
	"time"
)

// Measurement sums up the probes of one pod to one peer.
type Measurement struct {
	Peer netip.Addr `json:"peer"`
	// Sent probes, and how many of them were answered in time.
	Sent     int `json:"sent"`
	Answered int `json:"answered"`
	// RoundTrip without the time that the peer took to answer.
	RoundTrip Spread `json:"roundTrip"`
	// OneWay says that Out (to the peer) and In (from the peer) are known. Each may be wrong by
	// Error, which is 0 when both ends share a clock. A wrong estimate of the clocks' difference
	// makes one of them longer and the other one shorter.
	OneWay bool          `json:"oneWay"`
	Out    Spread        `json:"out"`
	In     Spread        `json:"in"`
	Error  time.Duration `json:"error,omitempty"`
	// SendError of the last probe that could not even be sent.
	SendError string `json:"sendError,omitempty"`
}

// Least round trip. It is the least one of a probe. If both ends share a clock, it may be the sum
// of the least way there and the least way back, of any two probes. On a busy machine one of the
// ways of every probe may have waited for a processor. Then the sum is closer to the path's own
// time.
func (m Measurement) Least() time.Duration {
	if m.OneWay && m.Error == 0 && m.Out.Min+m.In.Min < m.RoundTrip.Min {
		return m.Out.Min + m.In.Min
	}
	return m.RoundTrip.Min
}

// Spread of some durations. Without any, all are 0.
type Spread struct {
	Min    time.Duration `json:"min"`
	Median time.Duration `json:"median"`
	Max    time.Duration `json:"max"`
}

// keep is how many durations a series keeps.
const keep = 512

// series is durations in bounded memory. At first it keeps all of them, then every second one,
// every fourth one and so on. So the kept ones are spread evenly over the time. Min and max are
// those of all durations.
type series struct {
	kept     []time.Duration
	count    int // how many were added
	stride   int // every stride-th is kept; 0 means 1
	min, max time.Duration
}

func (s *series) add(d time.Duration) {
	if s.count == 0 {
		s.min, s.max, s.stride = d, d, 1
	}
	s.min, s.max = min(s.min, d), max(s.max, d)
	if s.count%s.stride == 0 {
		if len(s.kept) == keep {
			for i := range keep / 2 {
				s.kept[i] = s.kept[2*i]
			}
			s.kept = s.kept[:keep/2]
			s.stride *= 2
		}
		s.kept = append(s.kept, d)
	}
	s.count++
}

// spread returns the summary. The median of an even number is the lower one. It is exact for up to
// keep durations.
func (s *series) spread() Spread {
	if s.count == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(s.kept))
	return Spread{Min: s.min, Median: sorted[(len(sorted)-1)/2], Max: s.max}
}

// record collects the probes of one peer.
type record struct {
	sent, answered     int
	roundTrip, out, in series
	err                time.Duration // largest error of out and in
	sendError          string
}

func (r *record) add(trip trip) {
	r.answered++
	r.roundTrip.add(trip.roundTrip)
	if trip.oneWay {
		r.out.add(trip.out)
		r.in.add(trip.in)
		r.err = max(r.err, trip.err)
	}
}

func (r *record) measurement(peer netip.Addr) Measurement {
	return Measurement{
		Peer: peer, Sent: r.sent, Answered: r.answered, RoundTrip: r.roundTrip.spread(),
		// Probes from before the clocks were known have no directions; later ones do.
		OneWay: r.out.count > 0, Out: r.out.spread(), In: r.in.spread(), Error: r.err, SendError: r.sendError,
	}
}
