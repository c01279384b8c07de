package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"assay.dev/assay/operator/internal/protocol"
)

// journal is what the next incarnation of the agent must know. Only a restart of the agent's own container reads it: it lives in a volume of the pod.
type journal struct {
	// Directive that was in force: a run goes on without the coordinator.
	Directive *protocol.Directive `json:"directive,omitempty"`
	// Clock is the best sample, so that a run goes on with the same idea of t = 0.
	Clock *sample `json:"clock,omitempty"`
	// FilesDigest of the files that are written.
	FilesDigest string `json:"filesDigest,omitempty"`
	// Launchers are the incarnations that processes were started in: one that comes back as another has lost its process.
	Launchers map[string]string        `json:"launchers,omitempty"`
	Commands  []protocol.CommandResult `json:"commands,omitempty"`
	Actions   []protocol.ActionRecord  `json:"actions,omitempty"`
	// ResetsBefore is the count of reset connections when the run was released.
	ResetsBefore *int64 `json:"resetsBefore,omitempty"`
	// ResetsAfter is the count when the last request of the run may have been sent.
	ResetsAfter *int64 `json:"resetsAfter,omitempty"`
	Over        bool   `json:"over,omitempty"`
	Sent        bool   `json:"sent,omitempty"`
}

const journalFile = "agent.json"

func loadJournal(runDir string) (journal, error) {
	j := journal{Launchers: map[string]string{}}
	content, err := os.ReadFile(filepath.Join(runDir, journalFile))
	if errors.Is(err, os.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return j, fmt.Errorf("read the journal: %w", err)
	}
	if err := json.Unmarshal(content, &j); err != nil {
		return j, fmt.Errorf("read the journal: %w", err)
	}
	return j, nil
}

func (j *journal) save(runDir string) error {
	content, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return writeAtomically(filepath.Join(runDir, journalFile), content, 0o600)
}

// writeAtomically makes a file appear with all of its content or not at all.
func writeAtomically(path string, content []byte, mode os.FileMode) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, mode); err != nil {
		return err
	}
	// The mode given to WriteFile is cut by the umask.
	if err := os.Chmod(temporary, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
