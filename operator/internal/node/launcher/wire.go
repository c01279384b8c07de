// Package launcher is the first process of a container. It runs the container's command when it is
// told to, kills it at an exact instant, keeps it down, starts it again, and keeps what it prints.
//
// It decides nothing. The agent of the pod says what to do over a Unix socket in a directory that
// both share. There is one JSON object for each line, requests in and responses and states out:
//
//	agent -> {"id":7,"kill":{"id":"crash/kill/r-0","atMonotonicNanos":91000000000,"awaitGo":true}}
//	agent -> {"id":8,"go":{"id":"crash/kill/r-0"}}
//	agent <- {"id":8}
//	agent <- {"state":{"process":"Held","exitCode":137,...}}
//	agent <- {"id":7,"kill":{"killedAt":91000012345,"confirmedAt":91000890123}}
//
// Everything that must not happen twice has an ID and is remembered: an agent that was restarted
// sends the same request again and gets the same answer. A start is remembered without one, since a
// launcher has one process only.
//
// The launcher must be the first process of a PID namespace, or it makes itself the reaper of its
// descendants ("child subreaper"). In both cases wait4 answers ECHILD exactly when no process of
// the container is left. That is what "confirmed dead" means here.
//
// It imports the standard library and x/sys only, is linked statically, and therefore runs in every
// image.
package launcher

import "time"

// Request is one line from the agent. ID comes back in the Response; exactly one other member is
// set.
type Request struct {
	ID      int64    `json:"id"`
	Look    *Look    `json:"look,omitempty"`
	Start   *Start   `json:"start,omitempty"`
	Stop    *Stop    `json:"stop,omitempty"`
	Kill    *Kill    `json:"kill,omitempty"`
	Revive  *Revive  `json:"revive,omitempty"`
	Pause   *Pause   `json:"pause,omitempty"`
	Resume  *Resume  `json:"resume,omitempty"`
	Run     *Run     `json:"run,omitempty"`
	Archive *Archive `json:"archive,omitempty"`
	Share   *Share   `json:"share,omitempty"`
	Measure *Measure `json:"measure,omitempty"`
	Size    *Size    `json:"size,omitempty"`

	Processes *Processes `json:"processes,omitempty"`
}

// Look asks for the state.
type Look struct{}

// Start runs the container's process, once: a second Start changes nothing.
type Start struct {
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"` // NAME=value, added to the launcher's own
	Dir     string   `json:"dir,omitempty"`
	// AtMonotonicNanos is when to start, on CLOCK_MONOTONIC; the past means now. The answer does
	// not wait for it.
	AtMonotonicNanos int64 `json:"atMonotonicNanos,omitempty"`
	// Processors that the process may run on; nil: all that the container has.
	Processors *Processors `json:"processors,omitempty"`
	// Arrivals of the process's output are kept beside the output itself: see ArrivalsSuffix.
	Arrivals bool `json:"arrivals,omitempty"`
	// Respawn starts the process again at once when a signal ends it that neither Kill nor Stop has
	// sent. The process stays Running meanwhile. Such a process is one that no user of a real
	// machine could signal, such as sshd. It is told so by RespawnedVariable.
	Respawn bool `json:"respawn,omitempty"`
}

// RespawnedVariable is 1 in the environment of a process that Start.Respawn has started again. It
// is not there after a Revive.
const RespawnedVariable = "ASSAY_RESPAWNED"

// Processors are some of those that a container has, in the order of their numbers: Count of them
// after the first After ones. After the last one the first comes again.
type Processors struct {
	Count int `json:"count"`
	After int `json:"after,omitempty"`
}

// ArrivalsSuffix is added to the name of a file of output, for the file that says when the output
// came. That has a record of ArrivalBytes for each piece that was read: the file's size after it
// and the CLOCK_MONOTONIC in ns, both little-endian.
const (
	ArrivalsSuffix = ".arrivals"
	ArrivalBytes   = 16
)

// Stop ends all processes: Signal to the main process, SIGKILL to whatever is left when it has
// exited or Grace is over. It also calls off every planned start and kill, and forbids later ones.
// The answer comes when no process is left.
type Stop struct {
	Signal string        `json:"signal"` // SIGTERM, ...; SIGKILL ends all at once
	Grace  time.Duration `json:"grace"`
}

// Kill ends all processes with SIGKILL at an instant and holds them down. The answer
// (Response.Kill) comes when no process is left.
type Kill struct {
	ID               string `json:"id"`
	AtMonotonicNanos int64  `json:"atMonotonicNanos"`
	// AwaitPermit makes the kill wait for Client.Permit, should that not have come by the instant:
	// the pod must be silent before anything dies.
	AwaitPermit bool `json:"awaitPermit,omitempty"`
	// Empty lists directories that are emptied when no process is left, as a machine loses its
	// memory or its disk. The answer waits for it. The directories themselves, other volumes
	// mounted below them and a file system's own lost+found stay.
	Empty []string `json:"empty,omitempty"`
}

// Revive runs the killed process again. The answer (Response.Revive) comes when it runs.
type Revive struct {
	ID string `json:"id"`
}

// Pause stops all processes with SIGSTOP at an instant, those that they fork included. The answer
// (Response.Pause) comes when every thread of them has stopped.
type Pause struct {
	ID               string `json:"id"`
	AtMonotonicNanos int64  `json:"atMonotonicNanos"`
}

