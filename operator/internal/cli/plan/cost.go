package plan

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	planner "assay.dev/assay/operator/internal/experiment/plan"
)

// prices is a price list for nodes, by the hour.
type prices struct {
	// Currency follows amounts, such as EUR.
	Currency string `json:"currency"`
	// Pools has prices by the name of the pool. InstanceTypes has prices by the nodes' label
	// node.kubernetes.io/instance-type. The price of a pool wins.
	Pools         map[string]float64 `json:"pools,omitempty"`
	InstanceTypes map[string]float64 `json:"instanceTypes,omitempty"`
	// Default is the price of all other nodes. Nil: the list has no price for them.
	Default *float64 `json:"default,omitempty"`
}

// readPrices reads a price list.
func readPrices(path string) (*prices, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, session.Usage(fmt.Errorf("--prices: %w", err))
	}
	var p prices
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		return nil, session.Usage(fmt.Errorf("--prices %s: %w", path, err))
	}
	all := slices.Concat(slices.Collect(maps.Values(p.Pools)), slices.Collect(maps.Values(p.InstanceTypes)))
	if p.Default != nil {
		all = append(all, *p.Default)
	}
	if len(all) == 0 {
		return nil, session.Usage(fmt.Errorf("--prices %s has no price: it needs pools, instanceTypes or default", path))
	}
	for _, price := range all {
		if !(price >= 0 && price < 1e6) {
			return nil, session.Usage(fmt.Errorf("--prices %s: %g is no price of a node for an hour", path, price))
		}
	}
	return &p, nil
}

// held are the nodes with the same labels that a trial holds.
type held struct {
	where map[string]string // labels of the nodes
	nodes int
	// known: the cluster has matching nodes. Otherwise each pod counts as one node.
	known bool
	types []string // instance types of the nodes
}

// heldNodes returns the nodes that a trial uses. Pods are spread, so each pod uses a node of its
// own while there are enough nodes.
func heldNodes(d demand, f fit) []held {
	var out []held
	for _, g := range d.groups {
		i := slices.IndexFunc(out, func(h held) bool { return maps.Equal(h.where, g.where) })
		if i < 0 {
			i, out = len(out), append(out, held{where: g.where})
		}
		out[i].nodes += g.pods
	}
	for i := range out {
		h := &out[i]
		there := 0
		for k := range f.nodes {
			n := &f.nodes[k]
			if !n.takes(h.where) {
				continue
			}
			there++
			if kind := n.labels[corev1.LabelInstanceTypeStable]; !slices.Contains(h.types, kind) {
				h.types = append(h.types, kind)
			}
		}
		if f.err == nil && there > 0 {
			h.nodes, h.known = min(h.nodes, there), true
		}
	}
	return out
}

// of returns the price of a node. If the nodes have several types, it returns the highest price.
func (p *prices) of(h held) (float64, error) {
	if price, ok := p.Pools[h.where[v1alpha1.LabelPool]]; ok {
		return price, nil
	}
	highest, found := 0.0, false
	for _, kind := range h.types {
		price, ok := p.InstanceTypes[kind]
		if !ok && p.Default == nil {
			return 0, fmt.Errorf("the price list has no price for nodes%s of instance type %q, and no default", onNodes(h.where), kind)
		} else if !ok {
			price = *p.Default
		}
		highest, found = max(highest, price), true
	}
	switch {
	case found:
		return highest, nil
	case p.Default != nil:
		return *p.Default, nil
	}
	return 0, fmt.Errorf("the price list has no price for nodes%s, and no default", onNodes(h.where))
}

// bill is the cost of a trial for an hour.
type bill struct {
	nodes int
	money float64
	known bool // the cluster has the nodes
}

// billOf returns the bill of a trial. It has no money without a price list.
func billOf(d demand, f fit, list *prices) (bill, error) {
	b := bill{known: true}
	for _, h := range heldNodes(d, f) {
		b.nodes, b.known = b.nodes+h.nodes, b.known && h.known
		if list == nil {
			continue
		}
		price, err := list.of(h)
		if err != nil {
			return b, err
		}
		b.money += price * float64(h.nodes)
	}
	return b, nil
}

