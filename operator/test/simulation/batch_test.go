package simulation

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	seeds     = flag.Int("seeds", 60, "how many histories to run")
	first     = flag.Uint64("first", 1, "the first seed")
	showTrace = flag.Bool("trace", false, "print what happens in each history")
	untilBad  = flag.Bool("until-bad", false, "end at the first history with a violation")
	wanted    = flag.String("want", "", "look only for violations with this text")
	lasts     = flag.Duration("for", 0, "begin no further history after so long; 0: all are run")
	workers   = flag.Int("workers", 1, "how many histories to run at once, each by a processor")
	record    = flag.String("record", "", "a file to which each history is added when it is over; those that are in it are not run again")
)

// line describes one history in the file of a batch.
type line struct {
	Seed       uint64         `json:"seed"`
	Hours      float64        `json:"hours"`   // of virtual time
	Seconds    float64        `json:"seconds"` // of wall time, shared among the workers
	Trials     int            `json:"trials"`
	Reconciles int            `json:"reconciles"`
	Outcomes   map[string]int `json:"outcomes"`
	Disturbed  []string       `json:"disturbed,omitempty"`
	Violations []string       `json:"violations,omitempty"`
}

// batch runs histories of many seeds, some at the same time.
type batch struct {
	t *testing.T

	mu    sync.Mutex
	next  uint64
	over  bool // no further history begins
	done  map[uint64]line
	old   int // how many of those an earlier run did
	file  *os.File
	began time.Time
	told  time.Time
}

// TestSeeds runs histories. The package's comment says how to inspect one.
func TestSeeds(t *testing.T) {
	b := &batch{t: t, next: *first, done: map[uint64]line{}, began: time.Now(), told: time.Now()}
	b.resume()
	if *showTrace || *intoFolder != "" {
		*workers = 1
	}
	var running sync.WaitGroup
	for range max(1, *workers) {
		running.Go(func() {
			for seed, more := b.take(); more; seed, more = b.take() {
				b.add(b.play(seed))
			}
		})
	}
	running.Wait()
	if b.file != nil {
		if err := b.file.Close(); err != nil {
			t.Error(err)
		}
	}
	b.sum()
}

// resume reads the histories of earlier runs.
func (b *batch) resume() {
	if *record == "" {
		return
	}
	text, err := os.ReadFile(*record)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.t.Fatal(err)
	}
	scanner := bufio.NewScanner(strings.NewReader(string(text)))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var l line
		if json.Unmarshal(scanner.Bytes(), &l) != nil {
			continue // it was cut off when the batch was ended
		}
		if l.Seed >= *first && l.Seed < *first+uint64(*seeds) {
			b.done[l.Seed] = l
			b.tell(l)
		}
	}
	b.old = len(b.done)
	if b.file, err = os.OpenFile(*record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		b.t.Fatal(err)
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		if _, err := b.file.WriteString("\n"); err != nil {
			b.t.Fatal(err)
		}
	}
}

// take returns the next seed that was not run yet.
func (b *batch) take() (seed uint64, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.over && b.next < *first+uint64(*seeds) && (*lasts == 0 || time.Since(b.began) < *lasts) {
		seed = b.next
		b.next++
		if _, done := b.done[seed]; !done {
			return seed, true
		}
	}
	return 0, false
}

func (b *batch) play(seed uint64) line {
	began := time.Now()
	h, w := playWorld(seed, *showTrace)
	if *intoFolder != "" && seed == *first {
		w.write(b.t, *intoFolder)
	}
	if *showTrace {
		b.t.Logf("seed %d\n%s", seed, strings.Join(h.lines, "\n"))
	}
	return line{
		Seed: seed, Hours: h.virtual.Hours(), Seconds: time.Since(began).Seconds() / float64(max(1, *workers)), Trials: h.trials, Reconciles: h.reconciles, Outcomes: h.outcomes,
		Disturbed: h.disturbed, Violations: h.violations,
	}
}

// add notes a finished history.
func (b *batch) add(l line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done[l.Seed] = l
	if b.file != nil {
		text, err := json.Marshal(l)
		if err == nil {
			_, err = b.file.Write(append(text, '\n'))
		}
		if err != nil {
			b.t.Error(err)
			b.over = true
		}
	}
	b.over = b.over || b.tell(l) && *untilBad
	if time.Since(b.told) > 5*time.Minute {
		b.told = time.Now()
		b.t.Logf("%d of %d seeds, after %v", len(b.done), *seeds, time.Since(b.began).Round(time.Second))
	}
}

// tell reports the violations of a history, if there are any.
func (b *batch) tell(l line) (bad bool) {
	violations := slices.DeleteFunc(slices.Clone(l.Violations), func(v string) bool { return !strings.Contains(v, *wanted) })
	if len(violations) > 0 {
		b.t.Errorf("seed %d, disturbed by %q:\n  %s\nagain: make sim FIRST=%d SEEDS=1", l.Seed, l.Disturbed, strings.Join(violations, "\n  "), l.Seed)
	}
	return len(violations) > 0
}

// sum prints totals of all histories.
func (b *batch) sum() {
	hours, seconds, trials, reconciles, bad := 0.0, 0.0, 0, 0, 0
	outcomes := map[string]int{}
	for _, l := range b.done {
		hours, seconds, trials, reconciles = hours+l.Hours, seconds+l.Seconds, trials+l.Trials, reconciles+l.Reconciles
		for o, n := range l.Outcomes {
			outcomes[o] += n
		}
		if len(l.Violations) > 0 {
			bad++
		}
	}
	var list []string
	for o, n := range outcomes {
		list = append(list, fmt.Sprintf("%s %d", o, n))
	}
	slices.Sort(list)
	took := time.Duration(seconds * float64(time.Second))
	b.t.Logf("%d seeds (%d of them before), %d with violations; %d trials, %d reconciles, %.0f virtual hours in %v of wall time, %.0f seeds a minute by %d workers",
		len(b.done), b.old, bad, trials, reconciles, hours, took.Round(time.Second), float64(len(b.done))/max(took.Minutes(), 1e-9), *workers)
	b.t.Logf("trials ended as: %s", strings.Join(list, ", "))
}
