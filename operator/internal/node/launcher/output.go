package launcher

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// keeper keeps one stream of the process in a file, byte for byte, up to a limit. When the file or
// the disk is full, the file ends with a whole line. The keeper only counts later output, even if
// the disk has room again. A reader would take half a line, or one joined with a later one, as a
// wrong number.
type keeper struct {
	mu      sync.Mutex
	file    *os.File
	limit   int64
	size    int64 // of the file
	lineEnd int64 // size up to and including the last newline
	leftOut int64
	// arrivals has the instant of each piece; nil: the agent does not ask for it.
	arrivals *os.File
}

// keepArrivals starts to keep the instants of all later output.
func (k *keeper) keepArrivals() error {
	f, err := os.OpenFile(k.file.Name()+ArrivalsSuffix, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.arrivals = f
	return nil
}

func openKeeper(path string, limit int64) (*keeper, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	// The image sets the umask. The agent is another user, and must be able to read the file.
	if err := f.Chmod(0o644); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return &keeper{file: f, limit: limit, size: info.Size(), lineEnd: info.Size()}, nil
}

// write keeps as much of p as fits and returns the first error of the disk.
func (k *keeper) write(p []byte) error {
	now := Monotonic()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leftOut > 0 {
		k.leftOut += int64(len(p))
		return nil
	}
	keep := p
	if k.size+int64(len(p)) > k.limit {
		room := p[:k.limit-k.size]
		keep = room[:bytes.LastIndexByte(room, '\n')+1]
	}
	n, err := k.file.Write(keep)
	if i := bytes.LastIndexByte(keep[:n], '\n'); i >= 0 {
		k.lineEnd = k.size + int64(i) + 1
	}
	k.size += int64(n)
	if n < len(p) {
		k.leftOut = int64(len(p)-n) + k.size - k.lineEnd
		k.size = k.lineEnd
		if terr := k.file.Truncate(k.lineEnd); err == nil {
			err = terr
		}
	}
	if k.arrivals != nil && err == nil {
		var record [ArrivalBytes]byte
		binary.LittleEndian.PutUint64(record[:8], uint64(k.size))
		binary.LittleEndian.PutUint64(record[8:], uint64(now))
		_, err = k.arrivals.Write(record[:])
	}
	return err
}

func (k *keeper) lost() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.leftOut
}

// mirror copies output to the launcher's own stdout or stderr, for "kubectl logs". The container
// runtime reads these. A slow runtime must not slow down the process, so the mirror drops output
// that it cannot hold.
type mirror struct {
	mu      sync.Mutex
	filled  *sync.Cond
	pending []byte
	lost    int64
	closed  bool
	done    chan struct{}
}

const mirrorLimit = 1 << 20

func newMirror(w io.Writer) *mirror {
	m := &mirror{done: make(chan struct{})}
	m.filled = sync.NewCond(&m.mu)
	go m.run(w)
	return m
}

func (m *mirror) write(p []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pending)+len(p) > mirrorLimit {
		m.lost += int64(len(p))
		return
	}
	m.pending = append(m.pending, p...)
	m.filled.Signal()
}

// close writes out what the mirror holds, and ends it.
func (m *mirror) close() {
	m.mu.Lock()
	m.closed = true
	m.filled.Signal()
	m.mu.Unlock()
}

func (m *mirror) run(w io.Writer) {
	defer close(m.done)
	for {
		m.mu.Lock()
		for len(m.pending) == 0 && m.lost == 0 && !m.closed {
			m.filled.Wait()
		}
		chunk, lost, closed := m.pending, m.lost, m.closed
		m.pending, m.lost = nil, 0
		m.mu.Unlock()
		// The log itself is broken, so no error can be written there. The files are complete
		// without it.
		_, _ = w.Write(chunk)
		if lost > 0 {
			fmt.Fprintf(w, "\nlauncher: %d bytes left out of this log, whose reader is slow; the kept files have them\n", lost)
		}
		if closed && len(chunk) == 0 && lost == 0 {
			return
		}
	}
}

// tail holds the last tailLimit bytes written to it.
type tail struct {
	mu   sync.Mutex
	held []byte
}

func (t *tail) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = append(t.held, p...)
	if extra := len(t.held) - tailLimit; extra > 0 {
		t.held = append(t.held[:0], t.held[extra:]...)
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(t.held, []byte("?")))
}

// output handles the output of the container's process. It keeps it for the agent, copies it for
// kubectl logs, and holds its last bytes.
type output struct {
	stdout, stderr *keeper
	mirrors        [2]*mirror
	tail           tail
}

// open begins to keep the output.
func (o *output) open(options Options) (err error) {
	if o.stdout, err = openKeeper(filepath.Join(options.OutDir, options.Name+".stdout"), options.OutputLimit); err != nil {
		return fmt.Errorf("keep stdout: %w", err)
	}
	if o.stderr, err = openKeeper(filepath.Join(options.OutDir, options.Name+".stderr"), options.OutputLimit); err != nil {
		return fmt.Errorf("keep stderr: %w", err)
	}
	o.mirrors = [2]*mirror{newMirror(options.Stdout), newMirror(options.Stderr)}
	return nil
}

// keep a piece of one stream.
func (o *output) keep(to *keeper, m *mirror, p []byte) {
	if err := to.write(p); err != nil {
		o.say(fmt.Sprintf("keep output: %v", err))
	}
	m.write(p)
	o.tail.write(p)
}

// say prints a line of the launcher itself beside the output.
func (o *output) say(line string) { o.mirrors[1].write([]byte("launcher: " + line + "\n")) }

// close writes out the copies, for at most that long.
func (o *output) close(most time.Duration) {
	for _, m := range o.mirrors {
		m.close()
	}
	late := time.After(most)
	for _, m := range o.mirrors {
		select {
		case <-m.done:
		case <-late:
		}
	}
}
