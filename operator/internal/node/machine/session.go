package machine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// lastOutput is how long the server waits for the output of a terminal after its process has ended:
// other processes may hold the terminal open for ever.
const lastOutput = 100 * time.Millisecond

// session is one channel, in which a command, a shell or sftp runs.
type session struct {
	connection *connection
	channel    ssh.Channel
	env        []string
	terminal   *terminal     // nil: the client asked for none
	left       chan struct{} // closed when the client has closed the channel, or is gone

	mu      sync.Mutex
	process *os.Process // while it runs
	pending []syscall.Signal
	screen  *os.File // of the terminal, while it is open
}

// terminal that a client asks for, as in RFC 4254, 6.2.
type terminal struct {
	Term          string
	Columns, Rows uint32
	Width, Height uint32
	Modes         string
}

func newSession(c *connection, channel ssh.Channel) *session {
	return &session{connection: c, channel: channel, left: make(chan struct{})}
}

// serve answers the requests of the channel. Only the first request that starts a process counts.
func (s *session) serve(requests <-chan *ssh.Request) {
	var running sync.WaitGroup
	defer running.Wait()
	defer close(s.left)
	started := false
	for r := range requests {
		ok := false
		switch r.Type {
		case "env":
			var v struct{ Name, Value string }
			if ok = ssh.Unmarshal(r.Payload, &v) == nil && v.Name != "" && !strings.ContainsAny(v.Name, "=\x00"); ok {
				s.env = append(s.env, v.Name+"="+v.Value)
			}
		case "pty-req":
			var t terminal
			if ok = ssh.Unmarshal(r.Payload, &t) == nil; ok {
				s.terminal = &t
			}
		case "window-change":
			ok = s.resize(r.Payload)
		case "signal":
			ok = s.signal(r.Payload)
		case "exec", "shell", "subsystem":
			var what struct{ Command string }
			if started || (r.Type != "shell" && ssh.Unmarshal(r.Payload, &what) != nil) || (r.Type == "subsystem" && what.Command != "sftp") {
				break
			}
			started, ok = true, true
			running.Go(func() { s.run(r.Type, what.Command) })
		}
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
	}
}

// run runs the session.
func (s *session) run(kind, command string) {
	defer s.channel.Close()
	record := s.connection.server.options.Recorder.begin(kind, command, s.connection.conn.RemoteAddr())
	var code int
	var err error
	switch {
	case kind == "subsystem":
		code, err = s.sftp()
	case s.terminal != nil:
		code, err = s.interactive(command)
	default:
		code, err = s.plain(command)
	}
	if err != nil {
		fmt.Fprintf(s.channel.Stderr(), "assay: %v\n", err)
		s.exit(code, 0)
	}
	record.end(code)
}

// sftp serves files in this process.
func (s *session) sftp() (int, error) {
	server, err := sftp.NewServer(s.channel, sftp.WithServerWorkingDirectory(s.connection.server.options.Home))
	if err != nil {
		return 1, err
	}
	defer server.Close()
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return 1, nil // the client is gone, and no reader is left
	}
	s.exit(0, 0)
	return 0, nil
}

