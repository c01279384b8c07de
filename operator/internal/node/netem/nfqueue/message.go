package nfqueue

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// These are in nfnetlink_queue.h but not in x/sys.
const (
	subsystem = 3 << 8 // NFNL_SUBSYS_QUEUE

	msgPacket  = subsystem // NFQNL_MSG_PACKET is 0
	msgVerdict = subsystem | 1
	msgConfig  = subsystem | 2

	attrPacketHeader = 1 // NFQA_PACKET_HDR: be32 id, be16 protocol, u8 hook
	attrVerdict      = 2 // NFQA_VERDICT_HDR: be32 verdict, be32 id
	attrTimestamp    = 4 // NFQA_TIMESTAMP: be64 seconds, be64 microseconds of CLOCK_REALTIME
	attrPayload      = 10
	attrFullLength   = 13 // NFQA_CAP_LEN: present when the payload was cut

	configCommand   = 1 // NFQA_CFG_CMD: u8 command, u8, be16 family
	configCopy      = 2 // NFQA_CFG_PARAMS: be32 range, u8 mode
	configMaxLength = 3
	configMask      = 4
	configFlags     = 5

	commandBind, commandUnbind = 1, 2

	copyPacket = 2 // NFQNL_COPY_PACKET
	copyBytes  = 40

	flagGSO = 1 << 2 // NFQA_CFG_F_GSO: super-packets are one entry of the queue

	verdictDrop, verdictAccept = 0, 1

	typeMask = 1<<14 - 1 // without NLA_F_NESTED and NLA_F_NET_BYTEORDER

	headerLength  = unix.NLMSG_HDRLEN + 4 // nlmsghdr, nfgenmsg
	verdictLength = headerLength + 4 + 8
)

// packet is the kernel's description of a packet.
type packet struct {
	id      uint32
	source  key
	bytes   uint32
	stamped bool  // the kernel has stamped its arrival
	arrived int64 // nanoseconds of CLOCK_REALTIME
}

// parsePacket reads the body of an NFQNL_MSG_PACKET, behind its headers. It returns false if there
// is no known IP header.
func parsePacket(body []byte) (p packet, ok bool) {
	var header bool
	for len(body) >= unix.SizeofNlAttr {
		length, kind := int(binary.NativeEndian.Uint16(body)), binary.NativeEndian.Uint16(body[2:])&typeMask
		if length < unix.SizeofNlAttr || length > len(body) {
			return packet{}, false
		}
		value := body[unix.SizeofNlAttr:length]
		switch {
		case kind == attrPacketHeader && len(value) >= 4:
			p.id, header = binary.BigEndian.Uint32(value), true
		case kind == attrTimestamp && len(value) >= 16:
			p.stamped = true
			p.arrived = int64(binary.BigEndian.Uint64(value))*1e9 + int64(binary.BigEndian.Uint64(value[8:]))*1e3
		case kind == attrFullLength && len(value) >= 4:
			p.bytes = binary.BigEndian.Uint32(value)
		case kind == attrPayload:
			p.bytes = max(p.bytes, uint32(len(value)))
			ok = p.sourceOf(value)
		}
		body = body[min(len(body), (length+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1)):]
	}
	return p, ok && header
}

// sourceOf reads the source address of an IP header.
func (p *packet) sourceOf(ip []byte) bool {
	switch {
	case len(ip) >= 20 && ip[0]>>4 == 4:
		p.source = key{10: 0xff, 11: 0xff}
		copy(p.source[12:], ip[12:16])
		return true
	case len(ip) >= 40 && ip[0]>>4 == 6:
		copy(p.source[:], ip[8:24])
		return true
	default:
		return false
	}
}

// putVerdict writes one verdict into a buffer of verdictLength. The kernel answers only if it does
// not know the packet, and then with sequence number 0.
func putVerdict(to []byte, number uint16, id, verdict uint32) {
	putHeader(to, verdictLength, msgVerdict, 0, 0, number)
	attribute := to[headerLength:]
	binary.NativeEndian.PutUint16(attribute, 4+8)
	binary.NativeEndian.PutUint16(attribute[2:], attrVerdict)
	binary.BigEndian.PutUint32(attribute[4:], verdict)
	binary.BigEndian.PutUint32(attribute[8:], id)
}

func putHeader(to []byte, length, kind, flags int, sequence uint32, number uint16) {
	binary.NativeEndian.PutUint32(to, uint32(length))
	binary.NativeEndian.PutUint16(to[4:], uint16(kind))
	binary.NativeEndian.PutUint16(to[6:], uint16(flags|unix.NLM_F_REQUEST))
	binary.NativeEndian.PutUint32(to[8:], sequence)
	binary.NativeEndian.PutUint32(to[12:], 0)
	to[16], to[17] = unix.AF_UNSPEC, 0 // nfgenmsg: family, version
	binary.BigEndian.PutUint16(to[18:], number)
}

// configMessage is a request with one or more attributes. The kernel acknowledges it.
func configMessage(sequence uint32, number uint16, attributes ...[]byte) []byte {
	out := make([]byte, headerLength)
	for _, attribute := range attributes {
		out = append(out, attribute...)
	}
	putHeader(out, len(out), msgConfig, unix.NLM_F_ACK, sequence, number)
	return out
}

func attribute(kind uint16, value ...byte) []byte {
	out := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofNlAttr+len(value)))
	out = binary.NativeEndian.AppendUint16(out, kind)
	out = append(out, value...)
	return append(out, make([]byte, -len(out)&(unix.NLA_ALIGNTO-1))...)
}

func be32(value uint32) []byte { return binary.BigEndian.AppendUint32(nil, value) }

// answer is the kernel's answer to one request.
type answer struct {
	sequence uint32
	err      error
}

func parseAnswer(message []byte) (answer, error) {
	if len(message) < unix.NLMSG_HDRLEN+4 {
		return answer{}, fmt.Errorf("an answer of %d bytes", len(message))
	}
	a := answer{sequence: binary.NativeEndian.Uint32(message[8:])}
	if code := int32(binary.NativeEndian.Uint32(message[unix.NLMSG_HDRLEN:])); code != 0 {
		a.err = unix.Errno(-code)
	}
	return a, nil
}
