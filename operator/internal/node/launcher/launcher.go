package launcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// killTimeout bounds the wait for the end of killed processes.
	killTimeout = 10 * time.Second
	// endTimeout bounds that wait when the launcher itself must end: the end of process 1 ends the
	// rest.
	endTimeout = 50 * time.Millisecond
	// outputTimeout bounds the wait for output in the pipes after all processes have ended.
	outputTimeout = time.Second
	// lastWords is how long the launcher delays the report of an exit, for the output that explains
	// it.
	lastWords = 50 * time.Millisecond
)

// Options of a launcher.
type Options struct {
	// Name of the container; it names the socket and the kept files.
	Name string
	// RunDir for the socket <name>.sock, OutDir for <name>.stdout and <name>.stderr.
	RunDir, OutDir string
	// OutputLimit of each of the two files, in bytes.
	OutputLimit int64
	// NoControlGroup: the container has no control group of its own, and its use is added up over
	// its processes.
	NoControlGroup bool
	// Stdout and Stderr get a copy of what the process prints.
	Stdout, Stderr io.Writer
}

// Launcher is one container's first process.
type Launcher struct {
	options     Options
	processes   processes
	output      output
	connections connections
	rehearsal   rehearsal
	permit      *permit
	kills       plans[KillResult]
	pauses      pauses
	// holding: a kill has begun and no revive has followed. The mutex mu does not guard it: see
	// killAll.
	holding atomic.Bool
	// struckAt is the instant at which the kernel kills the processes; 0: no alarm is set.
	struckAt atomic.Int64
	// planned is done when a Stop cancels all future orders.
	planned context.Context
	callOff context.CancelFunc

	mu       sync.Mutex
	state    State
	spec     *Start
	main     int           // process ID while the process runs
	exited   chan struct{} // closed when main is reaped
	streams  int           // open streams of main
	flushed  chan struct{} // closed when streams is 0
	stopping bool
	revives  map[string]ReviveResult
	runs     map[string]*auxiliary
	byPID    map[int]*auxiliary
}

// Serve is a launcher's life. It returns when ctx is done: then the pod is being deleted, so the
// trial is over. It kills all processes at once, without asking them to end. The agent has stopped
// before any process with output left to print.
func Serve(ctx context.Context, options Options) error {
	l, err := newLauncher(ctx, options)
	if err != nil {
		return err
	}
	reaped := make(chan os.Signal, 1)
	signal.Notify(reaped, syscall.SIGCHLD)
	defer signal.Stop(reaped)
	listener, err := l.listen()
	if err != nil {
		return err
	}
	go l.connections.accept(listener, l.snapshot, l.handle)
	for {
		select {
		case <-reaped:
			l.reap()
		case <-ctx.Done():
			listener.Close()
			l.end()
			return nil
		}
	}
}

func newLauncher(ctx context.Context, options Options) (*Launcher, error) {
	l := &Launcher{
		options:   options,
		processes: processes{all: os.Getpid() == 1},
		state:     State{Incarnation: fmt.Sprintf("%d-%d", os.Getpid(), Monotonic()), Process: Waiting},
		revives:   map[string]ReviveResult{},
		pauses:    pauses{inForce: map[string]bool{}},
		runs:      map[string]*auxiliary{},
		byPID:     map[int]*auxiliary{},
	}
	l.planned, l.callOff = context.WithCancel(ctx)
	if !l.processes.all {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return nil, fmt.Errorf("become the reaper of orphans: %w", err)
		}
	}
	if err := l.output.open(options); err != nil {
		return nil, err
	}
	l.rehearsal.say = l.output.say
	var err error
	if l.permit, err = openPermit(filepath.Join(options.RunDir, options.Name+permitSuffix), os.O_CREATE); err != nil {
		return nil, fmt.Errorf("share memory with the agent: %w", err)
	}
	return l, nil
}

func (l *Launcher) listen() (net.Listener, error) {
	path := filepath.Join(l.options.RunDir, l.options.Name+".sock")
	// An earlier launcher in the same pod may have left its socket.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	// The agent is another user, without the right to override modes.
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, fmt.Errorf("open the socket to the agent: %w", err)
	}
	return listener, nil
}

// end kills all processes and writes out the copies of the output.
func (l *Launcher) end() {
	l.holding.Store(true)
	l.callOff()
	_, _, _ = l.killAll(0, endTimeout) // the end of process 1 ends the survivors
	l.output.close(endTimeout)
}

