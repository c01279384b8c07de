package results

import (
	"fmt"
	"maps"
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
	own := OwnNumbers(&Trial{Driver: m.Driver, Summary: m.Summary})
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
		"more than committed": {[]Operation{ofKind(t, "READ", 6), ofKind(t, "UPDATE", 5)}, "of the kind of operation UPDATE 5 committed, and of all 10"},
		"below 0":             {[]Operation{{Name: "READ", Committed: -1}}, "of the kind of operation READ -1 committed"},
		"twice":               {[]Operation{{Name: "READ"}, {Name: "READ"}}, "is there twice"},
		"no name":             {[]Operation{{}}, "its name must have 1 to 64 bytes"},
		"a long name":         {[]Operation{{Name: strings.Repeat("x", 65)}}, "its name must have 1 to 64 bytes"},
		"too many":            {many, "34 kinds of operations, 33 are allowed"},
		"another histogram":   {[]Operation{few}, "states 8 committed operations, and its histogram has 9"},
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

// Nodes that answered are merged over pods, as kinds of operations are. Clients are merged by their
// regions. Numbers say how much nodes and regions differ.
func TestLatenciesByNodeAndRegion(t *testing.T) {
	w := timeline.Windows{Measure: 2 * time.Second}
	a, b := report(t, 0, w, 400, time.Millisecond), report(t, 1, w, 100, time.Millisecond)
	a.Nodes = []Operation{ofKind(t, "replica-0", 100), ofKind(t, "replica-1", 300)}
	b.Nodes = []Operation{ofKind(t, "replica-0", 100)}
	m, err := Merge([]Client{b, a})
	if err != nil {
		t.Fatal(err)
	}
	pods := []Pod{{Name: "r", Part: "replica", Region: "asia"}, {Name: "c0", Part: "client", Region: "europe"}, {Name: "c1", Part: "client", Region: "asia"}}
	if m.Summary.Regions, err = RegionsOf([]Client{b, a}, RegionsOfClients(pods), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	own := OwnNumbers(&Trial{Summary: m.Summary})
	// 1 to 100 ms twice have a mean of 50.5, and 1 to 300 ms have one of 150.5. The deviation of
	// the two is 50, and their mean 100.5.
	for name, want := range map[string]float64{
		"node:replica-0": 200, "node:replica-1": 300, "nodeMeanMillis:replica-0": 50.5, "nodeP50Millis:replica-1": 150, "nodeMaxMillis:replica-1": 300,
		"nodeVariation": 0.2, "nodeMeanMillisVariation": 50 / 100.5, "nodeP99MillisVariation": 99.0 / 198, "region:europe": 400, "region:asia": 100,
		"regionP50Millis:europe": 1, "regionMeanMillisVariation": 0, "regionVariation": 0.6,
	} {
		if got, has := own[name]; !has || math.Abs(got-want) > 0.001*max(want, 1) {
			t.Errorf("%s is %v, %v; want %v", name, got, has, want)
		}
	}
	if err := m.Summary.AgreeParts(); err != nil {
		t.Error(err)
	}
	m.Summary.Nodes[0].Committed = 201
	if err := m.Summary.AgreeParts(); err == nil || !strings.Contains(err.Error(), "node that answered replica-1 300 committed, and of all 500") {
		t.Errorf("nodes with more operations than there are: %v", err)
	}
}

// If all clients are in one region, or the region of some is unknown, there are no numbers by
// region. If a report has no room for all nodes, their variation is unknown.
func TestLatenciesThatCannotBeToldApart(t *testing.T) {
	w := timeline.Windows{Measure: time.Second}
	clients := []Client{report(t, 0, w, 4, time.Millisecond), report(t, 1, w, 4, time.Millisecond)}
	for _, regions := range [][]string{{"asia", "asia"}, {"asia", ""}, {"asia"}, nil} {
		if got, err := RegionsOf(clients, regions, time.Second); got != nil || err != nil {
			t.Errorf("clients in %q: %+v, %v", regions, got, err)
		}
	}
	var nodes Kinds
	for i := range 50 {
		nodes.Commit(fmt.Sprint(i), 2, time.Duration(i)*time.Millisecond)
	}
	c := report(t, 0, w, 100, time.Millisecond)
	var err error
	if c.Nodes, err = nodes.Operations(); err != nil {
		t.Fatal(err)
	}
	m, err := Merge([]Client{c})
	if err != nil {
		t.Fatal(err)
	}
	own := OwnNumbers(&Trial{Summary: m.Summary})
	if _, has := own["nodeVariation"]; has || own["node:..."] != 2*(50-MaxOperations+1) {
		t.Errorf("of 50 nodes, there is a variation (%v), and %v operations are of the others", has, own["node:..."])
	}
}

// The counters of clients that misbehave are measurements, apart from all others.
func TestWhatMisbehavingClientsDo(t *testing.T) {
	w := timeline.Windows{Measure: time.Second}
	a, b := report(t, 0, w, 60, time.Millisecond), report(t, 1, w, 20, time.Millisecond)
	a.Clients, b.Clients = 6, 4
	b.FirstClient = 6
	a.MisbehavingClients, a.MisbehavingDriver = 2, map[string]int64{"stalled": 7, "committed": 3}
	a.MisbehavingCounters = &Counters{Committed: 15, Errors: 5, Aborted: 9}
	m, err := Merge([]Client{a, b})
	if err != nil {
		t.Fatal(err)
	}
	trial := &Trial{Clients: m.Clients, CorrectClients: m.CorrectClients, Summary: m.Summary, MisbehavingDriver: m.MisbehavingDriver, MisbehavingCounters: m.MisbehavingCounters}
	own := OwnNumbers(trial)
	for name, want := range map[string]float64{
		"misbehavingShare": 0.2, "misbehavingTransactionShare": 0.2, "misbehaving:stalled": 7, "misbehaving:aborted": 9, "misbehaving:committed": 3,
	} {
		if got, has := own[name]; !has || got != want {
			t.Errorf("%s is %v, %v; want %v", name, got, has, want)
		}
	}
	b.MisbehavingClients = 1 // and says nothing of it
	if m, err = Merge([]Client{a, b}); err != nil || m.MisbehavingCounters != nil {
		t.Errorf("a pod that does not say what its clients did: %+v, %v", m.MisbehavingCounters, err)
	}
	own = OwnNumbers(&Trial{Clients: 10, CorrectClients: 10})
	if own["misbehavingShare"] != 0 || own["misbehavingTransactionShare"] != 0 {
		t.Errorf("without such clients: %v", own)
	}
	if _, has := OwnNumbers(&Trial{Clients: 10})["misbehavingShare"]; has {
		t.Error("results from before there were such clients say how many there were")
	}
}

// Both sides of a merge have operations of a kind, and one of them has a kind of its own.
func TestKindsAreMergedIntoOthers(t *testing.T) {
	var a, b Kinds
	a.Commit("READ", 3, 2*time.Millisecond)
	b.Commit("READ", 1, 6*time.Millisecond)
	b.Commit("SCAN", 2, time.Millisecond)
	a.Merge(&b)
	got := map[string]int64{}
	a.Count(got)
	want := map[string]int64{"operation:READ": 4, "operationMicros:READ": 12000, "operation:SCAN": 2, "operationMicros:SCAN": 2000}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
