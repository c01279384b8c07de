package nfqueue

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
	"golang.org/x/sys/unix"
)

// The thread that delays packets lives in a process of its own, from the same binary. Open starts
// it, and it ends with Close or with its parent. In the agent's process the garbage collector would
// stop it with all other goroutines, and it would wait behind them for a processor of the Go
// runtime. Beside two goroutines that make garbage, that delayed one of a hundred packets by 37 ms,
// at real-time priority.

// processName is the first argument of that process, and how `ps` shows it.
const processName = "assay-nfqueue"

// File descriptors that the process inherits.
const (
	controlFile = 3 + iota // a stream socket to the parent
	netlinkFile
)

// memoryLimit of the process: garbage is collected only beyond it. Delaying packets makes no
// garbage. A change of the table or a report makes some kilobytes, or 10 MB with the largest table.
// The heap, with room for maxWaiting, takes 24 MB.
const memoryLimit = 96 << 20

// verb is a request to the process.
type verb string

const (
	doBind   verb = "bind the queue"
	doUnbind verb = "unbind the queue"
	doLinks  verb = "change the links"
	doReport verb = "report"
)

type request struct {
	Do    verb
	Links map[netip.Addr]shaping.Link // of doLinks, normalized
}

// report is the answer to every request.
type report struct {
	Error string
	Errno unix.Errno // of the kernel, or 0

	Port                                 uint32 // of the netlink socket
	Scheduling, WhyNoPriority            string
	Table                                shaping.Table // in force; only for doReport, like the fields after it
	Counters                             map[netip.Addr]netem.Counters
	LateP99, Late                        time.Duration
	Flushed, Unknown, Crowded, Malformed uint64
}

// When the binary was started as this process, none of its other code runs. This is an init, and
// not a function for main to call. So a binary with this package cannot forget the call and become
// a second agent.
func init() {
	if os.Args[0] != processName { //nolint:forbidigo // see above
		return
	}
	code := 0
	if err := serve(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", processName, err)
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // see above
}

// serve runs in the process: it carries out the requests of its parent until the parent is gone.
func serve() error {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(memoryLimit)
	number, err := strconv.ParseUint(os.Args[1], 10, 16) //nolint:forbidigo // see init
	if err != nil {
		return err
	}
	if _, err := stampArrivals(); err != nil {
		return err
	}
	q, err := newQueue(netlinkFile, uint16(number))
	if err != nil {
		return err
	}
	now := time.Now()
	l, err := newLoop(q, uint64(now.UnixNano()), now)
	if err != nil {
		return err
	}
	control := os.NewFile(controlFile, "control")
	in, out := gob.NewDecoder(control), gob.NewEncoder(control)
	scheduled := <-l.scheduled
	for {
		var r request
		if err := in.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		answer := report{Port: q.port, Scheduling: scheduled.has, WhyNoPriority: scheduled.why}
		if err := l.do(r, &answer); err != nil {
			answer.Error = err.Error()
			errors.As(err, &answer.Errno)
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
}

// do carries out one request.
func (l *loop) do(r request, answer *report) error {
	if err := l.alive(); err != nil {
		return err
	}
	before := l.links.Load()
	switch r.Do {
	case doBind:
		return l.q.bind(!before.losses())
	case doUnbind:
		return l.q.unbind()
	case doLinks:
		after := before.next(r.Links)
		if before.losses() != after.losses() {
			if err := l.q.supers(!after.losses()); err != nil {
				return err
			}
		}
		l.links.Store(after)
		return nil
	case doReport:
		late, err := l.lateness()
		answer.LateP99, answer.Late = late.p99, late.most
		answer.Table, answer.Counters = before.table(), before.counters()
		answer.Flushed, answer.Unknown, answer.Crowded, answer.Malformed = l.flushed.Load(), l.unknown.Load(), l.crowded.Load(), l.malformed.Load()
		return err
	default:
		return fmt.Errorf("unknown request %q", r.Do)
	}
}

// process is the side of the parent.
type process struct {
	command *exec.Cmd
	control *net.UnixConn
	in      *gob.Decoder
	out     *gob.Encoder
	gone    chan struct{}
	err     error // how it ended; valid after gone
}

// start starts the process, with a netlink socket of the calling thread's network namespace.
func start(number uint16) (*process, error) {
	netlink, err := openSocket()
	if err != nil {
		return nil, err
	}
	defer netlink.Close() // the socket must end with the process: then the kernel drops the packets in the queue
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("create a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "control"), os.NewFile(uintptr(ends[1]), "control")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, fmt.Errorf("use a socket pair: %w", err)
	}
	control, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a socket pair became a %T", conn), conn.Close())
	}
	p := &process{control: control, in: gob.NewDecoder(control), out: gob.NewEncoder(control), gone: make(chan struct{})}
	p.command = exec.Command("/proc/self/exe")
	p.command.Args = []string{processName, strconv.Itoa(int(number))}
	p.command.Env = []string{}
	p.command.Stderr = os.Stderr
	p.command.ExtraFiles = []*os.File{controlFile - 3: theirs, netlinkFile - 3: netlink}
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the process that delays packets: %w", err), control.Close())
	}
	go func() {
		p.err = p.command.Wait()
		close(p.gone)
	}()
	return p, nil
}

// ask makes one request and waits for its answer.
func (p *process) ask(r request) (report, error) {
	if p.ended() {
		return report{}, fmt.Errorf("the process that delays packets has ended (%v): packets of peers are dropped", p.command.ProcessState)
	}
	var answer report
	// Twice the time: a request may wait first for the kernel and then for the thread.
	err := p.control.SetDeadline(time.Now().Add(2*answerWithin + time.Second))
	if err == nil {
		err = p.out.Encode(r)
	}
	if err == nil {
		err = p.in.Decode(&answer)
	}
	switch {
	case err != nil:
		// A late answer would count as the answer to the next request. Without its parent the
		// process ends, and packets of peers are dropped.
		return report{}, errors.Join(fmt.Errorf("ask the process that delays packets to %s: %w", r.Do, err), p.control.Close())
	case answer.Errno != 0:
		return answer, fmt.Errorf("%s: %w", r.Do, answer.Errno)
	case answer.Error != "":
		return answer, fmt.Errorf("%s: %s", r.Do, answer.Error)
	default:
		return answer, nil
	}
}

func (p *process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// stop ends the process, and returns after its end. It is no error if the process has ended before.
func (p *process) stop() error {
	ended := p.ended()
	err := p.control.Close()
	if errors.Is(err, net.ErrClosed) { // ask has closed it
		err = nil
	}
	if ended {
		return err
	}
	select {
	case <-p.gone:
		return errors.Join(err, p.err)
	case <-time.After(answerWithin):
	}
	err = errors.Join(err, errors.New("the process that delays packets did not end by itself"), p.command.Process.Kill())
	select {
	case <-p.gone:
		return err
	case <-time.After(answerWithin):
		return errors.Join(err, errors.New("and it did not end when it was killed"))
	}
}
