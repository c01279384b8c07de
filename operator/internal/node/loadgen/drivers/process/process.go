// Package process is a driver that starts a program and speaks the driver protocol with it: lines
// of JSON on the program's standard input and output. The protocol is in
// docs/reference/driver-protocol.md, for the authors of such programs.
//
// All clients share the two pipes. They put requests into a buffer, and one goroutine writes all
// waiting requests at once. Another goroutine reads the answers and wakes the clients. The id of a
// request is a multiple of the number of clients plus the client's index, so that an answer finds
// its client without a table.
package process

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"assay.dev/assay/operator/internal/node/loadgen"
)

// Options of a process driver.
type Options struct {
	// Command and its arguments.
	Command []string
	// Stderr gets the program's standard error.
	Stderr io.Writer
	// FirstClient and Clients, Seed and Timeout are passed on to the program.
	FirstClient int32
	Clients     int32
	Seed        int64
	Timeout     time.Duration
	// ReadyTimeout is how long the program may take to be ready. Default: 60s.
	ReadyTimeout time.Duration
	// ExitTimeout is how long it may take to exit after bye before it is killed. Default: 5s.
	ExitTimeout time.Duration
	Log         *slog.Logger
}

// Driver is a program that carries out requests.
type Driver struct {
	opts     Options
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	out      *outbox
	sessions []session

	ready  chan struct{} // closed when the program is ready
	dead   chan struct{} // closed when the program cannot be used any more; err says why
	once   sync.Once
	err    error
	stats  chan map[string]int64
	exited chan error // how the process ended

	outputEnded chan struct{} // closed when the program's output is not read any more; outputErr says why
	outputErr   error
}

// Start starts the program and waits until it is ready.
func Start(opts Options) (*Driver, error) {
	if opts.ReadyTimeout == 0 {
		opts.ReadyTimeout = time.Minute
	}
	if opts.ExitTimeout == 0 {
		opts.ExitTimeout = 5 * time.Second
	}
	d := &Driver{opts: opts, sessions: make([]session, opts.Clients),
		ready: make(chan struct{}), dead: make(chan struct{}), outputEnded: make(chan struct{}),
		stats: make(chan map[string]int64, 1), exited: make(chan error, 1)}
	for i := range d.sessions {
		d.sessions[i] = session{driver: d, client: opts.FirstClient + int32(i), next: int64(i) + int64(opts.Clients), timeout: opts.Timeout,
			result: make(chan loadgen.Result, 1)}
	}
	stdout, err := d.start()
	if err != nil {
		return nil, err
	}
	d.out = newOutbox(d.stdin)
	go func() {
		if err := d.out.run(); err != nil {
			// The program closed its input or is dying. If it is dying, its exit explains more.
			time.Sleep(100 * time.Millisecond)
			d.fail(fmt.Errorf("write to the driver: %w", err))
		}
	}()
	go d.read(stdout)
	if err := d.hello(); err != nil {
		d.kill()
		return nil, err
	}
	return d, nil
}

// start starts the process in a process group of its own. So the driver can end it with all its
// children, and a signal of the terminal does not end it.
func (d *Driver) start() (io.ReadCloser, error) {
	d.cmd = exec.Command(d.opts.Command[0], d.opts.Command[1:]...)
	d.cmd.Stderr = d.opts.Stderr
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	d.cmd.WaitDelay = time.Second // a grandchild may keep stderr open
	stdin, err := d.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe to the driver: %w", err)
	}
	d.stdin = stdin
	stdout, w, err := os.Pipe() // not StdoutPipe: Wait would close it before all output is read
	if err != nil {
		return nil, fmt.Errorf("make a pipe from the driver: %w", err)
	}
	defer w.Close()
	d.cmd.Stdout = w
	if err := d.cmd.Start(); err != nil {
		_ = stdout.Close()
		return nil, fmt.Errorf("start the driver: %w", err)
	}
	go func() { d.exited <- d.cmd.Wait() }()
	return stdout, nil
}

