// Package queue decides which trials may start. It considers their order, free pools, and room for
// all of their pods.
//
// It is pure: no client and no clock. It gets observations as entries, nodes and pods. It returns a
// decision and a sentence for people.
//
// The status of a trial locks pools: an admitted trial that is not over holds all its pools. A
// trial gets all of them at once or none. So no trial holds a pool while it waits for another, and
// trials cannot wait for each other in a circle. A new manager needs no other memory of the lock.
//
// The queue is gone through in its order, priority first and then the experiment that was created
// first:
//
//	is a pool of it held, or kept for one before it?    -> Queued; its pools are kept for it against all that come after
//	has every pod of it room?  yes                      -> it starts
//	                           when trials are over     -> Queued; its pools are kept for it
//	                           when others' pods go     -> InsufficientResources or QuotaExceeded; nothing is kept, those after it may start
//	                           never, as the nodes are  -> Unschedulable; nothing is kept
//
// A pool is kept for a trial that waits. Otherwise a trial of two pools would never get both, while
// others take turns on each of them.
package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Entry is a trial that waits or holds its pools, or an experiment whose next trial is about to be
// made.
type Entry struct {
	// Trial is the trial's namespace/name. It is empty for an experiment between two trials.
	Trial string
	// Experiment is its namespace/name.
	Experiment string
	// Priority of the experiment.
	Priority int32
	// Arrival is when the experiment was created.
	Arrival time.Time
	// Number of the trial in its experiment.
	Number int32
	// Pools that it uses. None: it may run on any node, and so uses all pools.
	Pools []string
	// Exclusive: no other trial may run on its pools at the same time.
	Exclusive bool
	// Admitted: the trial holds its pools. Settled: all its pods run, so the free room does not
	// change.
	Admitted, Settled bool
	// Suspended: the author of its experiment suspended it.
	Suspended bool

	starts bool // it waits, and may start now
}

// name returns the name of an entry for sentences.
func (e *Entry) name() string {
	if e.Trial == "" {
		return "the next trial of experiment " + e.Experiment
	}
	return "trial " + e.Trial
}

// Order sorts entries in the order in which they start. Started ones come first. The others follow
// by priority, arrival of the experiment, its name, and number.
func Order(entries []Entry) []Entry {
	out := slices.Clone(entries)
	slices.SortStableFunc(out, func(a, b Entry) int {
		started := func(e Entry) int {
			if e.Admitted {
				return 0
			}
			return 1
		}
		return cmp.Or(started(a)-started(b), cmp.Compare(b.Priority, a.Priority), a.Arrival.Compare(b.Arrival),
			strings.Compare(a.Experiment, b.Experiment), cmp.Compare(a.Number, b.Number), strings.Compare(a.Trial, b.Trial))
	})
	return out
}

// State is the decision about an entry. All states except Start are reasons of the condition
// Admitted.
type State string

// The states.
const (
	Start                 State = "Start"
	Queued                State = "Queued"
	Suspended             State = "Suspended"
	InsufficientResources State = "InsufficientResources"
	Unschedulable         State = "Unschedulable"
	QuotaExceeded         State = "QuotaExceeded"
)

// Room says whether all pods of a trial have room.
type Room struct {
	// State is Start if they have room, and Queued if they will have room once trials are over.
	// Otherwise it is InsufficientResources, Unschedulable or QuotaExceeded.
	State State
	// Missing says which resources the pods lack, as a sentence.
	Missing string
}

// Decision is the decision about an entry, with the reason.
type Decision struct {
	State State
	// Message is a sentence for people.
	Message string
	// Soon: the awaited event is about to happen, without the end of a trial.
	Soon bool
}

// Decide decides about each trial that waits, by its name. It calls room for trials whose pools are
// free. Trials that may start share no pool, unless none of them is exclusive and all have their
// pods in place. So all of them may start at once.
//
// It decides about all in one pass over the queue, since each decision depends on the entries
// before.
func Decide(entries []Entry, room func(Entry) (Room, error)) (map[string]Decision, error) {
	ordered := Order(entries)
	decided := map[string]Decision{}
	var ahead []Entry // entries that hold pools, or for which pools are kept
	for i := range ordered {
		e := &ordered[i]
		switch {
		case e.Admitted:
			ahead = append(ahead, *e)
			continue
		case e.Suspended:
			decided[e.Trial] = Decision{State: Suspended, Message: "Waiting while spec.suspend of the experiment is true."}
			continue
		}
		d, err := decideNext(e, ahead, room)
		if err != nil {
			return nil, err
		}
		if e.Trial != "" {
			decided[e.Trial] = d
		}
		if d.State == Start || d.State == Queued {
			e.starts = d.State == Start
			ahead = append(ahead, *e)
		}
	}
	return decided, nil
}

func decideNext(e *Entry, ahead []Entry, room func(Entry) (Room, error)) (Decision, error) {
	for k := range ahead {
		if excludes(&ahead[k], e) {
			return behind(e, &ahead[k]), nil
		}
	}
	if e.Trial == "" {
		return Decision{State: Start}, nil // it is not known yet how it will be
	}
	free, err := room(*e)
	if err != nil {
		return Decision{}, err
	}
	if free.State == Start {
		return Decision{State: Start, Message: "The trial has " + poolsText(e.Pools, e.Exclusive) + "."}, nil
	}
	return Decision{State: free.State, Message: free.Missing}, nil
}

// excludes reports whether an earlier entry keeps another from starting.
func excludes(ahead, e *Entry) bool {
	if ahead.Trial == e.Trial && e.Trial != "" || ahead.Trial == "" && ahead.Experiment == e.Experiment {
		return false
	}
	if !Overlap(ahead.Pools, e.Pools) {
		return false
	}
	// Two that are not exclusive may run together, but start one after the other: the free room is
	// not known while pods of the first are missing.
	return ahead.Exclusive || e.Exclusive || ahead.Admitted && !ahead.Settled || ahead.starts
}

// Overlap reports whether two sets of pools have a common one. An empty set stands for any node,
// and so for all pools.
func Overlap(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return true // any node
	}
	return slices.ContainsFunc(a, func(pool string) bool { return slices.Contains(b, pool) })
}

func behind(e, ahead *Entry) Decision {
	d := Decision{State: Queued, Soon: ahead.Trial == ""}
	shared := slices.DeleteFunc(slices.Clone(e.Pools), func(pool string) bool { return len(ahead.Pools) > 0 && !slices.Contains(ahead.Pools, pool) })
	if len(e.Pools) == 0 {
		shared = ahead.Pools
	}
	switch where := poolNames(shared); {
	case ahead.Admitted && !ahead.Exclusive && !e.Exclusive:
		d.Message = fmt.Sprintf("Waiting until the pods of %s run on %s: then it is known what room is left.", ahead.name(), where)
	case ahead.Admitted:
		d.Message = fmt.Sprintf("Waiting for %s, which has %s.", ahead.name(), where)
	default:
		d.Message = fmt.Sprintf("Waiting for %s, which comes before it on %s.", ahead.name(), where)
	}
	return d
}

func poolNames(pools []string) string {
	switch len(pools) {
	case 0:
		return "all nodes"
	case 1:
		return "pool " + pools[0]
	default:
		return "pools " + strings.Join(pools, ", ")
	}
}

func poolsText(pools []string, exclusive bool) string {
	if exclusive {
		return poolNames(pools) + " to itself"
	}
	return "a share of " + poolNames(pools)
}
