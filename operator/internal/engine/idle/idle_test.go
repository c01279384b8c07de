package idle

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

func TestDisturbance(t *testing.T) {
	on := func(machine, node string, cpus int, busy, stolen, own float64) Load {
		return Load{Pod: "pod-on-" + node, Node: node, Load: &protocol.Load{
			Machine: machine, CPUs: cpus, Seconds: 1, BusyCores: busy, StolenCores: stolen, OwnCores: own}}
	}
	for name, tc := range map[string]struct {
		loads         []Load
		steal, others float64
		want          string // empty: idle
	}{
		"nothing runs":             {loads: []Load{on("a", "n1", 2, 0.1, 0, 0)}},
		"the trial's own work":     {loads: []Load{on("a", "n1", 2, 1.9, 0, 1.8)}},
		"another process":          {loads: []Load{on("a", "n1", 2, 1.1, 0, 0.1)}, want: "others than the trial took 50% of the processors of node n1; disturbances.idleThreshold is 25%"},
		"the same on a large node": {loads: []Load{on("a", "n1", 16, 1.1, 0, 0.1)}},
		"a hypervisor":             {loads: []Load{on("a", "n1", 2, 0, 0.04, 0)}, want: "the hypervisor of node n1 took 2% of its processors; tolerances.steal is 1%"},
		"a hypervisor, tolerated":  {loads: []Load{on("a", "n1", 2, 0, 0.3, 0)}, steal: 0.4},
		"both together":            {loads: []Load{on("a", "n1", 2, 0.3, 0.3, 0)}, steal: 0.4, want: "others than the trial took 30%"},
		"nothing matters":          {loads: []Load{on("a", "n1", 2, 2, 1, 0)}, steal: 1, others: 1},
		"nodes of one machine: the pods' work adds up": {loads: []Load{on("a", "n1", 2, 1.5, 0, 0.7), on("a", "n2", 2, 1.4, 0, 0.7)}},
		"nodes of their own machines":                  {loads: []Load{on("a", "n1", 2, 1.5, 0, 0.7), on("b", "n2", 2, 1.4, 0, 1.4)}, want: "of node n1"},
		"machines without a boot ID are told apart":    {loads: []Load{on("", "n1", 2, 0.7, 0, 0.7), on("", "n2", 2, 1.4, 0, 0.7)}, want: "of node n2"},
		"own work that was read a little later":        {loads: []Load{on("a", "n1", 2, 1, 0, 1.1)}},
		"a pod that says nothing":                      {loads: []Load{on("a", "n1", 2, 0, 0, 0), {Pod: "client-0"}}, want: "the agent of client-0 has not said yet"},
	} {
		t.Run(name, func(t *testing.T) {
			steal, others := tc.steal, tc.others
			if steal == 0 {
				steal = 0.01
			}
			if others == 0 {
				others = 0.25
			}
			got := Disturbance(tc.loads, steal, others)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestLead(t *testing.T) {
	for name, tc := range map[string]struct {
		gate *v1alpha1.IdleGate
		want time.Duration
	}{
		"not to wait": {nil, time.Second},
		"idle":        {&v1alpha1.IdleGate{Idle: true}, 500 * time.Millisecond},
		"never idle":  {&v1alpha1.IdleGate{WaitedMilliseconds: 60000}, time.Second},
	} {
		if got := Lead(tc.gate); got != tc.want {
			t.Errorf("%s: the run is sent %v before the load begins, want %v", name, got, tc.want)
		}
	}
}

func TestNearLead(t *testing.T) {
	idle := &v1alpha1.IdleGate{Idle: true}
	for name, tc := range map[string]struct {
		gate  *v1alpha1.IdleGate
		first time.Duration
		want  time.Duration
	}{
		"no fault":                   {idle, time.Hour, 250 * time.Millisecond},
		"not to wait":                {nil, time.Hour, 250 * time.Millisecond},
		"a fault as the load begins": {idle, 0, 500 * time.Millisecond},
		"a fault before the load":    {idle, -100 * time.Millisecond, 600 * time.Millisecond},
		"a fault shortly after":      {idle, 100 * time.Millisecond, 400 * time.Millisecond},
		"the machine was never idle": {&v1alpha1.IdleGate{}, time.Hour, time.Second},
	} {
		if got := NearLead(tc.gate, tc.first); got != tc.want {
			t.Errorf("%s: the run is sent %v before the load begins, want %v", name, got, tc.want)
		}
	}
}
