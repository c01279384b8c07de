package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/protocol"
)

const (
	gateTimeout        = 2 * time.Second
	gatePause          = 100 * time.Millisecond
	commandPause       = time.Second
	commandGateTimeout = 30 * time.Second
	watchPause         = 20 * time.Millisecond
)

// doGates waits for the gates, one after another: they hold for good once they have held.
func (a *Agent) doGates(ctx context.Context) {
	if a.await(ctx, func() bool { return a.seen.processes }) != nil {
		return
	}
	for i, gate := range a.directive().Gates {
		what := describe(gate)
		a.note(func() { a.seen.waitingFor = what })
		if err := a.awaitGate(ctx, gate, i); err != nil {
			a.failUnlessDone(ctx, fmt.Errorf("wait for %s: %w", what, err))
			return
		}
	}
	a.note(func() { a.seen.gatesHold, a.seen.waitingFor = true, "" })
}

func describe(gate protocol.Gate) string {
	switch {
	case gate.Log != "":
		return fmt.Sprintf("a line of %s that matches %q", gate.Container, gate.Log)
	case gate.Address != "":
		return "a connection to " + gate.Address
	case gate.URL != "":
		return "an answer from " + gate.URL
	default:
		return fmt.Sprintf("the command %q to exit with 0", gate.Command)
	}
}

// readiness says whether the pod is ready, or else what is missing. The caller holds a.mu.
func (a *Agent) readiness(d protocol.Directive) (ready bool, waitingFor string) {
	if len(a.unresolved()) > 0 {
		return false, "names to resolve"
	}
	for i, c := range d.Containers {
		if i == 0 && heldUntilRelease(d) && d.Run == nil {
			continue
		}
		if process := a.process(c.Name); process.Process == launcher.Exited {
			return false, fmt.Sprintf("container %s, which exited with %d", c.Name, process.ExitCode)
		} else if process.Process != launcher.Running {
			return false, fmt.Sprintf("container %s, which is %s", c.Name, process.Process)
		}
	}
	if !a.seen.gatesHold {
		return false, a.seen.waitingFor
	}
	return true, ""
}

// awaitGate returns when the gate holds.
func (a *Agent) awaitGate(ctx context.Context, gate protocol.Gate, index int) error {
	if gate.Log != "" {
		return a.awaitLines(ctx, gate)
	}
	wait := gatePause
	if gate.Command != nil {
		wait = commandPause
	}
	for attempt := 0; ; attempt++ {
		if a.holds(ctx, gate, fmt.Sprintf("gate-%d/%s/%d", index, a.seen.incarnation, attempt)) {
			return nil
		}
		if !pause(ctx, wait) {
			return ctx.Err()
		}
	}
}

func (a *Agent) holds(ctx context.Context, gate protocol.Gate, id string) bool {
	switch {
	case gate.Address != "":
		dialer := net.Dialer{Timeout: gateTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", gate.Address)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	case gate.URL != "":
		return answers(ctx, gate.URL)
	default:
		result, err := a.runIn(ctx, gate.Container, protocol.Command{ID: id, Command: gate.Command, Timeout: commandGateTimeout})
		return err == nil && result.Error == "" && result.ExitCode == 0
	}
}

// answers reports whether a GET is answered with 200 to 399; a redirection counts as such, wherever
// it points to.
func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode >= 200 && response.StatusCode < 400
}

// awaitLines returns when as many of the lines that the container has printed since its first start
// match as the gate asks for.
func (a *Agent) awaitLines(ctx context.Context, gate protocol.Gate) error {
	pattern, err := regexp.Compile(gate.Log)
	if err != nil {
		return err
	}
	followers := follow(gate.Container, gate.Stream, a.outputFile)
	defer func() {
		for _, f := range followers {
			f.close()
		}
	}()
	for missing := max(int(gate.Lines), 1); ; {
		for _, f := range followers {
			found, err := f.find(pattern, missing)
			if missing -= found; err != nil || missing == 0 {
				return err
			}
		}
		if !pause(ctx, watchPause) {
			return ctx.Err()
		}
	}
}

// outputFile is where a launcher keeps a stream, "Stdout" or "Stderr".
func (a *Agent) outputFile(container, stream string) string {
	if stream == "Stderr" {
		return filepath.Join(a.config.OutDir, container+".stderr")
	}
	return filepath.Join(a.config.OutDir, container+".stdout")
}

// inRunDir moves one of the protocol's files to where this agent's RunDir is.
func (a *Agent) inRunDir(file string) string {
	return filepath.Join(a.config.RunDir, filepath.Base(file))
}

// follower reads a file that grows, line by line.
type follower struct {
	path    string
	file    *os.File
	partial []byte
	chunk   []byte
}

// maxLine bounds a line without an end; of a longer one only the tail is searched.
const maxLine = 1 << 20

// follow the kept output of a container: "Stdout", "Stderr", or both for "Any" or nothing.
func follow(container, stream string, file func(container, stream string) string) []*follower {
	var followers []*follower
	for _, one := range []string{"Stdout", "Stderr"} {
		if stream == one || stream == "" || stream == "Any" {
			followers = append(followers, &follower{path: file(container, one)})
		}
	}
	return followers
}

// find counts the whole lines that are new and match, and stops when they are enough.
func (f *follower) find(pattern *regexp.Regexp, enough int) (found int, err error) {
	err = f.lines(func(line []byte) bool {
		if pattern.Match(bytes.TrimSuffix(line, []byte("\r"))) {
			found++
		}
		return found == enough
	})
	return found, err
}

// lines calls take for each whole line that is new, until that returns true.
func (f *follower) lines(take func(line []byte) (enough bool)) error {
	if f.file == nil {
		// Who has put a link or a pipe in place of the file is not followed, nor waited for.
		file, err := os.OpenFile(f.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		f.file = file
	}
	if f.chunk == nil {
		f.chunk = make([]byte, 64<<10)
	}
	for {
		n, err := f.file.Read(f.chunk)
		f.partial = append(f.partial, f.chunk[:n]...)
		for {
			line, rest, whole := bytes.Cut(f.partial, []byte("\n"))
			if !whole {
				break
			}
			f.partial = rest
			if take(line) {
				return nil
			}
		}
		if extra := len(f.partial) - maxLine; extra > 0 {
			f.partial = f.partial[extra:]
		}
		if err == io.EOF {
			f.partial = bytes.Clone(f.partial) // let go of the lines before
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (f *follower) close() {
	if f.file != nil {
		f.file.Close()
	}
}
