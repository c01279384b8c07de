package validity

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/results"
)

// The numbers are about exactly the clients that were to be correct: ten over two pods, of which
// every fifth misbehaves.
func TestJudgeClients(t *testing.T) {
	l := &placement.Layout{Clients: []placement.Client{{Index: 0, First: 0, Count: 6, Name: "c-0"}, {Index: 1, First: 6, Count: 4, Name: "c-1"}}}
	spec := &v1alpha1.TrialSpec{Tolerances: tolerances, Faults: []v1alpha1.Fault{{Name: "liars", ClientBehavior: &v1alpha1.ClientBehavior{Share: "20%"}}}}
	good := func() []results.Client {
		return []results.Client{{Index: 1, FirstClient: 6, Clients: 4, MisbehavingClients: 1}, {Index: 0, FirstClient: 0, Clients: 6, MisbehavingClients: 1}}
	}
	for name, tc := range map[string]struct {
		change  func([]results.Client) []results.Client
		merged  int32
		message string
	}{
		"exactly these":              {merged: 8},
		"a liar among the correct":   {change: func(c []results.Client) []results.Client { c[0].MisbehavingClients = 0; return c }, merged: 9, message: "c-1 reported of 4 clients from 6 on, of which 0 misbehaved; it has 4 from 6 on, of which 1 shall"},
		"one too many left out":      {change: func(c []results.Client) []results.Client { c[1].MisbehavingClients = 2; return c }, merged: 7, message: "c-0 reported"},
		"other clients":              {change: func(c []results.Client) []results.Client { c[0].FirstClient = 5; return c }, merged: 8, message: "c-1 reported"},
		"a pod of fewer clients":     {change: func(c []results.Client) []results.Client { c[1].Clients = 5; return c }, merged: 7, message: "c-0 reported"},
		"a pod that is not there":    {change: func(c []results.Client) []results.Client { return c[1:] }, merged: 5, message: "c-1 reported of 0 clients"},
		"a pod that is no pod":       {change: func(c []results.Client) []results.Client { return append(c, results.Client{Index: 2}) }, merged: 8, message: "from 3 pods; the trial has 8 from 2"},
		"merged otherwise than told": {merged: 7, message: "those of 7 correct clients"},
	} {
		t.Run(name, func(t *testing.T) {
			clients := good()
			if tc.change != nil {
				clients = tc.change(clients)
			}
			v := judgeClients(spec, l, clients, results.Merged{CorrectClients: tc.merged})
			if (v.Reason == v1alpha1.ReasonClientsMiscounted) != (tc.message != "") || !strings.Contains(v.Message, tc.message) {
				t.Errorf("reason %q: %q, want %q", v.Reason, v.Message, tc.message)
			}
		})
	}
}

// The program itself makes two of six and none of four clients misbehave.
func TestJudgeClientsThatTheirProgramMakesMisbehave(t *testing.T) {
	l := &placement.Layout{Clients: []placement.Client{{Index: 0, First: 0, Count: 6, Name: "c-0"}, {Index: 1, First: 6, Count: 4, Name: "c-1"}}}
	spec := &v1alpha1.TrialSpec{Tolerances: tolerances, MisbehavingClients: []int32{2, 0}}
	reports := []results.Client{{Index: 0, Clients: 6, MisbehavingClients: 2}, {Index: 1, FirstClient: 6, Clients: 4}}
	if v := judgeClients(spec, l, reports, results.Merged{CorrectClients: 8}); !v.OK() {
		t.Errorf("%s: %s", v.Reason, v.Message)
	}
	reports[0].MisbehavingClients = 0
	if v := judgeClients(spec, l, reports, results.Merged{CorrectClients: 10}); v.Reason != v1alpha1.ReasonClientsMiscounted || !strings.Contains(v.Message, "of which 2 shall") {
		t.Errorf("%s: %s", v.Reason, v.Message)
	}
}

// A generator is judged by its own lag, so that the lag of one pod does not vanish among those of
// many.
func TestJudgeGenerators(t *testing.T) {
	lag := func(late time.Duration) string {
		h := results.NewHistogram()
		for i := range 100 {
			h.Record(time.Duration(i) * late / 100)
		}
		text, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	l := &placement.Layout{Clients: []placement.Client{{Index: 0, Name: "c-0"}, {Index: 1, Name: "c-1"}, {Index: 2, Name: "c-2"}}}
	pods := []results.Pod{{Name: "r-0"}, {Name: "c-0"}, {Name: "c-1"}, {Name: "c-2"}}
	spec := &v1alpha1.TrialSpec{Tolerances: tolerances}
	if err := SetGeneratorLags(pods, l, []results.Client{{Index: 1, GeneratorLag: lag(9 * time.Millisecond)}, {Index: 0, GeneratorLag: lag(time.Millisecond)}, {Index: 2}}); err != nil {
		t.Fatal(err)
	}
	if v := judgeGenerators(spec, pods); !v.OK() || pods[2].GeneratorLagP99Millis < 8 || pods[1].GeneratorLagP99Millis > 1 {
		t.Errorf("%s %s of %+v, want nothing", v.Reason, v.Message, pods)
	}
	if err := SetGeneratorLags(pods, l, []results.Client{{Index: 2, GeneratorLag: lag(20 * time.Millisecond)}}); err != nil {
		t.Fatal(err)
	}
	if v := judgeGenerators(spec, pods); v.Reason != v1alpha1.ReasonGeneratorLate || !strings.Contains(v.Message, "of c-2 sent requests 19.") || !strings.Contains(v.Message, "tolerances.generatorLag is 10ms") {
		t.Errorf("%s: %s", v.Reason, v.Message)
	}
	if err := SetGeneratorLags(pods, l, []results.Client{{Index: 0, GeneratorLag: "x"}}); err == nil {
		t.Error("a histogram that is none is accepted")
	}
}

// A summary does not say when its client began. That does not mean that the client did nothing.
func TestSilenceOfSummaries(t *testing.T) {
	layout := &placement.Layout{Clients: []placement.Client{{Name: "c0"}, {Name: "c1"}}}
	of := func(committed ...int64) *Observation {
		o := &Observation{Layout: layout}
		for i, n := range committed {
			o.Clients = append(o.Clients, results.Client{Index: int32(i), Clients: 1, NothingSent: true, RunSummary: &results.RunSummary{}, Counters: results.Counters{Committed: n}})
		}
		return o
	}
	if v := silence(of(3, 4)); !v.OK() {
		t.Errorf("both committed: %+v", v)
	}
	if v := silence(of(3, 0)); v.Reason != v1alpha1.ReasonClientSilent {
		t.Errorf("one committed nothing: %+v, want %s", v, v1alpha1.ReasonClientSilent)
	}
	nothing := of(0, 0)
	nothing.Result = &results.Trial{Summary: results.Summary{RunSummary: true}}
	if v := somethingMeasured(nothing); v.Reason != v1alpha1.ReasonNothingMeasured {
		t.Errorf("nobody committed anything: %+v, want %s", v, v1alpha1.ReasonNothingMeasured)
	}
}
