// Package queue decides which trials may start. It goes by their order, by free pools, and by room
// for all of their pods.
//
// It is pure: no client and no clock. Observations come in as entries, nodes and pods; a decision
// and a sentence for people come out.
//
// The lock of a pool is the status of a trial: one that is admitted and not over holds all its
// pools. A trial gets all of them at once or none. So no trial holds a pool while it waits for
// another, and three trials over two pools cannot wait for each other in a circle. That also makes
// the lock survive a manager: there is nothing else to remember.
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
	// Trial is its namespace/name; empty for an experiment between two trials.
	Trial string
	// Experiment is its namespace/name.
	Experiment string
	// Priority of the experiment.
	Priority int32
	// Arrival is when the experiment was created.
	Arrival time.Time
	// Number of the trial in its experiment.
	Number int32
	// Pools that it uses. None: any node, hence all of them.
	Pools []string
	// Exclusive: no other trial may be there at the same time.
	Exclusive bool
	// Admitted: it holds its pools. Settled: all its pods run, so that what is free now stays free.
	Admitted, Settled bool
	// Suspended: it waits because its experiment's author says so.
	Suspended bool

	starts bool // it waits, and may start now
}

// name of an entry in sentences.
func (e *Entry) name() string {
	if e.Trial == "" {
		return "the next trial of experiment " + e.Experiment
	}
	return "trial " + e.Trial
}

// Order puts entries in the order in which they start: those that have started, then by priority,
// arrival of the experiment, its name, and number.
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

// State says what becomes of an entry. All but Start are reasons of the condition Admitted.
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
	// State: Start when they have; Queued when they will have once trials are over;
	// InsufficientResources, Unschedulable or QuotaExceeded.
	State State
	// Missing says what they lack, as a sentence.
	Missing string
}

// Decision is what becomes of an entry, and why.
type Decision struct {
	State State
	// Message is a sentence for people.
	Message string
	// Soon: what it waits for is about to happen without a trial's end.
	Soon bool
}

// Decide says what becomes of each trial that waits, by its name. The function room is asked for
// trials whose pools are free. Trials that may start share no pool, unless both let others there
// and have all of their pods in place. So all of them may start at once.
//
// One pass over the queue decides about all: what becomes of an entry depends on those before it.
func Decide(entries []Entry, room func(Entry) (Room, error)) (map[string]Decision, error) {
	ordered := Order(entries)
	decided := map[string]Decision{}
	var ahead []Entry // who holds pools, or for whom they are kept
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
		return Decision{State: Start}, nil // what it will be is not known yet
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

// excludes reports whether one that is ahead keeps another from starting.
func excludes(ahead, e *Entry) bool {
	if ahead.Trial == e.Trial && e.Trial != "" || ahead.Trial == "" && ahead.Experiment == e.Experiment {
		return false
	}
	if !Overlap(ahead.Pools, e.Pools) {
		return false
	}
	// Two that are not exclusive may be there together, one after the other. As long as the pods of
	// the first are not all in place, the free room is not known.
	return ahead.Exclusive || e.Exclusive || ahead.Admitted && !ahead.Settled || ahead.starts
}

// Overlap reports whether two sets of pools have one in common; none means any node, hence all of
// them.
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
