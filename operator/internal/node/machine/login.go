package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// fromPerson is the origin of sessions in which a person looks at the machine.
const fromPerson = "kubectl assay ssh"

// Login opens a shell on the machine, or runs a command in one, and returns its exit code. It is
// for people, who enter through the container and not by SSH. Directory, variables and record are
// the same as in an SSH session. The shell gets the terminal's signals.
func (c *Config) Login(inherited, words []string, in, out, errs *os.File) (code int, err error) {
	record, err := openRecord(filepath.Join(c.OutDir, RecordFile))
	if err != nil {
		return 1, fmt.Errorf("open the machine's record: %w", err)
	}
	defer record.Close()
	shell := ShellIn("/")
	name := filepath.Base(shell)
	command := &exec.Cmd{
		Path: shell, Args: []string{"-" + name}, Dir: c.Home, Env: c.userEnv(c.environment(inherited), shell), Stdin: in, Stdout: out, Stderr: errs,
	}
	event := Event{Kind: "session", What: "shell", From: fromPerson}
	if text := strings.Join(words, " "); text != "" {
		command.Args = []string{name, "-c", text}
		event.What, event.Command = "exec", text[:min(len(text), maxCommand)]
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT)
	recorded := NewRecorder(c.Name, nil, record).started(event)
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		recorded.end(127)
		return 127, fmt.Errorf("start %s: %w", shell, err)
	}
	code = exitOf(command.ProcessState)
	recorded.end(code)
	return code, nil
}
