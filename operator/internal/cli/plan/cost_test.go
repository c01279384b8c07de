package plan_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/cli/plan"
	"assay.dev/assay/operator/internal/cli/session"
)

// clusterOf has four nodes in the pool servers, of two types, and one in the pool loaders.
func clusterOf(t *testing.T) func() (session.Cluster, error) {
	t.Helper()
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	for name, labels := range map[string][2]string{"s0": {"servers", "c6i"}, "s1": {"servers", "c6i"}, "s2": {"servers", "c5"}, "s3": {"servers", "c5"}, "l0": {"loaders", "m5"}} {
		b = b.WithObjects(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"assay.dev/pool": labels[0], corev1.LabelInstanceTypeStable: labels[1]}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
			}},
		})
	}
	c := b.Build()
	return func() (session.Cluster, error) { return session.Cluster{Client: c}, nil }
}

// The plan has 8 trials of 30 s. Half of them have 3 replicas and 2 clients, the others 5 replicas
// and 2 clients.
func TestCost(t *testing.T) {
	pools := []string{"placement={replicas: servers, clients: loaders}"}
	for name, tc := range map[string]struct {
		set    []string
		nodes  []string
		prices string
		want   []string
		fails  string
	}{
		"nodes of the cluster": {set: pools, want: []string{
			"the largest trial: 5 nodes for 30s = 0.0417 node-hours\n", // 4 servers and 1 loader
			"all 8 trials: about 0.3 node-hours\n",                     // 4 x 4 + 4 x 5 = 36 times 30 s
		}},
		"nodes of the flag":  {nodes: []string{"3x8x32Gi"}, want: []string{"the largest trial: 3 nodes for 30s", "all 8 trials: about 0.2 node-hours"}},
		"nodes not known":    {nodes: []string{}, want: []string{"the largest trial: 7 nodes for 30s = 0.0583 node-hours, with a node for each pod, since nodes are not known", "all 8 trials: at most 0.4 node-hours"}},
		"by pool":            {set: pools, prices: "currency: EUR\npools: {servers: 10, loaders: 2}\n", want: []string{"in money: about 2.47 EUR ("}},       // 4 x 30 s x (32 + 42)
		"by type":            {set: pools, prices: "currency: USD\ninstanceTypes: {c6i: 10, c5: 1, m5: 2}\n", want: []string{"in money: about 2.47 USD ("}}, // the dearest type of a pool counts
		"by default":         {set: pools, prices: "default: 100\n", want: []string{"in money: about 30.00 ("}},
		"no price":           {set: pools, prices: "pools: {servers: 10}\n", fails: `no price for nodes in pool loaders of instance type "m5", and no default`},
		"an unknown field":   {set: pools, prices: "pool: {servers: 10}\n", fails: `unknown field "pool"`},
		"no prices":          {set: pools, prices: "currency: EUR\n", fails: "has no price"},
		"a negative price":   {set: pools, prices: "default: -1\n", fails: "-1 is no price"},
		"a budget":           {set: append(pools, "budget={nodeHours: 1}"), want: []string{"spec.budget.nodeHours is 1: enough, if no trial is repeated"}},
		"a small budget":     {set: append(pools, `budget={nodeHours: "0.15"}`), want: []string{"less than that: about 4 of 8 trials fit"}},
		"a deadline":         {set: append(pools, `budget={until: "2026-11-27T08:00:00Z"}`), want: []string{"spec.budget.until: no trial starts that would not be over at 2026-11-27T08:00:00Z"}},
		"a budget of none":   {set: append(pools, "budget={nodeHours: 0}"), fails: "must be above 0 and at most 1000000"},
		"a budget of nought": {set: append(pools, "budget={}"), fails: "spec.budget"},
	} {
		t.Run(name, func(t *testing.T) {
			o := plan.Options{Set: tc.set, Nodes: tc.nodes, Offline: tc.nodes != nil}
			if tc.prices != "" {
				o.Prices = filepath.Join(t.TempDir(), "prices.yaml")
				if err := os.WriteFile(o.Prices, []byte(tc.prices), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := run(t, clusterOf(t), o)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Fatalf("error %v, want %q", err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
		})
	}
}

// -o json and yaml have the same cost, budget and sets of nodes as the text.
func TestCostAsData(t *testing.T) {
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte("currency: EUR\npools: {servers: 10, loaders: 2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	type data struct {
		Sets         []string
		TrialSeconds float64
		TotalSeconds float64
		Cost         struct {
			LargestTrialNodes                               int
			LargestTrialNodeHours, NodeHours, MostNodeHours float64
			NodesKnown, AtMost                              bool
			Money                                           *struct {
				Currency           string
				Amount, MostAmount float64
			}
		}
		Budget *struct {
			NodeHours  float64
			TrialsPaid int
			Until      string
		}
		Order []struct{ Set string }
	}
	planned := func(o plan.Options) (d data) {
		t.Helper()
		for _, form := range []string{"json", "yaml"} {
			o.Output = form
			text, err := run(t, clusterOf(t), o)
			if err != nil {
				t.Fatal(err)
			}
			d = data{}
			if err := yaml.Unmarshal([]byte(text), &d); err != nil { // JSON is YAML
				t.Fatalf("%v:\n%s", err, text)
			}
			if form == "json" && !json.Valid([]byte(text)) {
				t.Errorf("no JSON:\n%s", text)
			}
		}
		return d
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}

	// As in TestCost: 36 times 30 s, of which 32 of servers.
	d := planned(plan.Options{Prices: prices, Set: []string{"placement={replicas: servers, clients: loaders}", `budget={nodeHours: "0.15", until: "2026-11-27T09:00:00+01:00"}`}})
	near("nodes of the largest trial", float64(d.Cost.LargestTrialNodes), 5)
	near("its node-hours", d.Cost.LargestTrialNodeHours, 5*30./3600)
	near("node-hours", d.Cost.NodeHours, 36*30./3600)
	near("most node-hours", d.Cost.MostNodeHours, 36*30./3600)
	near("time", d.TotalSeconds, 8*30)
	if d.Cost.Money == nil || d.Budget == nil {
		t.Fatalf("money %v and budget %v, want both", d.Cost.Money, d.Budget)
	}
	near("money", d.Cost.Money.Amount, 4*30./3600*(32+42))
	near("most money", d.Cost.Money.MostAmount, 4*30./3600*(32+42))
	near("budget", d.Budget.NodeHours, 0.15)
	if !d.Cost.NodesKnown || d.Cost.AtMost || d.Cost.Money.Currency != "EUR" || d.Budget.TrialsPaid != 4 || d.Budget.Until != "2026-11-27T08:00:00Z" || d.Sets != nil || d.Order[0].Set != "" {
		t.Errorf("got %+v, money %+v, budget %+v", d, d.Cost.Money, d.Budget)
	}

	// Two sets halve the time, and not the cost.
	d = planned(plan.Options{Nodes: []string{"9x8x32Gi"}, Set: []string{"placement={sets: [{name: a, replicas: sa, clients: la}, {name: b, replicas: sb, clients: lb}]}"}})
	near("time on two sets", d.TotalSeconds, 4*30)
	near("node-hours on two sets", d.Cost.NodeHours, (4*5+4*7)*30./3600)
	on := map[string]int{}
	for _, trial := range d.Order {
		on[trial.Set]++
	}
	if strings.Join(d.Sets, " ") != "a b" || on["a"] != 4 || on["b"] != 4 || d.Cost.Money != nil || d.Budget != nil {
		t.Errorf("sets %v, trials by set %v, money %v, budget %v", d.Sets, on, d.Cost.Money, d.Budget)
	}

	// Without known nodes, each pod counts as a node.
	d = planned(plan.Options{Offline: true})
	if d.Cost.NodesKnown || !d.Cost.AtMost || d.Cost.LargestTrialNodes != 7 {
		t.Errorf("nodes that are not known: %+v", d.Cost)
	}

	if _, err := run(t, clusterOf(t), plan.Options{Output: "json", Prices: "none.yaml"}); !session.IsUsage(err) {
		t.Errorf("a price list that is not there: %v", err)
	}
}
