package nfqueue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

const (
	// batch is how many packets are read, or released, by one system call.
	batch = 64
	// messageRoom for one packet's message: headers, attributes and copyBytes need less than 200
	// bytes.
	messageRoom = 512
	// maxAge of a stamp that the loop trusts. An older stamp means that the clock was set.
	maxAge = int64(time.Second)
	// clockStep is how far wall clock and monotonic clock may drift apart between two reads. Beyond
	// it, the loop does not trust the stamps of one batch.
	clockStep = int64(time.Millisecond)
	// longestLateness that the histogram can hold, in microseconds.
	longestLateness = int64(time.Minute / time.Microsecond)
)

// loop reads packets and releases them when they are due, on one thread of its own. Only that
// thread uses the fields without a comment on sharing.
type loop struct {
	q     *queue
	links atomic.Pointer[links] // shared; replaced by update

	waiting *delays
	random  *rand.Rand
	lateUS  *hdrhistogram.Histogram // how late packets were released, microseconds

	base       time.Time // has the monotonic clock, too; the loop's times are nanoseconds since base
	timerBase  int64     // CLOCK_MONOTONIC at base
	wallOffset int64     // wall clock minus monotonic clock, at the last batch
	armedFor   int64     // what the timer is set to; 0: not set

	timer, wake int // timerfd, eventfd
	headers     [batch]messageHeader
	vectors     [batch]unix.Iovec
	buffers     [batch * messageRoom]byte
	verdicts    [batch * verdictLength]byte
	polled      [3]unix.PollFd

	// Shared: only the loop writes these.
	unknown   atomic.Uint64 // dropped: their source is in no table
	crowded   atomic.Uint64 // dropped: there is no room for them
	malformed atomic.Uint64 // not understood; dropped if possible
	flushed   atomic.Uint64 // dropped by the kernel while they waited here

	questions chan chan<- lateness
	scheduled chan scheduling // once
	done      chan struct{}
	err       error // why the loop ended; valid after done
}

type messageHeader struct {
	unix.Msghdr
	length uint32
	_      uint32
}

type lateness struct{ p99, most time.Duration }

func newLoop(q *queue, seed uint64, now time.Time) (*loop, error) {
	l := &loop{
		q: q, waiting: newDelays(maxWaiting), random: rand.New(rand.NewPCG(seed, seed>>1|1)), base: now,
		lateUS:    hdrhistogram.New(1, longestLateness, 2),
		questions: make(chan chan<- lateness, 4), scheduled: make(chan scheduling, 1), done: make(chan struct{}),
	}
	l.links.Store(&links{})
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		return nil, fmt.Errorf("read the monotonic clock: %w", err)
	}
	l.timerBase = at.Nano() - int64(time.Since(now))
	var err error
	if l.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("create a timer: %w", err)
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return nil, errors.Join(fmt.Errorf("create an event: %w", err), unix.Close(l.timer))
	}
	for i := range l.headers {
		l.vectors[i].Base = &l.buffers[i*messageRoom]
		l.vectors[i].SetLen(messageRoom)
		l.headers[i].Iov, l.headers[i].Iovlen = &l.vectors[i], 1
	}
	for i, fd := range []int{q.fd, l.timer, l.wake} {
		l.polled[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	go l.run()
	return l, nil
}

// run returns only with an error: then no thread releases packets any more. It never unlocks its
// thread, whose priority must not pass to other goroutines.
func (l *loop) run() {
	defer close(l.done)
	runtime.LockOSThread()
	l.scheduled <- l.prioritise()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // in nanoseconds; a failure does no harm
	for {
		l.answerQuestions()
		released, err := l.release()
		if err != nil {
			l.err = err
			return
		}
		received, err := l.receive()
		if err != nil {
			l.err = err
			return
		}
		if released == batch || received == batch {
			continue // there may be more packets
		}
		if err := l.wait(); err != nil {
			l.err = err
			return
		}
	}
}

// scheduling is how the thread is scheduled, and why not better ("": it has a real-time priority).
type scheduling struct{ has, why string }

func (l *loop) prioritise() scheduling {
	has, why := prioritiseProcess()
	if why == "" {
		return scheduling{has: has}
	}
	better, err := prioritiseThread()
	if err != nil {
		return scheduling{has: has, why: fmt.Sprintf("%s; %v", why, err)}
	}
	return scheduling{has: better}
}

// now returns nanoseconds since base.
func (l *loop) now() int64 {
	return int64(time.Since(l.base))
}

// release gives the verdict on due packets, at most one batch. The kernel passes the packets on
// within this call.
func (l *loop) release() (int, error) {
	now, all, n := l.now(), l.links.Load().all, 0
	for ; n < batch && l.waiting.len() > 0 && l.waiting.first().due <= now; n++ {
		w := l.waiting.pop()
		putVerdict(l.verdicts[n*verdictLength:(n+1)*verdictLength], l.q.number, w.id, verdictAccept)
		s := all[w.link].state
		s.packets.Add(1)
		s.bytes.Add(uint64(w.bytes))
		_ = l.lateUS.RecordValue(min((now-w.due)/1000, longestLateness))
	}
	if n == 0 {
		return 0, nil
	}
	return n, l.send(n)
}

func (l *loop) send(verdicts int) error {
	if verdicts == 0 {
		return nil
	}
	if errno := rawWrite(l.q.fd, l.verdicts[:verdicts*verdictLength]); errno != 0 {
		return fmt.Errorf("give %d verdicts: %w", verdicts, errno)
	}
	return nil
}

// receive reads the packets that have arrived, at most one batch, and puts them into the heap.
func (l *loop) receive() (int, error) {
	n, errno := rawReceive(l.q.fd, l.headers[:])
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR || errno == unix.ENOBUFS:
		return 0, nil
	case errno != 0:
		return 0, fmt.Errorf("read the packet queue: %w", errno)
	}
	// Loaded after the packets were read. So a packet that was sent after a table came into force
	// is handled by that table.
	table := l.links.Load()
	wall := time.Now()
	now := int64(wall.Sub(l.base))
	offset := wall.UnixNano() - now
	trusted := max(offset-l.wallOffset, l.wallOffset-offset) < clockStep
	l.wallOffset = offset
	drops := 0
	for i := range n {
		message := l.buffers[i*messageRoom:][:l.headers[i].length]
		drops += l.take(table, message, now, offset, trusted, drops)
	}
	return n, l.send(drops)
}

