package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// followPoll is how often a file is checked for new lines.
	followPoll = 2 * time.Millisecond
	// renamePoll is how often it is checked whether a path leads to another file now.
	renamePoll = 100 * time.Millisecond
	// longestLine is how many bytes of a line are searched, and keptLine how many of them are kept.
	longestLine, keptLine = 64 << 10, 200
)

// marker finds the lines that are marks, and records them for the agent.
type marker struct {
	mu   sync.Mutex
	to   *os.File
	left int
	all  []markPattern
}

type markPattern struct {
	protocol.MachineMark
	pattern *regexp.Regexp
}

// newMarker opens the file of marks.
func newMarker(c *Config) (*marker, error) {
	m := &marker{left: protocol.MaxMarks}
	for _, mark := range c.Marks {
		pattern, err := regexp.Compile(mark.Pattern)
		if err != nil {
			return nil, fmt.Errorf("read the pattern of mark %s: %w", mark.Name, err)
		}
		m.all = append(m.all, markPattern{mark, pattern})
	}
	if len(m.all) == 0 {
		return m, nil
	}
	var err error
	if m.to, err = os.OpenFile(filepath.Join(c.RunDir, filepath.Base(protocol.MarksFile)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return nil, fmt.Errorf("open the file of marks: %w", err)
	}
	return m, nil
}

func (m *marker) close() {
	if m.to != nil {
		m.to.Close()
	}
}

// files that are searched for marks; "" is the script's output.
func (m *marker) files() []string {
	var files []string
	for _, p := range m.all {
		if !slices.Contains(files, p.File) {
			files = append(files, p.File)
		}
	}
	return files
}

// line checks whether a line is a mark. at is when it was read.
func (m *marker) line(file string, line []byte, at int64) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	for _, p := range m.all {
		if p.File != file {
			continue
		}
		match := p.pattern.FindSubmatch(line)
		if match == nil {
			continue
		}
		found := protocol.MarkLine{Name: p.Name, Line: string(bytes.ToValidUTF8(line[:min(len(line), keptLine)], []byte("?"))), MonotonicNanos: at}
		for i, name := range p.pattern.SubexpNames() {
			if name != "" {
				if found.Groups == nil {
					found.Groups = map[string]string{}
				}
				found.Groups[name] = string(bytes.ToValidUTF8(match[i], []byte("?")))
			}
		}
		m.write(found)
	}
}

func (m *marker) write(found protocol.MarkLine) {
	text, err := json.Marshal(found)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left--; m.left >= 0 {
		_, _ = m.to.Write(append(text, '\n')) // without the record the trial is invalid, and says that the mark is missing
	}
}

// splitter searches a stream for marks.
type splitter struct {
	marker  *marker
	file    string
	partial []byte
}

// take searches the text that has just been read.
func (s *splitter) take(text []byte) {
	at := monotonic()
	s.partial = append(s.partial, text...)
	for {
		line, rest, whole := bytes.Cut(s.partial, []byte("\n"))
		if !whole {
			break
		}
		s.marker.line(s.file, line, at)
		s.partial = rest
	}
	if len(s.partial) > longestLine {
		s.partial = s.partial[:0]
	}
	s.partial = bytes.Clone(s.partial) // the earlier lines need no memory any more
}

// pass copies the script's output, and searches it for marks. The copy ends when no process holds
// the stream open any more: daemons of the script may print until the machine is down.
func (m *marker) pass(to io.Writer) (stream *os.File, drained <-chan struct{}, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe for what the script prints: %w", err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer read.Close()
		lines := &splitter{marker: m}
		buffer := make([]byte, 32<<10)
		for {
			n, err := read.Read(buffer)
			lines.take(buffer[:n])
			_, _ = to.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	return write, over, nil
}

// streams are the outputs of a script.
type streams struct {
	stdout, stderr io.Writer
	// errors gets the messages of this program.
	errors io.Writer
	// started closes the descriptors that the script's process has now.
	started func()
}

// lastLines is how long reading the script's last output may take.
const lastLines = 200 * time.Millisecond

// ofScript returns the outputs of a script. drained waits until all that it printed has been
// searched.
func (m *marker) ofScript(stdout, stderr io.Writer) (out streams, drained func(), err error) {
	out = streams{stdout: stdout, stderr: stderr, errors: stderr, started: func() {}}
	if !slices.Contains(m.files(), "") {
		return out, func() {}, nil
	}
	first, firstOver, err := m.pass(stdout)
	if err != nil {
		return out, nil, err
	}
	second, secondOver, err := m.pass(stderr)
	if err != nil {
		first.Close()
		return out, nil, err
	}
	out.stdout, out.stderr = first, second
	out.started = func() { first.Close(); second.Close() }
	return out, func() {
		limit := time.After(lastLines)
		for _, over := range []<-chan struct{}{firstOver, secondOver} {
			select {
			case <-over:
			case <-limit:
				return // a daemon holds the stream open
			}
		}
	}, nil
}

// followAll searches all files for marks, until ctx is done.
func (m *marker) followAll(ctx context.Context) {
	for _, file := range m.files() {
		if file != "" {
			go m.follow(ctx, file)
		}
	}
}

// follow searches the lines that are added to a file from now on.
func (m *marker) follow(ctx context.Context, path string) {
	lines := &splitter{marker: m, file: path}
	file, offset := openRegular(path), int64(0)
	if file != nil {
		offset, _ = file.Seek(0, io.SeekEnd)
	}
	defer func() {
		if file != nil {
			file.Close()
		}
	}()
	buffer, looked := make([]byte, 32<<10), time.Now()
	for sleep(ctx, followPoll) {
		if file == nil {
			if file, offset = openRegular(path), 0; file == nil {
				continue
			}
		}
		n, err := file.Read(buffer)
		if n > 0 {
			lines.take(buffer[:n])
			offset += int64(n)
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return
		}
		info, err := file.Stat()
		if err == nil && info.Size() < offset { // the file was emptied
			offset, _ = file.Seek(0, io.SeekStart)
			lines.partial = nil
		}
		if time.Since(looked) < renamePoll {
			continue
		}
		looked = time.Now()
		if now, gone := os.Stat(path); gone != nil || err == nil && !os.SameFile(now, info) {
			file.Close()
			file, lines.partial = nil, nil
		}
	}
}

// openRegular opens a file of lines; nil: it does not exist. It does not wait for a pipe.
func openRegular(path string) *os.File {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil
	}
	return file
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}
