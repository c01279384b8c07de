package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/netem/probe"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// journal holds the facts that the next incarnation of the agent needs. It is in a volume of the
// pod, so an agent finds one only after a restart of its own container.
type journal struct {
	// Directive that was in force, with which a run continues without the coordinator.
	Directive *protocol.Directive `json:"directive,omitempty"`
	// Clock is the best sample, so that the run continues with the same t = 0.
	Clock *sample `json:"clock,omitempty"`
	// FilesDigest of the files that are written.
	FilesDigest string `json:"filesDigest,omitempty"`
	// Launchers are the incarnations of the launchers that started the processes. A launcher that
	// comes back with another incarnation has lost its process.
	Launchers map[string]string        `json:"launchers,omitempty"`
	Commands  []protocol.CommandResult `json:"commands,omitempty"`
	Actions   []protocol.ActionRecord  `json:"actions,omitempty"`
	// Marks that were found.
	Marks []timeline.Mark `json:"marks,omitempty"`
	// Network is the agent's knowledge of the pod's links. Baseline has the delays of their
	// undelayed paths, in the order of the directive's peers.
	Network  *protocol.NetworkReport `json:"network,omitempty"`
	Baseline []probe.Measurement     `json:"baseline,omitempty"`
	// Shaped is the backend that may have changed the pod's network, and Filtered says that the
	// packet filter may be changed, too. The agent sets both before the change.
	Shaped   shaping.Backend `json:"shaped,omitempty"`
	Filtered bool            `json:"filtered,omitempty"`
	// Reset is written before the machine that the agent runs on is reset.
	Reset *rebootMarker `json:"reset,omitempty"`
	// ResetsBefore is the count of reset connections when the run was released.
	ResetsBefore *int64 `json:"resetsBefore,omitempty"`
	// ResetsAfter is the count when the last request of the run may have been sent.
	ResetsAfter *int64 `json:"resetsAfter,omitempty"`
	// Resources that were used in the window, once it is over.
	Resources *results.Resources `json:"resources,omitempty"`
	// Measured are those that were used in parts of the run.
	Measured []results.Resources `json:"measured,omitempty"`
	// Client is when and how the pod's client ran.
	Client *protocol.ClientRun `json:"client,omitempty"`
	Over   bool                `json:"over,omitempty"`
	Sent   bool                `json:"sent,omitempty"`
}

const (
	journalFile = "agent.json"
	// journalLimit is larger than any journal: the journal of a pod with 1,000 links has some MiB.
	journalLimit = 64 << 20
)

// loadJournal reads what an agent before this one in the pod wrote. Users' processes share the
// directory, and may have put a link, a pipe or an endless file in its place.
func loadJournal(runDir string) (journal, error) {
	j := journal{Launchers: map[string]string{}}
	file, err := openIn(runDir, journalFile)
	if errors.Is(err, os.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return j, fmt.Errorf("read the journal: %w", err)
	}
	content, err := readAll(file, journalLimit)
	if err != nil {
		return j, fmt.Errorf("read the journal: %w", err)
	}
	if err := json.Unmarshal(content, &j); err != nil {
		return j, fmt.Errorf("read the journal: %w", err)
	}
	return j, nil
}

// save writes the journal so that it survives the end of this process. If it must be durable, it
// survives a reset of the machine, too.
func (j *journal) save(runDir string, durable bool) error {
	content, err := json.Marshal(j)
	if err != nil {
		return err
	}
	path := filepath.Join(runDir, journalFile)
	if !durable {
		return writeAtomically(path, content, 0o600)
	}
	temporary := path + ".new"
	file, err := createAnew(temporary, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	// The name, too, must be on the disk.
	dir, err := os.Open(runDir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// writeAtomically makes a file appear with all of its content or not at all.
func writeAtomically(path string, content []byte, mode os.FileMode) error {
	temporary := path + ".new"
	file, err := createAnew(temporary, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	// The umask reduces the mode that a file is created with.
	if err := errors.Join(err, file.Chmod(mode), file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// createAnew makes a file in a directory where users' processes may make files, too. It removes a
// link of that name, and does not write through it.
func createAnew(path string, mode os.FileMode) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
}

// rebootMarker is written to the disk before the machine goes down.
type rebootMarker struct {
	// Actions that this reset carries out: several targets may be on one machine.
	Actions []string `json:"actions"`
	// Started is when the machine was reset, as a time since t = 0.
	Started time.Duration `json:"started"`
	// Machine is the machine's identity before the reset.
	Machine string `json:"machine"`
}