func (d *Driver) hello() error {
	line, err := json.Marshal(hello{Type: "hello", Version: Version, FirstClient: d.opts.FirstClient, Clients: d.opts.Clients,
		Seed: d.opts.Seed, RequestTimeoutMicros: d.opts.Timeout.Microseconds()})
	if err != nil {
		return fmt.Errorf("encode the greeting: %w", err)
	}
	d.out.send(func(b []byte) []byte { return append(append(b, line...), '\n') })
	deadline := time.NewTimer(d.opts.ReadyTimeout)
	defer deadline.Stop()
	select {
	case <-d.ready:
		return nil
	case <-d.dead:
		return d.err
	case <-deadline.C:
		return fmt.Errorf("the driver %s was not ready within %v; it must answer hello with a line of type ready", d.opts.Command[0], d.opts.ReadyTimeout)
	}
}

// fail notes why the driver cannot be used any more. Only the first reason is kept.
func (d *Driver) fail(err error) {
	d.once.Do(func() {
		d.err = err
		close(d.dead)
	})
}

// read handles the program's lines until its output ends.
func (d *Driver) read(stdout io.ReadCloser) {
	d.outputErr = d.readLines(stdout)
	_ = stdout.Close()
	close(d.outputEnded)
	d.fail(d.outputErr)
}

func (d *Driver) readLines(stdout io.Reader) error {
	in := bufio.NewReaderSize(stdout, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("the driver printed a line of more than %d bytes", maxLine)
		case err != nil:
			return d.death()
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := d.handle(line); err != nil {
			return err
		}
	}
}

// death says how the program ended, after its output has ended.
func (d *Driver) death() error {
	select {
	case err := <-d.exited:
		d.exited <- err
		if err == nil {
			return errors.New("the driver exited with code 0 before the end of the run")
		}
		return fmt.Errorf("the driver ended before the end of the run: %w", err)
	case <-time.After(time.Second):
		return errors.New("the driver closed its standard output before the end of the run")
	}
}

func (d *Driver) handle(line []byte) error {
	m, err := parseLine(line)
	if err != nil {
		return err
	}
	switch m.Type {
	case typeEnd:
		return d.ended(m)
	case typeReady:
		select {
		case <-d.ready:
			return errors.New("the driver said ready twice")
		default:
			close(d.ready)
		}
	case typeError:
		return fmt.Errorf("the driver reported an error: %s", m.Message)
	case typeStats:
		select {
		case d.stats <- m.Counters:
		default:
			return errors.New("the driver sent its stats twice")
		}
	default:
		return fmt.Errorf("the driver sent a line of type %q; it must be ready, error, end or stats", m.Type)
	}
	return nil
}

// ended wakes the client whose request has ended. It drops an answer to a request that the client
// has given up.
func (d *Driver) ended(m message) error {
	n := int64(len(d.sessions))
	if m.ID < n {
		return fmt.Errorf("the driver ended request %d, which does not exist", m.ID)
	}
	r, err := m.result()
	if err != nil {
		return err
	}
	s := &d.sessions[m.ID%n]
	if s.waiting.CompareAndSwap(m.ID, 0) {
		s.result <- r
	}
	return nil
}

// Session returns a client's session.
func (d *Driver) Session(client int32) (loadgen.Session, error) {
	return &d.sessions[client-d.opts.FirstClient], nil
}

// Err says why the program cannot be used any more.
func (d *Driver) Err() error {
	select {
	case <-d.dead:
		return d.err
	default:
		return nil
	}
}

// Close sends bye, reads the program's counters and waits for its exit. It kills a program that
// does not exit. It fails if the program died before, or ends without its counters.
func (d *Driver) Close() (map[string]int64, error) {
	died := d.Err()
	d.fail(errOver) // wakes the clients that still wait
	defer d.kill()
	if died != nil {
		return nil, died
	}
	d.out.send(func(b []byte) []byte { return append(b, `{"type":"bye"}`+"\n"...) })
	d.out.close()
	deadline := time.NewTimer(d.opts.ExitTimeout)
	defer deadline.Stop()
	select {
	case <-d.outputEnded:
	case <-deadline.C:
		d.opts.Log.Warn("The driver did not exit after bye and is killed", "after", d.opts.ExitTimeout)
	}
	select {
	case counters := <-d.stats:
		return counters, nil
	default:
	}
	select {
	case <-d.outputEnded:
		return nil, fmt.Errorf("%w: %w", errNoStats, d.outputErr)
	default:
		return nil, errNoStats
	}
}

// kill ends the process and all its children.
func (d *Driver) kill() {
	_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL) // fails when all have ended
	d.out.close()
	err := <-d.exited
	d.exited <- err
}
