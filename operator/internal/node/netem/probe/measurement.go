package probe

import (
	"net/netip"
	"slices"
	"time"
)

// Measurement is what probes of one pod say about its links with one peer.
type Measurement struct {
	Peer netip.Addr `json:"peer"`
	// Sent probes, and how many of them were answered in time.
	Sent     int `json:"sent"`
	Answered int `json:"answered"`
	// RoundTrip, less the time that the peer took to answer.
	RoundTrip Spread `json:"roundTrip"`
	// OneWay says that Out (to the peer) and In (from the peer) are known, within Error either way:
	// 0 when both ends share a clock. A wrong guess of the clocks' difference makes one of them
	// longer and the other one shorter.
	OneWay bool          `json:"oneWay"`
	Out    Spread        `json:"out"`
	In     Spread        `json:"in"`
	Error  time.Duration `json:"error,omitempty"`
	// SendError of the last probe that could not even be sent.
	SendError string `json:"sendError,omitempty"`
}

// Least round trip: of one probe, or the least ways there and back of any two, where both ends
// share a clock. On a busy machine, where one way or the other of every probe may have waited for a
// processor, the second is closer to what the path takes.
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

// series is durations in bounded memory. It keeps the first of them all, then every second one,
// every fourth one and so on, so that the kept ones are spread evenly over the time. Min and max
// are of all.
type series struct {
	kept     []time.Duration
	count    int // all that were added
	stride   int // every stride-th is kept; 0 is 1
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

// spread returns the summary; the median is the lower one of an even number, and exact for up to
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
		// Probes from before the clocks were known say nothing about the directions; the others do.
		OneWay: r.out.count > 0, Out: r.out.spread(), In: r.in.spread(), Error: r.err, SendError: r.sendError,
	}
}
