package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// job is one `go test -json`.
type job struct {
	dir          string
	env, command []string
}

// item is what a job said, or that it has ended: an event, or a line that is none. An event knows when it came, and what the machine did until then: it may be counted later.
type item struct {
	event     event
	line      string
	complaint bool // the line was on stderr
	end       *end
}

// end is how a job ended. Its exit status adds nothing to its events, except when it ends without any.
type end struct {
	name   string
	err    error
	status int
	last   string // line on its stderr
}

// queue keeps items, in order, until somebody wants them. Nobody who says something waits for that.
type queue struct {
	mu     sync.Mutex
	more   sync.Cond // with mu
	items  []item
	closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.more.L = &q.mu
	return q
}

func (q *queue) say(i item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, i)
	q.more.Signal()
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Signal()
}

// next waits for an item; false when there will be none. One asks.
func (q *queue) next() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 {
		if q.closed {
			return item{}, false
		}
		q.more.Wait()
	}
	i := q.items[0]
	q.items[0] = item{} // long outputs need not be kept any more
	q.items = q.items[1:]
	return i, true
}

// unheard is how long a job that was told to end may leave others behind that keep its outputs.
const unheard = 10 * time.Second

// runJob runs a job and says what comes of it. The processes of the tests get the same fate as go itself when time is up: they share its group.
func runJob(ctx context.Context, j job, say func(item)) end {
	// Go ends with this program, however that ends; it would be the death of this thread otherwise.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, j.command[0], j.command[1:]...)
	var complaints lastLine
	cmd.Dir, cmd.Env = j.dir, append(os.Environ(), j.env...)
	cmd.Stderr = io.MultiWriter(&complaints, writer(func(p []byte) { say(item{line: string(p), complaint: true}) }))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = unheard
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	e := end{name: j.command[0] + " in " + j.dir, status: -1}
	if err == nil {
		stop := context.AfterFunc(ctx, func() { time.AfterFunc(unheard, func() { _ = out.Close() }) })
		read(out, say)
		stop()
		err = cmd.Wait()
		e.status = cmd.ProcessState.ExitCode()
	}
	e.err, e.last = err, string(complaints)
	say(item{end: &e})
	return e
}

// read says the lines of r: `go test -json` and, should go print something else, what is no event. Nothing may get lost.
func read(r io.Reader, say func(item)) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		i := item{event: event{at: time.Now()}}
		if json.Unmarshal(line, &i.event) != nil {
			i.line = string(line)
		} else if i.event.Action == "run" || i.event.Action == "fail" {
			i.event.machine = readCPUTimes()
		}
		if len(line) > 0 {
			say(i)
		}
		if err != nil {
			return
		}
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// lastLine keeps the last line that was written to it.
type lastLine string

func (l *lastLine) Write(p []byte) (int, error) {
	lines := strings.FieldsFunc(string(p), func(r rune) bool { return r == '\n' })
	if len(lines) > 0 {
		*l = lastLine(lines[len(lines)-1])
	}
	return len(p), nil
}
