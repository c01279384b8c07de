package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// waits returns a waiting entry of an experiment that was created so many seconds after the start.
// Its trial has its name.
func waits(experiment string, created int, pools ...string) Entry {
	return Entry{Trial: experiment + "-0", Experiment: experiment, Arrival: start.Add(time.Duration(created) * time.Second), Pools: pools, Exclusive: true}
}

func runs(experiment string, created int, pools ...string) Entry {
	e := waits(experiment, created, pools...)
	e.Admitted, e.Settled = true, true
	return e
}

func with(e Entry, change func(*Entry)) Entry {
	change(&e)
	return e
}

func shares(e *Entry)    { e.Exclusive = false }
func unsettled(e *Entry) { e.Settled = false }
func next(e *Entry)      { e.Trial = "" }

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		entries []Entry
		room    map[string]State // by trial; others have room
		want    State            // of a-0
		message string
	}{
		"alone":                                {entries: []Entry{waits("a", 0)}, want: Start, message: "all nodes to itself"},
		"behind one that runs":                 {entries: []Entry{waits("a", 0), runs("b", 1)}, want: Queued, message: "Waiting for trial b-0, which has all nodes."},
		"behind one that came before":          {entries: []Entry{waits("a", 1), waits("b", 0)}, want: Queued, message: "Waiting for trial b-0, which comes before it on all nodes."},
		"before one that came after":           {entries: []Entry{waits("a", 0), waits("b", 1)}, want: Start},
		"before one of a lower priority":       {entries: []Entry{with(waits("a", 1), func(e *Entry) { e.Priority = 1 }), waits("b", 0)}, want: Start},
		"behind one of a higher priority":      {entries: []Entry{waits("a", 0), with(waits("b", 1), func(e *Entry) { e.Priority = 1 })}, want: Queued},
		"in another pool":                      {entries: []Entry{waits("a", 1, "x"), runs("b", 0, "y")}, want: Start, message: "pool x to itself"},
		"in the same pool":                     {entries: []Entry{waits("a", 1, "x", "y"), runs("b", 0, "y", "z")}, want: Queued, message: "which has pool y."},
		"any node is all pools":                {entries: []Entry{waits("a", 1), runs("b", 0, "y")}, want: Queued, message: "which has pool y."},
		"a pool is of any node":                {entries: []Entry{waits("a", 1, "x"), runs("b", 0)}, want: Queued, message: "which has pool x."},
		"a pool kept for one that waits":       {entries: []Entry{waits("a", 2, "y"), waits("b", 1, "x", "y"), runs("c", 0, "x")}, want: Queued, message: "b-0, which comes before it on pool y."},
		"a pool that no trial before it wants": {entries: []Entry{waits("a", 2, "z"), waits("b", 1, "x", "y"), runs("c", 0, "x")}, want: Start},
		"nothing kept for who has no room":     {entries: []Entry{waits("a", 1, "x"), waits("b", 0, "x")}, room: map[string]State{"b-0": InsufficientResources}, want: Start},
		"nothing kept for who never fits":      {entries: []Entry{waits("a", 1, "x"), waits("b", 0, "x")}, room: map[string]State{"b-0": Unschedulable}, want: Start},
		"nothing kept without quota":           {entries: []Entry{waits("a", 1, "x"), waits("b", 0, "x")}, room: map[string]State{"b-0": QuotaExceeded}, want: Start},
		"kept for whom trials are in the way": {entries: []Entry{waits("a", 1, "x"), waits("b", 0, "x")}, room: map[string]State{"b-0": Queued}, want: Queued,
			message: "b-0, which comes before it"},
		"no room itself":                  {entries: []Entry{waits("a", 1)}, room: map[string]State{"a-0": InsufficientResources}, want: InsufficientResources, message: "lacks a-0"},
		"never fits itself":               {entries: []Entry{waits("a", 1)}, room: map[string]State{"a-0": Unschedulable}, want: Unschedulable, message: "lacks a-0"},
		"two that share":                  {entries: []Entry{with(waits("a", 1, "x"), shares), with(runs("b", 0, "x"), shares)}, want: Start, message: "a share of pool x"},
		"one that shares, one that won't": {entries: []Entry{with(waits("a", 1, "x"), shares), runs("b", 0, "x")}, want: Queued},
		"one that won't share":            {entries: []Entry{waits("a", 1, "x"), with(runs("b", 0, "x"), shares)}, want: Queued},
		"one after the other, though they share": {entries: []Entry{with(waits("a", 1, "x"), shares), with(with(runs("b", 0, "x"), shares), unsettled)}, want: Queued,
			message: "until the pods of trial b-0 run on pool x"},
		"two that start at once, though they share": {entries: []Entry{with(waits("a", 1, "x"), shares), with(waits("b", 0, "x"), shares)}, want: Queued},
		"the next trial of one before":              {entries: []Entry{waits("a", 1), with(waits("b", 0), next)}, want: Queued, message: "the next trial of experiment b"},
		"the next trial of one after":               {entries: []Entry{waits("a", 0), with(waits("b", 1), next)}, want: Start},
		"one that is suspended keeps nothing":       {entries: []Entry{waits("a", 1), with(waits("b", 0), func(e *Entry) { e.Suspended = true })}, want: Start},
		"suspended itself":                          {entries: []Entry{with(waits("a", 0), func(e *Entry) { e.Suspended = true })}, want: Suspended},
		"names break a tie":                         {entries: []Entry{waits("a", 0), waits("b", 0)}, want: Start},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all, err := Decide(tc.entries, func(e Entry) (Room, error) {
				if s := tc.room[e.Trial]; s != "" {
					return Room{State: s, Missing: "lacks " + e.Trial}, nil
				}
				return Room{State: Start}, nil
			})
			if got := all["a-0"]; err != nil || got.State != tc.want || !strings.Contains(got.Message, tc.message) {
				t.Errorf("decided %+v, %v; want %s with %q", got, err, tc.want, tc.message)
			}
		})
	}
}

