package machine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/node/protocol"
)

// Exit codes of a script that did not end by itself.
const (
	// ExitDeadline is the exit code of timeout(1).
	ExitDeadline = 124
	// exitLost: the machine went down while the script ran.
	exitLost = 137
)

// Script runs on one machine of the trial.
type Script protocol.MachineScript

// begunFile marks that the script has begun. The file exists as long as the pod, so a script runs
// once.
const begunFile = "script-begun"

// run runs the script once and returns its exit code.
func (s *Script) run(ctx context.Context, c *Config, env []string, recorder *Recorder, out streams) (int, error) {
	begun := filepath.Join(c.RunDir, begunFile)
	switch file, err := os.OpenFile(begun, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); {
	case errors.Is(err, fs.ErrExist):
		return exitLost, errors.New("the script does not run again: the machine went down, or something killed all processes of its user, while the script ran")
	case err != nil:
		return 1, fmt.Errorf("note that the script begins: %w", err)
	default:
		file.Close()
	}
	dir := s.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(c.Home, dir)
	}
	if s.HostsTo != "" {
		if err := overwrite(s.HostsTo, []byte(s.HostsText), 0o644); err != nil {
			return 1, err
		}
	}
	command := exec.Command(s.Command[0], s.Command[1:]...)
	command.Dir, command.Env, command.Stdout, command.Stderr = dir, env, out.stdout, out.stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.WaitDelay = time.Second // its children may hold the output open for ever
	event := recorder.started(Event{Kind: "script", Command: strings.Join(s.Command, " ")})
	err := command.Start()
	out.started()
	if err != nil {
		event.end(127)
		return 127, fmt.Errorf("start the script in %s: %w", dir, err)
	}
	over := make(chan struct{})
	go func() {
		_ = command.Wait() // the process state has the same information
		close(over)
	}()
	timer := time.NewTimer(s.Deadline)
	defer timer.Stop()
	select {
	case <-over:
	case <-ctx.Done():
		return exitLost, nil
	case <-timer.C:
		message := fmt.Sprintf("the script did not end within %v", s.Deadline)
		if busy := waitingFor(command.Process.Pid); busy != "" {
			message += ": " + busy
		}
		recorder.started(Event{Kind: "deadline", Message: message})
		fmt.Fprintf(out.errors, "assay: %s\n", message)
		_ = unix.Kill(-command.Process.Pid, unix.SIGKILL)
		<-over
		event.end(ExitDeadline)
		return ExitDeadline, nil
	}
	code := exitOf(command.ProcessState)
	event.end(code)
	return code, nil
}

// waitingFor says what a script waits for. It lists the commands of the script's session without
// children, with their running times. Daemons of the script are among them, so the command that
// began last comes first.
func waitingFor(script int) string {
	type running struct {
		command string
		since   time.Duration
		parent  int
	}
	all, parents := map[int]running{}, map[int]bool{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return ""
	}
	up := uptime()
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 20 || fields[3] != strconv.Itoa(script) { // another session
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		ticks, _ := strconv.ParseInt(fields[19], 10, 64)
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		text := withoutOptions(strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"))
		all[pid] = running{text, up - time.Duration(ticks)*(time.Second/userHertz), parent}
		parents[parent] = true
	}
	var leaves []running
	for pid, r := range all {
		if !parents[pid] && pid != script && r.command != "" {
			leaves = append(leaves, r)
		}
	}
	slices.SortFunc(leaves, func(a, b running) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.command, b.command))
	})
	const most = 3
	var words []string
	for _, r := range leaves[:min(len(leaves), most)] {
		words = append(words, fmt.Sprintf("%#q has run for %v", r.command[:min(len(r.command), 200)], r.since.Round(100*time.Millisecond)))
	}
	return strings.Join(words, ", ")
}

// takeArgument are the options of OpenSSH's programs that a word follows.
var takeArgument = map[string]string{"ssh": "BbcDEeFIiJLlmOopQRSWw", "scp": "cDFiJloPSX"}

// withoutOptions is a command as a line. It leaves out the long options of ssh and scp, since the
// command for the machine comes after them.
func withoutOptions(words []string) string {
	program := path.Base(words[0])
	with, known := takeArgument[program]
	if !known {
		return strings.TrimSpace(strings.Join(words, " "))
	}
	rest := words[1:]
	for len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == '-' {
		word := rest[0]
		rest = rest[1:]
		if word == "--" {
			break
		}
		// -oName=Value has its argument in the same word, and so does -4qp22.
		if i := strings.IndexAny(word[1:], with); i >= 0 && i == len(word)-2 && len(rest) > 0 {
			rest = rest[1:]
		}
	}
	return strings.TrimSpace(program + " " + strings.Join(rest, " "))
}

// userHertz is the unit of times in /proc, on every architecture that Go runs on.
const userHertz = 100

func uptime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return time.Duration(ts.Nano())
}
