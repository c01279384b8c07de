package parsers

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// kinds of operations that committed in the window.
type kinds struct {
	byName map[string]*ofKind
	// last is the kind of the operation before, and lastName its name in the report. Most
	// operations are of the same kind as the one before, which saves a look-up.
	last     *ofKind
	lastName string
}

// ofKind are the committed operations of a kind: how many, what they took in all, and each.
type ofKind struct {
	count, micros int64
	latency       *results.Histogram
}

// saysFailed are words in the name of an operation that has failed, as YCSB's READ-FAILED is.
var saysFailed = regexp.MustCompile(`(?i)(^|[^a-z])(fail|failed|failure|error|err|timeout|timedout|abort|aborted)($|[^a-z])`)

// commit takes in n operations of a kind that committed in the window, each after a latency. Unless
// the report tells how operations ended, it fails for a kind whose name says that it failed.
func (k *kinds) commit(name string, told bool, n int64, latency time.Duration) error {
	if k.last == nil || name != k.lastName {
		if !told && saysFailed.MatchString(name) {
			return fmt.Errorf("the operation %q says that it failed, and would count as committed: say which operations failed, in outcome of records or in errors of histograms", name[:min(len(name), results.MaxOperationName)])
		}
		k.last, k.lastName = k.of(name), name
	}
	k.last.count += n
	k.last.micros += n * latency.Microseconds()
	k.last.latency.RecordTimes(latency, n)
	return nil
}

// of is a kind by its name; beyond what a report may have, all others are one.
func (k *kinds) of(name string) *ofKind {
	name = name[:min(len(name), results.MaxOperationName)]
	if name == "" {
		name = results.OtherOperations
	}
	if k.byName[name] == nil && len(k.byName) >= results.MaxOperations-1 {
		name = results.OtherOperations
	}
	if k.byName == nil {
		k.byName = map[string]*ofKind{}
	}
	if k.byName[name] == nil {
		k.byName[name] = &ofKind{latency: results.NewHistogram()}
	}
	return k.byName[name]
}

// fill puts the kinds into a report: as counters, and with their histograms.
func (k *kinds) fill(c *results.Client) error {
	for _, name := range slices.Sorted(maps.Keys(k.byName)) {
		kind := k.byName[name]
		latency, err := kind.latency.Encode()
		if err != nil {
			return err
		}
		c.Driver[counterOperation+name], c.Driver[counterOperationMicros+name] = kind.count, kind.micros
		c.Operations = append(c.Operations, results.Operation{Name: name, Committed: kind.count, Latency: latency})
	}
	return nil
}
