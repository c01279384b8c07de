package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// result is one line of a record.
type result struct {
	Change  string  `json:"change"`
	Outcome outcome `json:"outcome"`
	By      string  `json:"by,omitempty"` // the test that noticed
	Seconds float64 `json:"seconds"`
}

// record is a file with the results of one draw, so that the next run can continue a stopped one.
type record struct {
	file  *os.File
	known map[string]result
}

// openRecord reads the record of a draw. Its name holds the seed, the packages and the commit. A
// tree with changes matches no commit, so it begins anew. Only one run at a time may hold a record.
// The kernel releases it when the run's process ends, for any reason.
func openRecord(ctx context.Context, root string, drawn []change, seed uint64, patterns []string) (_ *record, err error) {
	state, err := stateOf(ctx, root)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(fmt.Appendln(nil, state, len(drawn), strings.Join(patterns, " ")))
	name := filepath.Join(root, ".work/mutants", fmt.Sprintf("random-%d-%x.jsonl", seed, sum[:6]))
	r := &record{known: map[string]result{}}
	if r.file, err = os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = r.file.Close()
		}
	}()
	if err := syscall.Flock(int(r.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another run draws the same changes with seed %d (%s, %w): wait for it, or choose another seed", seed, name, err)
	}
	if state == "" {
		if err := r.file.Truncate(0); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var one result
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		r.known[one.Change] = one
	}
	return r, nil
}

// stateOf is the commit of a tree. It is empty if the tree has changes.
func stateOf(ctx context.Context, root string) (string, error) {
	changes, err := exec.CommandContext(ctx, "git", "--no-optional-locks", "-C", root, "status", "--porcelain").Output()
	if err != nil {
		return "", fmt.Errorf("read the state of the tree: %w", err)
	}
	if len(changes) > 0 {
		return "", nil
	}
	commit, err := exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "HEAD").Output()
	return strings.TrimSpace(string(commit)), err
}

// keep adds a result that is not in the record yet.
func (r *record) keep(one result) error {
	if _, ok := r.known[one.Change]; ok {
		return nil
	}
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	_, err = r.file.Write(append(line, '\n'))
	return err
}
