package edt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ErrNoFQ says that the kernel lacks the qdisc of this package.
var ErrNoFQ = errors.New("the kernel has no fq qdisc (module sch_fq)")

// fqHandle is the handle of our root qdisc, a55a: in tc's notation. The kernel's default has no
// handle. The kernel gives qdiscs without a requested handle one from 8000: on.
const fqHandle = 0xa55a << 16

// attribute is one of the parameters of fq that this package sets.
type attribute struct {
	kind int
	name string
	want uint32
}

// fqParameters are explained in the package comment. The horizon in microseconds is four times the
// longest possible delay of a link.
var fqParameters = []attribute{
	{nl.TCA_FQ_PLIMIT, "limit", 100_000},
	{nl.TCA_FQ_FLOW_PLIMIT, "flow_limit", 100_000},
	{nl.TCA_FQ_BUCKETS_LOG, "buckets (log2)", 15},
	{nl.TCA_FQ_RATE_ENABLE, "pacing", 0},
	{nl.TCA_FQ_ORPHAN_MASK, "orphan_mask", 0xffffffff},
	{nl.TCA_FQ_HORIZON, "horizon (us)", 40_200_000},
}

// qdisc is one qdisc of the device as the kernel describes it.
type qdisc struct {
	kind           string
	handle, parent uint32
	references     uint32
	options        []byte // TCA_OPTIONS
	statistics     []byte // TCA_STATS2
}

func (q qdisc) String() string { return fmt.Sprintf("%s %x:", q.kind, q.handle>>16) }

// ours reports whether it is the fq of this package.
func (q qdisc) ours() bool { return q.kind == "fq" && q.handle == fqHandle }

// equal compares all but the statistics.
func (q qdisc) equal(r qdisc) bool {
	return q.kind == r.kind && q.handle == r.handle && q.parent == r.parent && q.references == r.references && slices.Equal(q.options, r.options)
}

// tc talks to the kernel's traffic control in the network namespace in which it was opened.
type tc struct {
	sockets map[int]*nl.SocketHandle
}

func (t tc) request(kind, flags int, message *nl.TcMsg) *nl.NetlinkRequest {
	request := nl.NewNetlinkRequest(kind, flags)
	request.Sockets = t.sockets
	request.AddData(message)
	return request
}

// qdiscs lists the qdiscs of a device.
func (t tc) qdiscs(device int) ([]qdisc, error) {
	var messages [][]byte
	// If a change interrupts a dump, the dump is repeated.
	for attempt := 1; ; attempt++ {
		var err error
		messages, err = t.request(unix.RTM_GETQDISC, unix.NLM_F_DUMP, &nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(device)}).
			Execute(unix.NETLINK_ROUTE, unix.RTM_NEWQDISC)
		if err == nil {
			break
		}
		if !errors.Is(err, netlink.ErrDumpInterrupted) || attempt == 10 {
			return nil, fmt.Errorf("list qdiscs: %w", err)
		}
	}
	var list []qdisc
	for _, message := range messages {
		head := nl.DeserializeTcMsg(message)
		if int(head.Ifindex) != device {
			continue
		}
		q := qdisc{handle: head.Handle, parent: head.Parent, references: head.Info}
		attributes, err := nl.ParseRouteAttr(message[nl.SizeofTcMsg:])
		if err != nil {
			return nil, fmt.Errorf("list qdiscs: %w", err)
		}
		for _, a := range attributes {
			switch a.Attr.Type {
			case nl.TCA_KIND:
				q.kind = string(a.Value[:max(len(a.Value)-1, 0)])
			case nl.TCA_OPTIONS:
				q.options = a.Value
			case nl.TCA_STATS2:
				q.statistics = a.Value
			}
		}
		list = append(list, q)
	}
	return list, nil
}

