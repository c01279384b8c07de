package simulation

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
)

var eachWrite = flag.Bool("each-write", false, "end a manager around every write of a trial, and not around the first and last of each kind alone")

// failpoints are the points before and after each write of a manager: to the API server, or to a
// store. A point has a name: "before create ConfigMap exp0-0-results, time 1".
type failpoints struct {
	watched bool
	times   map[string]int
	// names of those that managers have come to, in order.
	names []string
	// fatal is the one at which the manager dies.
	fatal string
}

// passed notes a point, and says whether the manager dies at it.
func (w *world) passed(point string) bool {
	f := &w.failpoints
	if !f.watched {
		return false
	}
	f.times[point]++
	name := fmt.Sprintf("%s, time %d", point, f.times[point])
	f.names = append(f.names, name)
	return name == f.fatal
}

// oneTrial runs an experiment of one trial, with a prepare step, shaped links, a fault, files and a
// store, and ends the manager at a point; "": at none.
func oneTrial(fatal string) *world {
	w := newWorld(1, false)
	w.stored = true
	w.failpoints = failpoints{watched: true, times: map[string]int{}, fatal: fatal}
	for i := range 2 {
		w.addNode(fmt.Sprintf("x%d", i), "x")
		w.addNode(fmt.Sprintf("y%d", i), "y")
	}
	w.boot("a")
	w.boot("b")
	w.experiments = []types.NamespacedName{{Namespace: "lab", Name: "exp0"}}
	w.applyDrawn("exp0", drawn{shaped: true, prepares: true, collects: true, faults: true, at: "1s", clients: "y"})
	if fatal != "" {
		w.disturb(v1alpha1.CausedByEnvironment, "a manager dies "+fatal)
	}
	w.play()
	return w
}

// kindOfPoint is what is the same of a write in any trial: what is written, and not how often. A
// trial's status is another with each condition, so that each time is of its own kind.
func kindOfPoint(name string) string {
	kind, _, _ := strings.Cut(name, ", time ")
	if strings.Contains(kind, "status of Trial") {
		return name
	}
	return kind
}

// A manager that ends before or after any of its writes loses nothing, repeats nothing, and leaves
// nothing behind. The first and the last write of each kind are tried; -each-write tries all.
func TestAManagerEndsAroundEachWrite(t *testing.T) {
	quiet := oneTrial("")
	if len(quiet.violations) > 0 {
		t.Fatalf("without any failure: %q", quiet.violations)
	}
	first, last := map[string]bool{}, map[string]string{}
	for _, name := range quiet.failpoints.names {
		last[kindOfPoint(name)] = name
	}
	var tried []string
	for _, name := range quiet.failpoints.names {
		kind := kindOfPoint(name)
		if *eachWrite || !first[kind] || last[kind] == name {
			tried = append(tried, name)
		}
		first[kind] = true
	}
	t.Logf("%d points around the writes of one trial, of %d kinds; a manager dies at %d of them", len(quiet.failpoints.names), len(last), len(tried))
	if len(last) < 100 {
		t.Errorf("there are %d kinds of points, fewer than there were", len(last))
	}
	for _, name := range tried {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := oneTrial(name)
			if w.serials["a"]+w.serials["b"] < 3 {
				t.Error("no manager died")
			}
			if len(w.violations) > 0 {
				t.Error(strings.Join(w.violations, "\n"))
			}
		})
	}
}
