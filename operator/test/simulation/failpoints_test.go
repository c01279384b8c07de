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
	// names of the points that managers have reached, in order.
	names []string
	// fatal is the point at which the manager dies.
	fatal string
}

// passed notes a point, and reports whether the manager dies there.
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
// store. It ends the manager at a point; "": at none.
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

// kindOfPoint is the part of a point's name that is the same in any trial: the written object, but
// not how often it was written. A trial's status changes with each condition, so each of its writes
// is a kind of its own.
func kindOfPoint(name string) string {
	kind, _, _ := strings.Cut(name, ", time ")
	if strings.Contains(kind, "status of Trial") {
		return name
	}
	return kind
}

// A manager that ends before or after any of its writes loses no result, repeats no trial, and
// leaves no object behind. The test ends the manager at the first and the last write of each kind;
// -each-write tests all.
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