// take handles one message. It returns 1 if it wrote the verdict that drops the packet, at the
// given place.
func (l *loop) take(table *links, message []byte, now, offset int64, trusted bool, place int) int {
	if len(message) < headerLength {
		l.malformed.Add(1)
		return 0
	}
	switch binary.NativeEndian.Uint16(message[4:]) {
	case msgPacket:
	case unix.NLMSG_ERROR:
		l.takeAnswer(message)
		return 0
	default:
		return 0
	}
	p, ok := parsePacket(message[headerLength:])
	if !ok {
		l.malformed.Add(1) // rules let only IP through; a verdict would need the number, which could not be read
		return 0
	}
	arrival := now
	if age := now + offset - p.arrived; p.stamped && trusted && age > 0 && age < maxAge {
		arrival = now - age
	}
	if i, known := table.index[p.source]; !known {
		l.unknown.Add(1)
	} else if l.waiting.full() { // the kernel's limit is the same, but it may have flushed packets that are still in the heap
		l.crowded.Add(1)
	} else if due, ok := table.all[i].pass(arrival, p.bytes, l.random); ok {
		l.waiting.push(waiting{due: due, id: p.id, link: i, bytes: p.bytes})
		return 0
	}
	putVerdict(l.verdicts[place*verdictLength:(place+1)*verdictLength], l.q.number, p.id, verdictDrop)
	return 1
}

func (l *loop) takeAnswer(message []byte) {
	a, err := parseAnswer(message)
	switch {
	case err != nil:
		l.malformed.Add(1)
	case a.sequence == 0: // the kernel no longer has the packet of a verdict
		l.flushed.Add(1)
	default:
		select {
		case l.q.answers <- a:
		default: // no client waits for it any more
		}
	}
}

// wait returns when a packet has arrived, when one is due, or when a goroutine wakes it.
func (l *loop) wait() error {
	next := int64(0)
	if l.waiting.len() > 0 {
		next = l.timerBase + l.waiting.first().due
	}
	// This uses a timer and no timeout of poll: such a timeout may be late by a thousandth of
	// itself.
	if next != l.armedFor || l.polled[1].Revents != 0 {
		if errno := rawSetTimer(l.timer, next); errno != 0 {
			return fmt.Errorf("set the timer: %w", errno)
		}
		l.armedFor = next
	}
	if errno := poll(l.polled[:]); errno != 0 && errno != unix.EINTR {
		return fmt.Errorf("wait for packets: %w", errno)
	}
	if l.polled[2].Revents != 0 {
		var count [8]byte
		rawRead(l.wake, count[:])
	}
	return nil
}

func (l *loop) answerQuestions() {
	for len(l.questions) > 0 {
		reply := <-l.questions
		reply <- lateness{
			p99:  time.Duration(l.lateUS.ValueAtQuantile(99)) * time.Microsecond,
			most: time.Duration(l.lateUS.Max()) * time.Microsecond,
		}
	}
}

// The methods below are for other threads.

// lateness asks the thread for its histogram. There is no lock: a reader that is descheduled while
// it holds one would block the thread.
func (l *loop) lateness() (lateness, error) {
	reply := make(chan lateness, 1)
	late := time.After(answerWithin)
	select {
	case l.questions <- reply:
	case <-l.done:
		return lateness{}, l.ended()
	case <-late:
		return lateness{}, fmt.Errorf("the thread that delays packets did not answer within %v", answerWithin)
	}
	l.signal()
	select {
	case a := <-reply:
		return a, nil
	case <-l.done:
		return lateness{}, l.ended()
	case <-late:
		return lateness{}, fmt.Errorf("the thread that delays packets did not answer within %v", answerWithin)
	}
}

// alive returns why the loop has ended, or nil.
func (l *loop) alive() error {
	select {
	case <-l.done:
		return l.ended()
	default:
		return nil
	}
}

func (l *loop) ended() error {
	return fmt.Errorf("the thread that delays packets has ended: %w", l.err)
}

func (l *loop) signal() { _ = rawWrite(l.wake, one[:]) }