// An error about the room of one trial is an error for the whole queue, since it leaves later
// trials undecided.
func TestDecideWithoutKnowingTheRoom(t *testing.T) {
	wrong := errors.New("no answer")
	if d, err := Decide([]Entry{waits("a", 0)}, func(Entry) (Room, error) { return Room{}, wrong }); !errors.Is(err, wrong) {
		t.Errorf("decided %+v, %v", d, err)
	}
}

func yes(Entry) (Room, error) { return Room{State: Start}, nil }

// simulation is a cluster in which experiments run their trials. At every step, a randomly drawn
// experiment takes its next step.
type simulation struct {
	t       *testing.T
	random  *rand.Rand
	entries []Entry
	left    map[string]int // trials of each experiment
	log     []string
}

func (s *simulation) step() {
	i := s.random.IntN(len(s.entries))
	e := &s.entries[i]
	switch {
	case e.Admitted && !e.Settled:
		e.Settled = true
	case e.Admitted:
		s.log = append(s.log, "-"+e.Experiment)
		e.Admitted, e.Settled = false, false
		if s.left[e.Experiment]--; s.left[e.Experiment] == 0 {
			s.entries = slices.Delete(s.entries, i, i+1)
			return
		}
		e.Number++
		e.Trial = fmt.Sprintf("%s-%d", e.Experiment, e.Number)
	default:
		all, err := Decide(s.entries, yes)
		if err != nil {
			s.t.Fatal(err)
		}
		for k := range s.entries { // all that may start do so at once, or only this one
			other := &s.entries[k]
			if all[other.Trial].State == Start && !other.Admitted && (k == i || s.random.IntN(2) == 0) {
				s.log = append(s.log, "+"+other.Experiment)
				other.Admitted = true
			}
		}
	}
}

// check checks the invariant: no trial shares a pool with an exclusive one.
func (s *simulation) check() {
	for i, a := range s.entries {
		for _, b := range s.entries[:i] {
			if a.Admitted && b.Admitted && Overlap(a.Pools, b.Pools) && (a.Exclusive || b.Exclusive) {
				s.t.Fatalf("%s and %s run at the same time on %v and %v: %v", a.Trial, b.Trial, a.Pools, b.Pools, s.log)
			}
		}
	}
}

// For any pools of experiments and any order of events, no exclusive trial ever shares, and all
// trials end.
func TestNeitherOverlapNorDeadlock(t *testing.T) {
	pools := []string{"x", "y", "z"}
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := &simulation{t: t, random: rand.New(rand.NewPCG(seed, 1)), left: map[string]int{}}
			for i := range 3 + s.random.IntN(4) {
				var mine []string
				for _, p := range pools {
					if s.random.IntN(2) == 0 {
						mine = append(mine, p)
					}
				}
				e := waits(string(rune('a'+i)), s.random.IntN(3), mine...)
				e.Exclusive, e.Priority = s.random.IntN(3) > 0, int32(s.random.IntN(2))
				s.entries = append(s.entries, e)
				s.left[e.Experiment] = 1 + s.random.IntN(5)
			}
			for steps := 0; len(s.entries) > 0; steps++ {
				if steps > 5000 {
					t.Fatalf("no end after %d steps: %v", steps, s.log)
				}
				s.step()
				s.check()
			}
		})
	}
}

// One pass decides about 1,000 trials in 100 pools. Once there was a pass for each trial, and
// another after each start, which took minutes.
func BenchmarkDecide(b *testing.B) {
	var entries []Entry
	for i := range 1000 {
		entries = append(entries, waits(fmt.Sprintf("e%d", i), i, fmt.Sprintf("pool-%d", i%100)))
	}
	for b.Loop() {
		if all, err := Decide(entries, yes); err != nil || len(all) != len(entries) {
			b.Fatalf("%d decisions, %v", len(all), err)
		}
	}
}

// A trial that needs both pools gets them, although two other experiments take turns on one pool
// each.
func TestWhoNeedsTwoPoolsIsNotStarved(t *testing.T) {
	entries := []Entry{waits("both", 2, "x", "y"), runs("on-x", 0, "x"), runs("on-y", 1, "y")}
	// Later trials ask for each pool. They have to wait, although their pools become free one after
	// the other.
	entries = append(entries, waits("later-x", 3, "x"), waits("later-y", 4, "y"))
	var started []string
	for _, over := range []string{"on-x-0", "on-y-0"} {
		entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Trial == over })
		all, err := Decide(entries, yes)
		if err != nil {
			t.Fatal(err)
		}
		for i := range entries {
			if all[entries[i].Trial].State == Start {
				entries[i].Admitted = true
				started = append(started, entries[i].Trial)
			}
		}
	}
	if diff := cmp.Diff([]string{"both-0"}, started); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
}
