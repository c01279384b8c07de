package loadgen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// barrierPoll is how often the generator looks for the start file. The file comes seconds
	// before the start, so this need not be precise.
	barrierPoll = 5 * time.Millisecond
	// barrierTimeout is how long the generator waits for the file. The coordinator has a shorter
	// deadline. This one ends a generator that the coordinator has forgotten.
	barrierTimeout = time.Hour
	// standaloneLead is the time before the first request of a run without a barrier.
	standaloneLead = 20 * time.Millisecond
)

// barrier writes that this generator is ready, and waits for the start. Without a start file the
// run starts at once.
func barrier(ctx context.Context, clock clock, cfg Config, drivers Drivers) (protocol.StartSignal, error) {
	if cfg.Files.Ready != "" {
		if err := writeFile(cfg.Files.Ready, nil); err != nil {
			return protocol.StartSignal{}, fmt.Errorf("say that the client is ready: %w", err)
		}
	}
	if cfg.Files.Start == "" {
		w := cfg.Windows.Timeline()
		lead := w.WarmUp + standaloneLead
		return protocol.StartSignal{ZeroMonotonicNanos: clock.monotonic() + int64(lead), Windows: w}, nil
	}
	poll := time.NewTicker(barrierPoll)
	defer poll.Stop()
	deadline := time.NewTimer(barrierTimeout)
	defer deadline.Stop()
	for {
		s, err := readStart(cfg.Files.Start)
		if !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
		if err := drivers.err(); err != nil {
			return protocol.StartSignal{}, fmt.Errorf("wait for the start: %w", err)
		}
		select {
		case <-poll.C:
		case <-deadline.C:
			return protocol.StartSignal{}, fmt.Errorf("the start file %s did not appear within %v", cfg.Files.Start, barrierTimeout)
		case <-ctx.Done():
			return protocol.StartSignal{}, fmt.Errorf("stopped while waiting for the start: %w", context.Cause(ctx))
		}
	}
}

func readStart(path string) (protocol.StartSignal, error) {
	var s protocol.StartSignal
	b, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("read the start file: %w", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("read the start file %s, which must appear as a whole (write another and rename it): %w", path, err)
	}
	if s.ZeroMonotonicNanos == 0 {
		return s, fmt.Errorf("the start file %s does not say zeroMonotonicNanos", path)
	}
	if err := validateWindows(s.Windows); err != nil {
		return s, fmt.Errorf("the start file %s: %w", path, err)
	}
	return s, nil
}

// writeFile makes a file appear as a whole.
func writeFile(path string, content []byte) error {
	part := path + ".part"
	if err := os.WriteFile(part, content, 0o644); err != nil {
		return err
	}
	return os.Rename(part, path)
}