// start runs the process now or at an instant, once.
func (l *Launcher) start(spec Start) error {
	l.pauses.signalling.Lock()
	defer l.pauses.signalling.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spec != nil {
		return nil
	}
	if l.stopping {
		return errors.New("the container was stopped and starts nothing any more")
	}
	if spec.Arrivals {
		for _, k := range []*keeper{l.output.stdout, l.output.stderr} {
			if err := k.keepArrivals(); err != nil {
				return fmt.Errorf("keep when output arrives: %w", err)
			}
		}
	}
	l.spec = &spec
	l.state.Command = spec.Command
	if spec.AtMonotonicNanos <= Monotonic() {
		l.launch()
		return nil
	}
	go func() {
		if SleepUntil(l.planned, spec.AtMonotonicNanos) != nil {
			return
		}
		l.pauses.signalling.Lock()
		defer l.pauses.signalling.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.stopping && !l.holding.Load() {
			l.launch()
		}
	}()
	return nil
}

// launch starts the process of l.spec, with some more variables. The caller first locks the mutex
// of pauses, and then l.mu. A command that cannot be started has "exited" with 127, as in a shell.
// The kept stderr and the tail have the reason.
func (l *Launcher) launch(variables ...string) {
	l.exited, l.flushed = make(chan struct{}), make(chan struct{})
	l.state.Starts++
	l.state.Process, l.state.StartedAt = Running, Monotonic()
	l.state.ExitCode, l.state.ExitedAt, l.state.Asked, l.state.OutputComplete = 0, 0, false, false
	if err := l.launchProcess(variables); err != nil {
		line := []byte(fmt.Sprintf("launcher: %v\n", err))
		l.output.keep(l.output.stderr, l.output.mirrors[1], line)
		l.state.Process, l.state.ExitedAt, l.state.ExitCode, l.state.OutputComplete = Exited, Monotonic(), 127, true
		close(l.exited)
		close(l.flushed)
	}
	l.connections.tell()
}

func (l *Launcher) launchProcess(variables []string) error {
	outRead, outWrite, err := pipe()
	if err != nil {
		return err
	}
	defer unix.Close(outWrite)
	errRead, errWrite, err := pipe()
	if err != nil {
		outRead.Close()
		return err
	}
	defer unix.Close(errWrite)
	var pid int
	err = bound(l.spec.Processors, func() (err error) {
		pid, err = spawn(l.spec.Command, environment(slices.Concat(l.spec.Env, variables)), l.spec.Dir, outWrite, errWrite)
		return err
	})
	if err != nil {
		outRead.Close()
		errRead.Close()
		return err
	}
	l.main, l.streams = pid, 2
	go l.copy(outRead, l.output.stdout, l.output.mirrors[0], l.flushed)
	go l.copy(errRead, l.output.stderr, l.output.mirrors[1], l.flushed)
	return nil
}

// copy moves one stream into its file until no process holds it open.
func (l *Launcher) copy(from *os.File, to *keeper, m *mirror, flushed chan struct{}) {
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			l.output.keep(to, m, buffer[:n])
		}
		if err != nil {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flushed != flushed {
		return // a stream of an earlier start
	}
	if l.streams--; l.streams == 0 {
		l.state.OutputComplete = true
		close(flushed)
		l.connections.tell()
	}
}

// ended notes the end of one process. The caller holds l.mu.
func (l *Launcher) ended(pid int, status syscall.WaitStatus) {
	code := exitCode(status)
	if run := l.byPID[pid]; run != nil {
		delete(l.byPID, pid)
		run.code = code
		close(run.ended)
		return
	}
	if pid != l.main || l.main == 0 {
		return // an orphan has ended
	}
	l.main = 0
	killed := l.holding.Load() || l.struck()
	if l.spec.Respawn && !killed && !l.stopping && status.Signaled() {
		close(l.exited)
		go l.respawn(l.exited)
		return
	}
	l.state.Process, l.state.ExitCode, l.state.ExitedAt = Exited, code, Monotonic()
	l.state.Asked = l.stopping || killed
	if killed {
		l.state.Process = Held
	}
	close(l.exited)
	if l.streams == 0 {
		l.connections.tell()
		return
	}
	// Its last output probably still is in the pipes; copy sets the signal when it has arrived. A
	// child that lives on may hold the pipes open.
	time.AfterFunc(lastWords, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.connections.tell()
	})
}

// respawn restarts the process after a signal has ended it. It does not if the process has been
// killed or stopped since.
func (l *Launcher) respawn(exited chan struct{}) {
	l.pauses.signalling.Lock()
	defer l.pauses.signalling.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.exited == exited && l.state.Process == Running && !l.stopping && !l.holding.Load() {
		l.launch(RespawnedVariable + "=1")
	}
}

// struck reports whether the kernel has killed the processes before a thread of the launcher
// noticed it.
func (l *Launcher) struck() bool {
	at := l.struckAt.Load()
	return at != 0 && Monotonic() >= at-int64(rehearsalEarly)
}

// snapshot is the state, with the values that change all the time.
func (l *Launcher) snapshot() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	state := l.state
	state.Paused = len(l.pauses.inForce) > 0
	state.LeftOut = l.output.stdout.lost() + l.output.stderr.lost()
	state.Tail = l.output.tail.String()
	return state
}
