package loadgen

import (
	"encoding/json"
	"fmt"
	"time"

	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

const progressInterval = time.Second

// reportProgress writes the progress once a second until the returned function is called. It logs a
// failed write once: a run must not fail for its progress.
func (r *run) reportProgress() (stop func()) {
	if r.cfg.Files.Progress == "" {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		var last protocol.Progress
		lastAt := r.now()
		failed := false
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			p, now := r.committed(), r.now()
			p.PerSecond = int64(float64(p.Committed-last.Committed) / (now - lastAt).Seconds())
			last, lastAt = p, now
			if err := writeProgress(r.cfg.Files.Progress, p); err != nil && !failed {
				failed = true
				r.log.Warn("Progress is not reported", "error", err)
			}
		}
	}()
	return func() { close(done); <-ended }
}

// committed is the progress so far, without its rate.
func (r *run) committed() protocol.Progress {
	var p protocol.Progress
	for _, s := range r.shards {
		s.mu.Lock()
		p.Committed += s.rec.Committed
		p.LatencySumMicros += s.rec.LatencySumMicros
		s.mu.Unlock()
	}
	return p
}

func writeProgress(path string, p protocol.Progress) error {
	b, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode the progress: %w", err)
	}
	if err := writeFile(path, b); err != nil {
		return fmt.Errorf("write the progress: %w", err)
	}
	return nil
}

// WriteResult makes the result file appear as a whole.
func WriteResult(path string, c results.Client) error {
	b, err := results.EncodeClient(c)
	if err != nil {
		return err
	}
	if err := writeFile(path, b); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
