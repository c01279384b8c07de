package machine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel's groups of netlink messages about closed sockets, from enum sknetlink_groups of
// linux/sock_diag.h.
const destroyedTCP, destroyedTCP6 = 1, 3

// Offsets in such a message: a header of 16 bytes and struct inet_diag_msg of linux/inet_diag.h.
const (
	diagFamily  = 16
	diagOwnPort = 20
	diagPort    = 22
	diagAddress = 40
	diagLength  = 72
)

// lastConnections is how long the program waits for ends of connections after the script: the
// kernel reports them a little later.
const lastConnections = 20 * time.Millisecond

// connections records when connections from this machine to the SSH of other machines end. A
// machine that dies writes no end of its sessions, and a machine that does not answer writes
// nothing. Only the script's machine has the script's view of that.
//
// The kernel reports closed sockets to every user, within the pod's network namespace. So no other
// program or process is between the script and its ssh. Some sandboxes report no closed sockets,
// and there the ends are unknown. When connect(2) itself fails, the kernel has forgotten the port.
// So attempts of an ssh without a ConnectTimeout, which blocks in that call, are not recorded.
type connections struct {
	file *os.File // nil: the kernel does not report closed sockets
	over sync.WaitGroup
}

// watchConnections watches the connections to a port of the machines that the recorder knows.
func watchConnections(port int, recorder *Recorder) *connections {
	w := &connections{}
	file, err := destroyedSockets(uint16(port)) // #nosec G115 -- a port
	if err != nil {
		return w
	}
	w.file = file
	w.over.Go(func() {
		buffer := make([]byte, 64<<10)
		for {
			n, err := file.Read(buffer)
			switch {
			case errors.Is(err, unix.ENOBUFS): // more ended at once than the buffer holds
				continue
			case err != nil:
				return
			}
			if to, own, ok := closedConnection(buffer[:n]); ok {
				recorder.closed(to.Addr(), int(own))
			}
		}
	})
	return w
}

// close waits for the last ends.
func (w *connections) close() {
	if w.file == nil {
		return
	}
	time.Sleep(lastConnections)
	w.file.Close()
	w.over.Wait()
}

// destroyedSockets opens the kernel's messages about closed TCP sockets whose other end had the
// given port.
func destroyedSockets(port uint16) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	// Servers and clients of the artifact may close thousands of sockets in a second. The filter
	// makes the kernel drop their messages.
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: diagPort},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(port)},
		{Code: unix.BPF_RET | unix.BPF_K, K: diagLength},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}) // #nosec G115 -- four
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1<<(destroyedTCP-1) | 1<<(destroyedTCP6-1)})
	}
	if err != nil {
		_ = unix.Close(fd) // the file has no data to lose
		return nil, os.NewSyscallError("listen to the kernel", err)
	}
	return os.NewFile(uintptr(fd), "destroyed sockets"), nil
}

// closedConnection reads a message. It returns the other end of the connection, and its port on
// this machine.
func closedConnection(message []byte) (to netip.AddrPort, own uint16, ok bool) {
	if len(message) < diagLength {
		return to, 0, false
	}
	address := message[diagAddress : diagAddress+16]
	var ip netip.Addr
	switch message[diagFamily] {
	case unix.AF_INET:
		ip, _ = netip.AddrFromSlice(address[:4])
	case unix.AF_INET6:
		ip, _ = netip.AddrFromSlice(address)
	default:
		return to, 0, false
	}
	return netip.AddrPortFrom(ip.Unmap(), binary.BigEndian.Uint16(message[diagPort:])), binary.BigEndian.Uint16(message[diagOwnPort:]), true
}

// withConnections adds the end of each connection to the sessions on that connection. It counts
// connections without a session: those to one machine in a row are one event. Connections that
// ended after the script was killed say nothing of the machines. Events are in the order of their
// beginnings.
func withConnections(events []Event) []Event {
	type end struct {
		event   Event
		matched bool
	}
	type key struct {
		from, to string
		port     int
	}
	ends := map[key][]*end{}
	var inOrder []*end
	killed := false
	for _, e := range events {
		killed = killed || e.Kind == "deadline"
		if e.Kind == "closed" && !killed {
			k, c := key{e.Machine, e.To, e.Port}, &end{event: e}
			ends[k], inOrder = append(ends[k], c), append(inOrder, c)
		}
	}
	out := make([]Event, 0, len(events))
	for _, e := range events {
		if e.Kind == "closed" {
			continue
		}
		if e.Kind == "session" {
			// The clocks of two machines may differ.
			for _, c := range ends[key{e.From, e.Machine, e.Port}] {
				if c.event.BeginUnixNanos >= e.BeginUnixNanos-int64(time.Second) {
					c.matched, e.ClosedUnixNanos = true, c.event.BeginUnixNanos
					break
				}
			}
		}
		out = append(out, e)
	}
	last := map[string]int{} // where a machine's unanswered event is in out, unless a session came after it
	for _, c := range inOrder {
		to, at := c.event.To, c.event.BeginUnixNanos
		switch i, open := last[to]; {
		case c.matched:
			delete(last, to)
		case open:
			out[i].Count++
			out[i].EndUnixNanos = at
		default:
			last[to] = len(out)
			out = append(out, Event{Kind: "unanswered", ID: c.event.ID, Machine: to, From: c.event.Machine, BeginUnixNanos: at, EndUnixNanos: at, Count: 1})
		}
	}
	slices.SortStableFunc(out, func(a, b Event) int { return cmp.Compare(a.BeginUnixNanos, b.BeginUnixNanos) })
	return out
}
