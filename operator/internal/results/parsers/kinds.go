package parsers

import (
	"fmt"
	"regexp"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// kinds of operations that committed in the window.
type kinds struct{ results.Kinds }

// saysFailed are words in the name of an operation that has failed, as YCSB's READ-FAILED is.
var saysFailed = regexp.MustCompile(`(?i)(^|[^a-z])(fail|failed|failure|error|err|timeout|timedout|abort|aborted)($|[^a-z])`)

// commit takes in n operations of a kind that committed in the window, each after a latency. Unless
// the report tells how operations ended, it fails for a kind whose name says that it failed.
func (k *kinds) commit(name string, told bool, n int64, latency time.Duration) error {
	if !told && !k.Is(name) && saysFailed.MatchString(name) {
		return fmt.Errorf("the operation %q says that it failed, and would count as committed: say which operations failed, in outcome of records or in errors of histograms", name[:min(len(name), results.MaxOperationName)])
	}
	k.Commit(name, n, latency)
	return nil
}

// fill puts the kinds into a report: as counters, and with their histograms.
func (k *kinds) fill(c *results.Client) (err error) {
	k.Count(c.Driver)
	c.Operations, err = k.Kinds.Operations()
	return err
}
