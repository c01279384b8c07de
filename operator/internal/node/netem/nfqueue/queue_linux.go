package nfqueue

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxWaiting is the most packets in the queue: the kernel's limit for it, and the room of the
	// heap.
	maxWaiting = 1 << 20
	// receiveBuffer of the netlink socket, in bytes. It holds packets that arrive while the thread
	// does not run, about 20,000.
	receiveBuffer = 32 << 20
	// answerWithin is how long the kernel's answer to a request may take. The answer comes through
	// the loop.
	answerWithin = 5 * time.Second
)

// openSocket opens the netlink socket for a queue in the network namespace of the calling thread.
// It does not bind a queue yet.
func openSocket() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, usable(fmt.Errorf("open a netfilter socket: %w", err))
	}
	file := os.NewFile(uintptr(fd), "netfilter")
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, errors.Join(fmt.Errorf("bind a netfilter socket: %w", err), file.Close())
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
	if errors.Is(err, unix.EPERM) {
		// For root of a user namespace, the machine's net.core.rmem_max is the limit.
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	}
	if err != nil {
		return nil, errors.Join(usable(fmt.Errorf("a receive buffer of %d bytes: %w", receiveBuffer, err)), file.Close())
	}
	// The kernel counts packets that do not fit (user_dropped). An error to the reader would add no
	// information.
	if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_NO_ENOBUFS, 1); err != nil {
		return nil, errors.Join(fmt.Errorf("set NETLINK_NO_ENOBUFS: %w", err), file.Close())
	}
	return file, nil
}

// stampArrivals makes the kernel stamp every packet that arrives, as long as the returned socket is
// open.
func stampArrivals() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the time of arrival: %w", err)
	}
	return fd, nil
}

// queue is one NFQUEUE and the netlink socket that it is bound to. The loop reads the socket;
// another thread sends requests.
type queue struct {
	number   uint16
	fd       int
	port     uint32 // of the socket
	answers  chan answer
	sequence uint32
}

func newQueue(fd int, number uint16) (*queue, error) {
	own, err := unix.Getsockname(fd)
	if err != nil {
		return nil, fmt.Errorf("read a netfilter socket's port: %w", err)
	}
	address, ok := own.(*unix.SockaddrNetlink)
	if !ok {
		return nil, fmt.Errorf("file %d is no netlink socket", fd)
	}
	return &queue{number: number, fd: fd, port: address.Pid, answers: make(chan answer, 16)}, nil
}

// bind binds the queue to this socket and configures its packets. It sets neither a bypass nor
// fail-open: the kernel drops packets that this process does not release.
func (q *queue) bind(super bool) error {
	return q.request(
		attribute(configCommand, commandBind, 0, 0, 0),
		attribute(configCopy, append(be32(copyBytes), copyPacket)...),
		attribute(configMaxLength, be32(maxWaiting)...),
		attribute(configMask, be32(flagGSO)...),
		attribute(configFlags, be32(flags(super))...),
	)
}

// supers sets whether a super-packet is one packet of the queue, or each of its segments is one.
func (q *queue) supers(super bool) error {
	return q.request(attribute(configMask, be32(flagGSO)...), attribute(configFlags, be32(flags(super))...))
}

func flags(super bool) uint32 {
	if super {
		return flagGSO
	}
	return 0
}

// unbind gives the queue up. The kernel drops the packets in it.
func (q *queue) unbind() error { return q.request(attribute(configCommand, commandUnbind, 0, 0, 0)) }

// request sends and waits for the answer, which the loop reads.
func (q *queue) request(attributes ...[]byte) error {
	q.sequence++ // never 0, which a verdict has
	message := configMessage(q.sequence, q.number, attributes...)
	if err := unix.Sendto(q.fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	late := time.After(answerWithin)
	for {
		select {
		case a := <-q.answers:
			if a.sequence == q.sequence {
				return a.err
			}
		case <-late:
			return fmt.Errorf("no answer from the kernel within %v", answerWithin)
		}
	}
}
