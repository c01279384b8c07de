package nfqueue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// queueStatus is the queue's line of /proc/net/netfilter/nfnetlink_queue.
type queueStatus struct {
	port        uint32 // netlink port of the socket that the queue is bound to
	waiting     uint64 // packets that have no verdict yet
	queueFull   uint64 // packets dropped for lack of room in the queue
	bufferFull  uint64 // packets dropped for lack of room in the socket
	copyMode    int
	copiedBytes int
}

// statusFile shows the queues of the network namespace that it was opened in.
type statusFile struct {
	proc   *os.File
	number uint16
}

func openStatus(number uint16) (*statusFile, error) {
	// Not /proc/net: that is the namespace of the process's first thread.
	proc, err := os.Open("/proc/thread-self/net/netfilter/nfnetlink_queue")
	if err != nil {
		return nil, fmt.Errorf("%w; the node's kernel needs CONFIG_NETFILTER_NETLINK_QUEUE", err)
	}
	return &statusFile{proc: proc, number: number}, nil
}

func (f *statusFile) close() error { return f.proc.Close() }

// read returns the queue's line; known is false while the queue is not bound.
func (f *statusFile) read() (status queueStatus, known bool, err error) {
	content, err := io.ReadAll(io.NewSectionReader(f.proc, 0, 1<<20))
	if err != nil && !errors.Is(err, io.EOF) {
		return queueStatus{}, false, fmt.Errorf("read the packet queues: %w", err)
	}
	return parseStatus(content, f.number)
}

func parseStatus(content []byte, number uint16) (status queueStatus, known bool, err error) {
	for line := range bytes.Lines(content) {
		var n uint16
		s := queueStatus{}
		_, err := fmt.Sscan(string(line), &n, &s.port, &s.waiting, &s.copyMode, &s.copiedBytes, &s.queueFull, &s.bufferFull)
		if err != nil {
			return queueStatus{}, false, fmt.Errorf("read the packet queues: %q: %w", bytes.TrimSpace(line), err)
		}
		if n == number {
			return s, true, nil
		}
	}
	return queueStatus{}, false, nil
}
