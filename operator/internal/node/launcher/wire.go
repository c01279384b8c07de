// Package launcher is the first process of a container. On the agent's order it runs the
// container's command, kills it at an exact instant, keeps it down, and starts it again. It keeps
// the command's output.
//
// It makes no decisions. The agent of the pod sends orders over a Unix socket in a directory that
// both share. Each line has one JSON object: a request to the launcher, or a response or state from
// it:
//
//	agent -> {"id":7,"kill":{"id":"crash/kill/r-0","atMonotonicNanos":91000000000,"awaitGo":true}}
//	agent -> {"id":8,"go":{"id":"crash/kill/r-0"}}
//	agent <- {"id":8}
//	agent <- {"state":{"process":"Held","exitCode":137,...}}
//	agent <- {"id":7,"kill":{"killedAt":91000012345,"confirmedAt":91000890123}}
//
// Every order that must not be carried out twice has an ID, and the launcher remembers it. A
// restarted agent sends the same request again and gets the same answer. A start needs no ID, since
// a launcher has only one process.
//
// The launcher must be the first process of a PID namespace, or it makes itself the reaper of its
// descendants ("child subreaper"). In both cases wait4 answers ECHILD exactly when no process of
// the container is left. That is what "confirmed dead" means here.
//
// It imports the standard library and x/sys only, is linked statically, and therefore runs in every
// image.
package launcher

import "time"

// Request is one line from the agent. The Response has the same ID. Exactly one other member is
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
	// AtMonotonicNanos is when to start, on CLOCK_MONOTONIC; an instant in the past means now. The
	// answer comes before the start.
	AtMonotonicNanos int64 `json:"atMonotonicNanos,omitempty"`
	// Processors that the process may run on; nil: all that the container has.
	Processors *Processors `json:"processors,omitempty"`
	// Arrivals of the process's output are kept beside the output itself: see ArrivalsSuffix.
	Arrivals bool `json:"arrivals,omitempty"`
	// Respawn restarts the process at once when a signal ends it that neither Kill nor Stop has
	// sent. Its state stays Running meanwhile. It is for a process that users of a real machine
	// could not signal, such as sshd. RespawnedVariable informs the new process.
	Respawn bool `json:"respawn,omitempty"`
}

// RespawnedVariable is 1 in the environment of a process that Start.Respawn has restarted. It is
// not set after a Revive.
const RespawnedVariable = "ASSAY_RESPAWNED"

// Processors are some of a container's processors, in the order of their numbers. They are Count
// processors after the first After ones. After the last processor the count goes on with the first.
type Processors struct {
	Count int `json:"count"`
	After int `json:"after,omitempty"`
}

// ArrivalsSuffix is added to the name of an output file, for the file with the arrivals of its
// pieces. That file has a record of ArrivalBytes for each piece: the size of the output file after
// it, and CLOCK_MONOTONIC in ns, both little-endian.
const (
	ArrivalsSuffix = ".arrivals"
	ArrivalBytes   = 16
)

// Stop ends all processes. It sends Signal to the main process, and SIGKILL to the rest when the
// main process has exited or Grace is over. It also cancels every planned start and kill, and
// forbids later ones. The answer comes when no process is left.
type Stop struct {
	Signal string        `json:"signal"` // such as SIGTERM; SIGKILL ends all at once
	Grace  time.Duration `json:"grace"`
}

// Kill ends all processes with SIGKILL at an instant and holds them down. The answer
// (Response.Kill) comes when no process is left.
type Kill struct {
	ID               string `json:"id"`
	AtMonotonicNanos int64  `json:"atMonotonicNanos"`
	// AwaitPermit makes the kill wait for Client.Permit if the permit has not come by the instant:
	// the pod must be silent before a process dies.
	AwaitPermit bool `json:"awaitPermit,omitempty"`
	// Empty lists directories to empty when no process is left, as when a machine loses its memory
	// or its disk. The answer waits for that. The directories themselves stay, and so do other
	// volumes mounted below them and a file system's own lost+found.
	Empty []string `json:"empty,omitempty"`
}

// Revive runs the killed process again. The answer (Response.Revive) comes when it runs.
type Revive struct {
	ID string `json:"id"`
}