// Resume ends a Pause at an instant: the processes go on with SIGCONT, unless another Pause is in
// force. The answer (Response.Resume) comes when none is stopped any more.
type Resume struct {
	ID string `json:"id"`
	// Pause is the ID of the one that it ends. It may be planned still.
	Pause            string `json:"pause"`
	AtMonotonicNanos int64  `json:"atMonotonicNanos"`
}

// Run runs one more command beside the container's process, in its environment and directory. The
// answer (Response.Run) comes when it is over.
type Run struct {
	ID      string        `json:"id"`
	Command []string      `json:"command"`
	Env     []string      `json:"env,omitempty"`
	Dir     string        `json:"dir,omitempty"`
	Timeout time.Duration `json:"timeout"`
}

// Archive packs a directory into a gzipped tar file in the output directory (Response.File). The
// launcher does it, not the agent, since the files may be readable by the container's user only.
type Archive struct {
	Path  string `json:"path"`
	Limit int64  `json:"limit"` // of the packed file, in bytes
}

// Share makes a file of the container's user readable by all, for the same reason.
type Share struct {
	Path string `json:"path"`
}

// Response is one line to the agent: the answer to the request of that ID, or, without an ID, a
// State that changed.
type Response struct {
	ID     int64         `json:"id,omitempty"`
	Error  string        `json:"error,omitempty"`
	State  *State        `json:"state,omitempty"`
	Kill   *KillResult   `json:"kill,omitempty"`
	Revive *ReviveResult `json:"revive,omitempty"`
	Pause  *PauseResult  `json:"pause,omitempty"`
	Resume *PauseResult  `json:"resume,omitempty"`
	Run    *RunResult    `json:"run,omitempty"`
	File   string        `json:"file,omitempty"`
	Usage  *Usage        `json:"usage,omitempty"`
	Sizes  []Sized       `json:"sizes,omitempty"`

	Processes []Process `json:"processes,omitempty"`
}

// The states of a process are in the words of package protocol, which is not imported here. It
// knows the API types, and what is linked into this binary is copied into every pod of every trial.
const (
	Waiting = "Waiting" // not started
	Running = "Running"
	Exited  = "Exited"
	Held    = "Held" // killed by a fault and kept down
)

// tailLimit is the most of a process's output that a State carries, as in package protocol.
const tailLimit = 4 << 10

// State is all that the launcher knows about its process. Instants are on CLOCK_MONOTONIC, in
// nanoseconds; 0: not yet.
type State struct {
	// Incarnation differs for each launcher process: a container that was restarted has lost its
	// process.
	Incarnation string `json:"incarnation"`
	// Process is Waiting, Running, Exited or Held.
	Process string `json:"process"`
	// Command of the process. A restarted agent learns from it what runs.
	Command   []string `json:"command,omitempty"`
	Starts    int      `json:"starts"`
	StartedAt int64    `json:"startedAt,omitempty"`
	ExitedAt  int64    `json:"exitedAt,omitempty"`
	// ExitCode, or 128 + the signal's number. 127: the command could not be started; the tail says
	// why.
	ExitCode int `json:"exitCode,omitempty"`
	// Asked: the process was made to exit by a Stop or a Kill.
	Asked bool `json:"asked,omitempty"`
	// Stopped: a Stop is done; nothing runs and nothing will.
	Stopped bool `json:"stopped,omitempty"`
	// Paused: a Pause is in force.
	Paused bool `json:"paused,omitempty"`
	// OutputComplete: no process holds the output open any more, and all of it is in the files.
	OutputComplete bool `json:"outputComplete,omitempty"`
	// LeftOut is how many bytes of output were not kept, since the file was full, or the disk.
	LeftOut int64 `json:"leftOut,omitempty"`
	// Tail of both streams, in the order of arrival.
	Tail string `json:"tail,omitempty"`
}

// KillResult says when the processes were killed. With all instants and an Error, the processes are
// dead, but a directory could not be emptied.
type KillResult struct {
	// KilledAt is when SIGKILL was sent.
	KilledAt int64 `json:"killedAt,omitempty"`
	// ConfirmedAt is when no thread could get back to its program any more (Launcher.killAll says
	// why). It is set only when all of them were reaped.
	ConfirmedAt int64 `json:"confirmedAt,omitempty"`
	// ReapedAt is when no process was left.
	ReapedAt int64  `json:"reapedAt,omitempty"`
	Error    string `json:"error,omitempty"`
}

// ReviveResult says when the process ran again.
type ReviveResult struct {
	StartedAt int64  `json:"startedAt,omitempty"`
	Error     string `json:"error,omitempty"`
}

// PauseResult says when the processes were signalled, and when all of them had stopped, or ran
// again. A pause is told only when every thread was seen stopped; its ConfirmedAt is when none
// could get back to its program any more (Launcher.awaitStates says why).
type PauseResult struct {
	SignalledAt int64  `json:"signalledAt,omitempty"`
	ConfirmedAt int64  `json:"confirmedAt,omitempty"`
	Error       string `json:"error,omitempty"`
}

// RunResult is what came of a Run.
type RunResult struct {
	ExitCode int    `json:"exitCode"`
	Output   string `json:"output,omitempty"` // the tail
	Error    string `json:"error,omitempty"`  // why it could not run or took too long
	// StartedAt and EndedAt are when its process was there, and when it was reaped, on
	// CLOCK_MONOTONIC; 0: it was not.
	StartedAt int64 `json:"startedAt,omitempty"`
	EndedAt   int64 `json:"endedAt,omitempty"`
}
