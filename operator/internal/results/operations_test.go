package results

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
)

// ofKind is n operations of a kind that took 1 ms, 2 ms, and so on.
func ofKind(t *testing.T, name string, n int) Operation {
	t.Helper()
	h := NewHistogram()
	for i := range n {
		h.Record(time.Duration(i+1) * time.Millisecond)
	}
	text, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return Operation{Name: name, Committed: int64(n), Latency: text}
}

// Percentiles of a kind are those of the operations of all pods together, and measurements read
// them by name.
func TestKindsOfOperationsAreMerged(t *testing.T) {
	w := timeline.Windows{Measure: 2 * time.Second}
	a, b := report(t, 0, w, 400, time.Millisecond), report(t, 1, w, 300, time.Millisecond)
	a.Operations = []Operation{ofKind(t, "READ", 300), ofKind(t, "UPDATE", 100)}
	b.Operations = []Operation{ofKind(t, "READ", 100)}
	a.Driver = map[string]int64{"operation:READ": 300}
	b.Driver = map[string]int64{"operation:READ": 100}
	m, err := Merge([]Client{b, a})
	if err != nil {
		t.Fatal(err)
	}
	own := OwnNumbers(m.Driver, m.Summary)
	// With 400 reads, 100 are up to 100 ms twice: the 200th shortest is 100 ms, the 396th 296 ms.
	for name, want := range map[string]float64{
		"operation:READ": 400, "operationP50Millis:READ": 100, "operationP99Millis:READ": 296, "operationMaxMillis:READ": 300,
		"operationMeanMillis:READ": 125.5, "operationP90Millis:UPDATE": 90, "operationP99999Millis:UPDATE": 100,
	} {
		if math.Abs(own[name]-want) > 0.001*want {
			t.Errorf("%s is %g, want %g", name, own[name], want)
		}
	}
	if s := m.Summary.Operations; len(s) != 2 || s[0].Name != "READ" || s[0].Throughput != 200 || s[1].Committed != 100 {
		t.Errorf("operations %+v", s)
	}
}

func TestKindsOfOperationsThatContradictAreRefused(t *testing.T) {
	w := timeline.Windows{Measure: time.Second}
	many := make([]Operation, MaxOperations+1)
	for i := range many {
		many[i] = Operation{Name: fmt.Sprint(i)}
	}
	few := ofKind(t, "READ", 9)
	few.Committed = 8
	for name, tc := range map[string]struct {
		operations []Operation
		want       string
	}{
		"more than committed": {[]Operation{ofKind(t, "READ", 6), ofKind(t, "UPDATE", 5)}, "of the kind of operation UPDATE 5 committed, and of all kinds 10"},
		"below 0":             {[]Operation{{Name: "READ", Committed: -1}}, "of the kind of operation READ -1 committed"},
		"twice":               {[]Operation{{Name: "READ"}, {Name: "READ"}}, "is there twice"},
		"no name":             {[]Operation{{}}, "its name must have 1 to 64 bytes"},
		"a long name":         {[]Operation{{Name: strings.Repeat("x", 65)}}, "its name must have 1 to 64 bytes"},
		"too many":            {many, "34 kinds of operations, 33 are allowed"},
		"another histogram":   {[]Operation{few}, "8 are said to be committed, its histogram has 9"},
		"no histogram":        {[]Operation{{Name: "READ", Committed: 1, Latency: "x"}}, "latency of READ"},
	} {
		c := report(t, 0, w, 10, time.Millisecond)
		c.Operations = tc.operations
		if _, err := Merge([]Client{c}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}

// However many kinds all pods have together, a trial's results have room for them.
func TestKindsOfOperationsBeyondTheBoundAreOne(t *testing.T) {
	w := timeline.Windows{Measure: time.Second}
	var clients []Client
	for i := range int32(4) {
		c := report(t, i, w, 20, time.Millisecond)
		for k := range 20 {
			c.Operations = append(c.Operations, ofKind(t, fmt.Sprintf("%d-%d", i, k), 1))
		}
		clients = append(clients, c)
	}
	m, err := Merge(clients)
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, o := range m.Summary.Operations {
		sum += o.Committed
	}
	if n := len(m.Summary.Operations); n > MaxOperations+1 || sum != 80 {
		t.Errorf("%d kinds with %d operations; want %d at most, with 80", n, sum, MaxOperations+1)
	}
}