// cost is the cost of the trials of a plan, without repeated trials.
type cost struct {
	list    *prices // nil: the cost has no money
	each    time.Duration
	largest int // number of nodes of the largest trial
	// nodes and money are those of an average trial. money is for an hour.
	nodes, money float64
	// known: the cluster has the nodes. atMost: the trials may cost less.
	known, atMost bool
}

// costOf returns the cost of the trials. all are the demands of the points. Each point gets the
// same number of trials.
func costOf(p *planner.Plan, largest demand, all []demand, f fit, o Options) (c cost, err error) {
	if o.Prices != "" {
		if c.list, err = readPrices(o.Prices); err != nil {
			return c, err
		}
	}
	most, err := billOf(largest, f, c.list)
	c.largest, c.known = most.nodes, true
	for _, d := range all {
		one, oneErr := billOf(d, f, c.list)
		c.nodes += float64(one.nodes) / float64(len(all))
		c.money, c.known = c.money+one.money/float64(len(all)), c.known && one.known
		err = cmp.Or(err, oneErr)
	}
	if err != nil {
		return c, session.Usage(fmt.Errorf("--prices %s: %w", o.Prices, err))
	}
	run, _, script := timeOf(p)
	c.each, c.atMost = run+o.Overhead, script || !c.known
	return c, nil
}

// takes returns the node time of so many trials: the sum over all nodes.
func (c cost) takes(trials int) time.Duration {
	return time.Duration(float64(trials) * c.nodes * float64(c.each))
}

// price returns the price of that many trials.
func (c cost) price(trials int) float64 { return float64(trials) * c.each.Hours() * c.money }

// write prints the cost of the trials in node-hours and, with a price list, in money.
func (c cost) write(b *strings.Builder, p *planner.Plan, o Options) {
	about := "about"
	if c.atMost {
		about = "at most"
	}
	fmt.Fprintf(b, "\nCost\n\n  the largest trial: %s for %s = %s node-hours", count(c.largest, "node"), short(c.each), planner.Hours(time.Duration(c.largest)*c.each))
	if !c.known {
		b.WriteString(", with a node for each pod, since nodes are not known")
	}
	fmt.Fprintf(b, "\n  all %s: %s %s node-hours\n", trials(p), about, spread(planner.Hours(c.takes(p.Trials())), planner.Hours(c.takes(p.MostTrials()))))
	if c.list != nil {
		price := func(trials int) string { return strconv.FormatFloat(c.price(trials), 'f', 2, 64) }
		fmt.Fprintf(b, "  in money: %s %s (%s)\n", about, strings.TrimSpace(spread(price(p.Trials()), price(p.MostTrials()))+" "+c.list.Currency), o.Prices)
	}
	c.writeBudget(b, p)
}

// writeBudget compares spec.budget with the cost of the plan without repeated trials.
func (c cost) writeBudget(b *strings.Builder, p *planner.Plan) {
	budget := p.Spec.Budget
	if budget == nil {
		return
	}
	if q := budget.NodeHours; q != nil {
		enough := "enough, if no trial is repeated"
		if fit := c.fitting(p); fit < p.Trials() {
			enough = fmt.Sprintf("less than that: about %d of %d trials fit", fit, p.Trials())
		}
		fmt.Fprintf(b, "  spec.budget.nodeHours is %s: %s\n", q, enough)
	}
	if u := budget.Until; u != nil {
		fmt.Fprintf(b, "  spec.budget.until: no trial starts that would not be over at %s\n", u.UTC().Format(time.RFC3339))
	}
}

// fitting returns how many of the plan's trials fit into spec.budget.nodeHours.
func (c cost) fitting(p *planner.Plan) int {
	has, takes := p.Spec.Budget.NodeHours.AsApproximateFloat64(), c.takes(p.Trials()).Hours()
	if takes <= has {
		return p.Trials()
	}
	return int(float64(p.Trials())*has/takes + 1e-9)
}

// spread writes a range, or one number if both are equal.
func spread(low, high string) string {
	if low == high {
		return low
	}
	return low + " to " + high
}
