package machine

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// bootLimit is how long a machine waits for its boot command before it answers SSH. The command
// continues after that. Tests wait less.
var bootLimit = time.Minute

// respawnedVariable is launcher.RespawnedVariable: this process has replaced an earlier one since
// the machine came up.
const respawnedVariable = "ASSAY_RESPAWNED"

// boot runs the machine's boot command, as the machine's user in the home directory, and waits for
// its end, or for bootLimit. Processes that the command leaves behind live on. If the command
// fails, the machine's record says so, and the machine still answers SSH.
func (c *Config) boot(inherited, env []string, recorder *Recorder, stdout, stderr io.Writer) {
	if len(c.Boot) == 0 || slices.Contains(inherited, respawnedVariable+"=1") {
		return
	}
	command := exec.Command(c.Boot[0], c.Boot[1:]...)
	command.Dir, command.Env, command.Stdout, command.Stderr = c.Home, env, stdout, stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.WaitDelay = time.Second // its children may hold the output open for ever
	event := recorder.started(Event{Kind: "boot", Command: strings.Join(c.Boot, " ")})
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = command.Run() // the process state has the same information
		code := 127
		if state := command.ProcessState; state != nil {
			code = exitOf(state)
		}
		event.end(code)
	}()
	select {
	case <-over:
	case <-time.After(bootLimit):
	}
}

// setUpFile is the file that hack/machines/image.sh leaves in an image. It says how the image was
// made.
const setUpFile = "usr/share/assay/setup.json"

// setUpOf says how the image of the machine was set up, if the image has that file.
func setUpOf(root string) string {
	text, err := os.ReadFile(filepath.Join(root, setUpFile))
	if err != nil {
		return ""
	}
	var made struct {
		Recipe, Packages, Install string
		Seconds                   float64
		Mebibytes                 int
	}
	if json.Unmarshal(text, &made) != nil || made.Recipe == "" {
		return ""
	}
	said := fmt.Sprintf("set up once, in %.1f s, by recipe %s: %s", made.Seconds, made.Recipe, made.Packages)
	if made.Install != "" {
		said += ", " + made.Install
	}
	return fmt.Sprintf("%s; %d MiB", said, made.Mebibytes)
}

// exitOf is the exit code of a process, or 128 and the number of the signal that ended it.
func exitOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// userEnv are the variables of processes of the machine's user outside of SSH sessions.
func (c *Config) userEnv(env []string, shell string) []string {
	return append(slices.Clone(env), "HOME="+c.Home, "USER="+c.User, "LOGNAME="+c.User, "SHELL="+shell)
}