// command is the shell with its command. Without a command it is a login shell, as with sshd.
func (s *session) command(text string) *exec.Cmd {
	o := s.connection.server.options
	c := &exec.Cmd{Path: o.Shell, Dir: o.Home, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if text == "" {
		c.Args = []string{"-" + filepath.Base(o.Shell)}
	} else {
		c.Args = []string{filepath.Base(o.Shell), "-c", text}
	}
	remote, local := s.connection.conn.RemoteAddr().String(), s.connection.conn.LocalAddr().String()
	from := strings.NewReplacer("[", "", "]:", " ", "]", "").Replace(remote)
	to := strings.NewReplacer("[", "", "]:", " ", "]", "").Replace(local)
	if !strings.Contains(remote, "[") {
		from, to = strings.Replace(remote, ":", " ", 1), strings.Replace(local, ":", " ", 1)
	}
	_, port, _ := strings.Cut(to, " ")
	c.Env = append(c.Env, o.Env...)
	c.Env = append(c.Env, s.env...)
	c.Env = append(c.Env, "HOME="+o.Home, "USER="+o.User, "LOGNAME="+o.User, "SHELL="+o.Shell,
		"SSH_CLIENT="+from+" "+port, "SSH_CONNECTION="+from+" "+to)
	return c
}

// plain runs a command with three pipes. The channel stays open as long as some process holds the
// output open, as with sshd: "ssh node-1 'sleep 9 &'" takes nine seconds, unless its output goes to
// a file.
func (s *session) plain(text string) (int, error) {
	c := s.command(text)
	var ends [6]*os.File // read and write ends, in turn, of the output, the errors and the input
	defer closeAll(ends[:])
	for i := 0; i < len(ends); i += 2 {
		read, write, err := os.Pipe()
		if err != nil {
			return 255, fmt.Errorf("make a pipe: %w", err)
		}
		ends[i], ends[i+1] = read, write
	}
	outputs, input, feed := [2]*os.File{ends[0], ends[2]}, ends[4], ends[5]
	c.Stdout, c.Stderr, c.Stdin = ends[1], ends[3], input
	if err := s.start(c); err != nil {
		return 255, err
	}
	closeAll([]*os.File{ends[1], ends[3], input})
	go func() {
		_, _ = io.Copy(feed, s.channel)
		feed.Close()
	}()
	var copies sync.WaitGroup
	for i, to := range []io.Writer{s.channel, s.channel.Stderr()} {
		copies.Go(func() {
			_, _ = io.Copy(to, outputs[i])
			// The client is gone: a process that writes now gets SIGPIPE, as with sshd.
			outputs[i].Close()
		})
	}
	code := s.wait(c)
	s.gone(&copies, outputs[:])
	_ = s.channel.CloseWrite()
	return code, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// gone waits until the output is over or the client is gone.
func (s *session) gone(copies *sync.WaitGroup, outputs []*os.File) {
	over := make(chan struct{})
	go func() {
		copies.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-s.left:
		for _, f := range outputs {
			f.Close()
		}
		<-over
	}
}

// interactive runs a command with a terminal. Processes that still run when it ends lose the
// terminal (SIGHUP), as with sshd.
func (s *session) interactive(text string) (int, error) {
	c := s.command(text)
	c.Env = append(c.Env, "TERM="+s.terminal.Term)
	screen, tty, err := openTerminal()
	if err != nil {
		return 255, fmt.Errorf("open a terminal: %w", err)
	}
	defer screen.Close()
	c.Env = append(c.Env, "SSH_TTY="+tty.Name())
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr.Setctty = true
	s.mu.Lock()
	s.screen = screen
	s.mu.Unlock()
	s.setSize(s.terminal.Columns, s.terminal.Rows, s.terminal.Width, s.terminal.Height)
	err = s.start(c)
	tty.Close()
	if err != nil {
		return 255, err
	}
	go func() { _, _ = io.Copy(screen, s.channel) }()
	go func() {
		<-s.left // when the client leaves, the terminal goes, too
		screen.Close()
	}()
	shown := make(chan struct{})
	go func() {
		_, _ = io.Copy(s.channel, screen)
		close(shown)
	}()
	code := s.wait(c)
	select {
	case <-shown:
	case <-time.After(lastOutput):
	}
	s.mu.Lock()
	s.screen = nil
	s.mu.Unlock()
	_ = s.channel.CloseWrite()
	return code, nil
}

// start starts a command. Then it sends the signals that came earlier.
func (s *session) start(c *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := c.Start(); err != nil {
		return fmt.Errorf("start %s: %w", c.Path, err)
	}
	s.process = c.Process
	for _, number := range s.pending {
		_ = unix.Kill(-c.Process.Pid, number)
	}
	return nil
}

// wait waits for the end of a command and reports it to the client.
func (s *session) wait(c *exec.Cmd) int {
	// The error of a command has the same information as its state.
	state, err := c.Process.Wait()
	s.mu.Lock()
	s.process = nil
	s.mu.Unlock()
	if err != nil {
		s.exit(255, 0)
		return 255
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		s.exit(0, status.Signal())
		return 128 + int(status.Signal())
	}
	s.exit(state.ExitCode(), 0)
	return state.ExitCode()
}

// exit reports to the client how the command ended, as in RFC 4254, 6.10.
func (s *session) exit(code int, number syscall.Signal) {
	if number == 0 {
		_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(code)}))
		return
	}
	_, _ = s.channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
		Name     string
		Core     bool
		Message  string
		Language string
	}{strings.TrimPrefix(unix.SignalName(number), "SIG"), false, "", ""}))
}

// signal sends a signal to the processes of the session, except for those in process groups of
// their own.
func (s *session) signal(payload []byte) bool {
	var which struct{ Name string }
	if ssh.Unmarshal(payload, &which) != nil {
		return false
	}
	number := unix.SignalNum("SIG" + which.Name)
	if number == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		s.pending = append(s.pending, number)
		return true
	}
	return unix.Kill(-s.process.Pid, number) == nil
}

func (s *session) resize(payload []byte) bool {
	var size struct{ Columns, Rows, Width, Height uint32 }
	if ssh.Unmarshal(payload, &size) != nil {
		return false
	}
	s.setSize(size.Columns, size.Rows, size.Width, size.Height)
	return true
}

func (s *session) setSize(columns, rows, width, height uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.screen == nil {
		return
	}
	control, err := s.screen.SyscallConn()
	if err != nil {
		return
	}
	_ = control.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows), Xpixel: uint16(width), Ypixel: uint16(height)})
	})
}

// openTerminal opens a pair of terminals: one for the program that shows it, and one for the
// processes. Libraries for this leave the first in blocking mode. In that mode Close waits for a
// Read that no process ends.
func openTerminal() (screen, tty *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	screen = os.NewFile(uintptr(fd), "/dev/ptmx")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		screen.Close()
		return nil, nil, err
	}
	return screen, tty, nil
}
