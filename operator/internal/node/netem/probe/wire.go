package probe

import (
	"crypto/subtle"
	"encoding/binary"
	"time"
)

// Port on which every agent answers probes (UDP).
const Port = 7444

// Key of a trial. Packets without it are ignored, so that no stray packet, of another trial or of
// another program, is answered or counted. It is not secret from a user who can read the trial's
// packets.
type Key [16]byte

// Clock is a pod's estimate of the coordinator's clock: its Unix time in nanoseconds =
// CLOCK_MONOTONIC + Offset, within Error nanoseconds.
type Clock struct {
	Offset, Error int64
	Known         bool
}

// packetSize is the size of a request and of its answer, which is never larger.
//
//	 0  magic     4 bytes       32  sequence  of the request            64  host   digest of the answering kernel's boot identity
//	 4  kind      1 byte        40  sent      by the prober             72  offset of the answering pod's Clock
//	 5  known     1 byte        48  received  by the responder          80  error  of the answering pod's Clock
//	 8  key      16 bytes       56  answered  by the responder
//	24  session   of the prober
//
// Numbers are big-endian. Bytes 48 and on are 0 in a request.
const packetSize = 88

const magic = 0xa55a_0001

// The kinds of packet.
const (
	request = 1
	answer  = 2
)

// packet is the content of a packet, except for its magic and key. Each instant is on the
// CLOCK_MONOTONIC of the pod that read it.
type packet struct {
	kind                     byte
	session, sequence        uint64
	sent, received, answered int64
	host                     uint64
	clock                    Clock
}

func (p *packet) encode(buffer *[packetSize]byte, key *Key) {
	binary.BigEndian.PutUint32(buffer[0:], magic)
	buffer[4], buffer[5], buffer[6], buffer[7] = p.kind, 0, 0, 0
	if p.clock.Known {
		buffer[5] = 1
	}
	copy(buffer[8:], key[:])
	for i, number := range [...]uint64{
		p.session, p.sequence, uint64(p.sent), uint64(p.received), uint64(p.answered), p.host, uint64(p.clock.Offset), uint64(p.clock.Error),
	} {
		binary.BigEndian.PutUint64(buffer[24+8*i:], number)
	}
}

// decode returns false for all data but a packet of that kind with this key.
func (p *packet) decode(data []byte, kind byte, key *Key) bool {
	if len(data) != packetSize || binary.BigEndian.Uint32(data) != magic || data[4] != kind || subtle.ConstantTimeCompare(data[8:24], key[:]) == 0 {
		return false
	}
	number := func(i int) uint64 { return binary.BigEndian.Uint64(data[24+8*i:]) }
	*p = packet{
		kind: kind, session: number(0), sequence: number(1), sent: int64(number(2)), received: int64(number(3)), answered: int64(number(4)),
		host: number(5), clock: Clock{Offset: int64(number(6)), Error: int64(number(7)), Known: data[5] == 1},
	}
	return true
}

// trip is one answered probe.
type trip struct {
	roundTrip time.Duration
	oneWay    bool
	out, in   time.Duration
	err       time.Duration
}

// tripOf computes the trip of an answer that came back at the instant back, for the pod with this
// host digest and clock.
func tripOf(answer *packet, back int64, host uint64, clock Clock) trip {
	t := trip{roundTrip: time.Duration((back - answer.sent) - (answer.answered - answer.received))}
	var difference int64 // from the responder's CLOCK_MONOTONIC to ours
	switch {
	case answer.host == host:
		t.oneWay = true
	case answer.clock.Known && clock.Known:
		// Both sides compute the coordinator's time: the monotonic clock plus the offset.
		t.oneWay, difference = true, clock.Offset-answer.clock.Offset
		t.err = time.Duration(clock.Error + answer.clock.Error)
	default:
		return t
	}
	t.out = time.Duration(answer.received - difference - answer.sent)
	t.in = time.Duration(back - (answer.answered - difference))
	return t
}