// setFQ creates our fq. If there is one, setFQ sets its parameters, and its packets stay.
func (t tc) setFQ(device int, there bool) error {
	flags := unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_EXCL
	if there {
		flags = unix.NLM_F_ACK | unix.NLM_F_REPLACE
	}
	request := t.request(unix.RTM_NEWQDISC, flags, &nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(device), Handle: fqHandle, Parent: netlink.HANDLE_ROOT})
	request.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("fq")))
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	for _, a := range fqParameters {
		options.AddRtAttr(a.kind, nl.Uint32Attr(a.want))
	}
	request.AddData(options)
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	if errors.Is(err, unix.ENOENT) {
		return ErrNoFQ
	}
	return usable("set the fq qdisc", err)
}

// remove deletes the qdisc with this handle and parent.
func (t tc) remove(device int, q qdisc) error {
	_, err := t.request(unix.RTM_DELQDISC, unix.NLM_F_ACK, &nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(device), Handle: q.handle, Parent: q.parent}).
		Execute(unix.NETLINK_ROUTE, 0)
	return usable("delete qdisc "+q.String(), err)
}

// wrong returns which parameters of our fq have other values. It ignores a parameter that the
// kernel does not know (the horizon before Linux 5.8).
func (q qdisc) wrong() error {
	values, err := numbers(q.options)
	if err != nil {
		return fmt.Errorf("read the parameters of %v: %w", q, err)
	}
	var wrong []error
	for _, a := range fqParameters {
		if got, known := values[a.kind]; known && got != a.want {
			wrong = append(wrong, fmt.Errorf("%v has %s %d instead of %d", q, a.name, got, a.want))
		}
	}
	return errors.Join(wrong...)
}

// numbers parses nested attributes and returns those of four bytes.
func numbers(nested []byte) (map[int]uint32, error) {
	attributes, err := nl.ParseRouteAttr(nested)
	if err != nil {
		return nil, err
	}
	values := map[int]uint32{}
	for _, a := range attributes {
		if len(a.Value) == 4 {
			values[int(a.Attr.Type)] = binary.NativeEndian.Uint32(a.Value)
		}
	}
	return values, nil
}

// fqStatistics has fq's counters since its creation, and how many packets it holds.
type fqStatistics struct {
	queued, dropped                          uint32
	flowLimit, allocationErrors, horizonDrop uint64
}

// Offsets in struct gnet_stats_queue and struct tc_fq_qd_stats of the kernel's interface.
const (
	queueLengthAt, queueDropsAt                     = 0, 8
	flowLimitAt, allocationErrorsAt, horizonDropsAt = 32, 48, 88
)

func (q qdisc) fqStatistics() (fqStatistics, error) {
	attributes, err := nl.ParseRouteAttr(q.statistics)
	if err != nil {
		return fqStatistics{}, fmt.Errorf("read the statistics of %v: %w", q, err)
	}
	var s fqStatistics
	var queue, app bool
	for _, a := range attributes {
		switch {
		case a.Attr.Type == nl.TCA_STATS_QUEUE && len(a.Value) >= queueDropsAt+4:
			s.queued, s.dropped, queue = binary.NativeEndian.Uint32(a.Value[queueLengthAt:]), binary.NativeEndian.Uint32(a.Value[queueDropsAt:]), true
		case a.Attr.Type == nl.TCA_STATS_APP && len(a.Value) >= allocationErrorsAt+8:
			s.flowLimit, s.allocationErrors, app = binary.NativeEndian.Uint64(a.Value[flowLimitAt:]), binary.NativeEndian.Uint64(a.Value[allocationErrorsAt:]), true
			if len(a.Value) >= horizonDropsAt+8 { // since Linux 5.8
				s.horizonDrop = binary.NativeEndian.Uint64(a.Value[horizonDropsAt:])
			}
		}
	}
	if !queue || !app {
		return fqStatistics{}, fmt.Errorf("read the statistics of %v: the kernel gave none", q)
	}
	return s, nil
}

// usable adds to an error the attempted action and a hint for the user.
func usable(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%s: %w; the agent's container needs the capability NET_ADMIN", what, err)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}
