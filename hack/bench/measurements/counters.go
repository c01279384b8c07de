package main

import (
	"fmt"
	"strings"
	"time"
)

// ofCounters computes the measurements of counters, of clients that misbehave, and of restored
// data, from the lines that clients and stores wrote.
func ofCounters(b *bundle, _ *outside) (map[string]second, error) {
	zero, window := b.window()
	correct, err := transactions(b, "correct", zero, window)
	if err != nil {
		return nil, err
	}
	misbehaving, err := transactions(b, "misbehaving", zero, window)
	if err != nil {
		return nil, err
	}
	clients := len(correct.clients) + len(misbehaving.clients)
	ended := correct.inWindow + misbehaving.inWindow
	all := map[string]second{
		"committed":               {correct.committed, byLines},
		"logTime":                 {correct.logged / 1e3 / correct.committed, byLines},
		"memoryTime":              {correct.inMemory / 1e3 / correct.committed, byLines},
		"stalled":                 {misbehaving.stalled, byLines},
		"misbehavingCommitted":    {misbehaving.committed, byLines},
		"misbehavingShare":        {float64(len(misbehaving.clients)) / float64(clients), byLines},
		"misbehavingTransactions": {misbehaving.inWindow / ended, byLines},
	}
	return all, restored(all, b, zero, window)
}

// account sums up the transactions of clients of a kind. Times are in nanoseconds.
type account struct {
	clients                      map[string]bool
	committed, stalled, inWindow float64
	logged, inMemory             float64
}

func transactions(b *bundle, kind string, zero time.Time, window time.Duration) (account, error) {
	a := account{clients: map[string]bool{}}
	name := "transactions-" + kind + ".csv"
	files, err := b.kept(name, 2)
	if err != nil {
		return a, err
	}
	for pod, text := range files {
		for line := range strings.Lines(text) {
			columns := strings.Split(strings.TrimSpace(line), ",")
			if len(columns) != 5 {
				return a, fmt.Errorf("%s of %s has a line of %d columns, want 5", name, pod, len(columns))
			}
			n, err := numbers([]string{columns[0], columns[3], columns[4]})
			if err != nil {
				return a, fmt.Errorf("%s of %s: %w", name, pod, err)
			}
			a.clients[columns[1]] = true
			switch columns[2] {
			case "committed":
				a.committed++
			case "stalled":
				a.stalled++
			}
			a.logged, a.inMemory = a.logged+n[1], a.inMemory+n[2]
			if since := n[0] - float64(zero.UnixNano()); since >= 0 && since < float64(window) {
				a.inWindow++
			}
		}
	}
	if a.committed == 0 {
		return a, fmt.Errorf("no client committed in %s", name)
	}
	return a, nil
}

// restored reads what the killed store copied in the window: its account begins anew at each start.
func restored(all map[string]second, b *bundle, zero time.Time, window time.Duration) error {
	files, err := b.kept("restored.csv", 1)
	if err != nil {
		return err
	}
	var received, written float64
	for _, text := range files {
		for line := range strings.Lines(text) {
			n, err := numbers(strings.Split(strings.TrimSpace(line), ","))
			if err != nil || len(n) != 3 {
				continue // the kill may have cut a line
			}
			if since := n[0] - float64(zero.UnixNano()); since >= 0 && since < float64(window) {
				received, written = max(received, n[1]), max(written, n[2])
			}
		}
	}
	all["restored"], all["restoredDisk"] = second{received, byProgram}, second{written, byProgram}
	return nil
}
