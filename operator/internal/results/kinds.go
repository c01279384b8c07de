package results

import (
	"maps"
	"slices"
	"time"
)

// Kinds sorts the operations that committed in a window by a name: their kind, or the node that
// answered. It has MaxOperations names at most. The zero value has none. It is not safe for
// concurrent use.
type Kinds struct {
	byName map[string]*kind
	// last is the kind of the previous operation, and lastName its name as it was given. Most
	// operations are of the same kind as the previous one, which saves a look-up.
	last     *kind
	lastName string
}

// kind has the committed operations of one name: their number, the sum of their latencies, and a
// histogram of them.
type kind struct {
	count, micros int64
	latency       *Histogram
}

// Commit adds n operations with the same latency.
func (k *Kinds) Commit(name string, n int64, latency time.Duration) {
	if k.last == nil || name != k.lastName {
		k.last, k.lastName = k.of(name), name
	}
	k.last.count += n
	k.last.micros += n * latency.Microseconds()
	k.last.latency.RecordTimes(latency, n)
}

// Is reports whether the previous operation had the name.
func (k *Kinds) Is(name string) bool { return k.last != nil && name == k.lastName }

// of returns the kind of a name. If there are more kinds than a report may have, all further names
// share one kind.
func (k *Kinds) of(name string) *kind {
	name = name[:min(len(name), MaxOperationName)]
	if name == "" {
		name = OtherOperations
	}
	if k.byName[name] == nil && len(k.byName) >= MaxOperations-1 {
		name = OtherOperations
	}
	if k.byName == nil {
		k.byName = map[string]*kind{}
	}
	if k.byName[name] == nil {
		k.byName[name] = &kind{latency: NewHistogram()}
	}
	return k.byName[name]
}

// Merge adds all of another.
func (k *Kinds) Merge(o *Kinds) {
	for _, name := range slices.Sorted(maps.Keys(o.byName)) {
		into, from := k.of(name), o.byName[name]
		into.count, into.micros = into.count+from.count, into.micros+from.micros
		into.latency.Merge(from.latency)
	}
}

// Operations are the kinds in the order of their names, for a report.
func (k *Kinds) Operations() (all []Operation, err error) {
	for _, name := range slices.Sorted(maps.Keys(k.byName)) {
		latency, err := k.byName[name].latency.Encode()
		if err != nil {
			return nil, err
		}
		all = append(all, Operation{Name: name, Committed: k.byName[name].count, Latency: latency})
	}
	return all, nil
}

// CounterOperation, with the kind of operation behind it, counts committed operations of the
// window, and CounterOperationMicros adds their latencies up, in microseconds.
const (
	CounterOperation       = "operation:"
	CounterOperationMicros = "operationMicros:"
)

// Count puts the kinds into the counters of a report.
func (k *Kinds) Count(driver map[string]int64) {
	for name, kind := range k.byName {
		driver[CounterOperation+name], driver[CounterOperationMicros+name] = kind.count, kind.micros
	}
}