// Pause stops all processes with SIGSTOP at an instant, and also those that they fork. The answer
// (Response.Pause) comes when all of their threads have stopped.
type Pause struct {
	ID               string `json:"id"`
	AtMonotonicNanos int64  `json:"atMonotonicNanos"`
}

// Resume ends a Pause at an instant: SIGCONT continues the processes, unless another Pause is in
// force. The answer (Response.Resume) comes when no process is stopped any more.
type Resume struct {
	ID string `json:"id"`
	// Pause is the ID of the pause that it ends. That pause may still be planned.
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
// launcher does it instead of the agent, since perhaps only the container's user may read the
// files.
type Archive struct {
	Path  string `json:"path"`
	Limit int64  `json:"limit"` // of the packed file, in bytes
}

// Share makes a file of the container's user readable for all users, including the agent.
type Share struct {
	Path string `json:"path"`
}

// Response is one line to the agent: the answer to the request with the same ID, or, without an ID,
// a State that has changed.
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

// The states of a process have the same names as in package protocol. That package is not imported
// here, since it imports the API types. Every pod of every trial gets a copy of this binary, so it
// must be small.
const (
	Waiting = "Waiting" // not started
	Running = "Running"
	Exited  = "Exited"
	Held    = "Held" // killed by a fault and kept down
)

// tailLimit is how many bytes of a process's output a State carries at most, as in package
// protocol.
const tailLimit = 4 << 10

// State is all that the launcher knows about its process. Instants are on CLOCK_MONOTONIC, in
// nanoseconds; 0: not yet.
type State struct {
	// Incarnation differs for each launcher process. When it changes, the container was restarted
	// and has lost its process.
	Incarnation string `json:"incarnation"`
	// Process is Waiting, Running, Exited or Held.
	Process string `json:"process"`
	// Command of the process. From it, a restarted agent knows which command runs.
	Command   []string `json:"command,omitempty"`
	Starts    int      `json:"starts"`
	StartedAt int64    `json:"startedAt,omitempty"`
	ExitedAt  int64    `json:"exitedAt,omitempty"`
	// ExitCode, or 128 + the signal's number. 127: the command could not be started; the tail says
	// why.
	ExitCode int `json:"exitCode,omitempty"`
	// Asked: a Stop or a Kill made the process exit.
	Asked bool `json:"asked,omitempty"`
	// Stopped: a Stop is done. No process runs, and none will.
	Stopped bool `json:"stopped,omitempty"`
	// Paused: a Pause is in force.
	Paused bool `json:"paused,omitempty"`
	// OutputComplete: no process holds the output open any more, and the files have all of it.
	OutputComplete bool `json:"outputComplete,omitempty"`
	// LeftOut is how many bytes of output were not kept, because the file or the disk was full.
	LeftOut int64 `json:"leftOut,omitempty"`
	// Tail of both streams, in the order of arrival.
	Tail string `json:"tail,omitempty"`
}

// KillResult says when the processes were killed. With all instants and an Error, the processes are
// dead, but a directory could not be emptied.
type KillResult struct {
	// KilledAt is when SIGKILL was sent.
	KilledAt int64 `json:"killedAt,omitempty"`
	// ConfirmedAt is when no thread could return to its program any more (see Launcher.killAll). It
	// is set only when all processes were reaped.
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
// again. A pause succeeds only when every thread was seen stopped. Its ConfirmedAt is when no
// thread could return to its program any more (see Launcher.awaitStates).
type PauseResult struct {
	SignalledAt int64  `json:"signalledAt,omitempty"`
	ConfirmedAt int64  `json:"confirmedAt,omitempty"`
	Error       string `json:"error,omitempty"`
}

// RunResult is the result of a Run.
type RunResult struct {
	ExitCode int    `json:"exitCode"`
	Output   string `json:"output,omitempty"` // the tail
	Error    string `json:"error,omitempty"`  // why it could not run, or that it took too long
	// StartedAt and EndedAt are when its process existed, and when it was reaped, on
	// CLOCK_MONOTONIC; 0: never.
	StartedAt int64 `json:"startedAt,omitempty"`
	EndedAt   int64 `json:"endedAt,omitempty"`
}
