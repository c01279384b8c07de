package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
)

// Pod is a pod that a trial will have.
type Pod struct {
	// Kind of pod, in the singular: "replica".
	What   string
	Labels map[string]string
	Spec   *corev1.PodSpec
}

// Cluster has the present nodes.
type Cluster struct {
	nodes []node
	index map[string]int // by name
	// labeled has the nodes with a label, by its key and value. A key is added when a pod first
	// asks for it.
	labeled map[string]map[string][]int
}

// node is a node with its resources.
type node struct {
	name        string
	labels      labels.Set
	taints      []corev1.Taint
	off         bool // cordoned, or not ready: it may come back
	allocatable amounts
	// Requests of the pods on it: those of trials, and those of all others.
	trials, others amounts
	running        []labels.Set // labels of the pods on it
}

// amounts of resources: CPU in thousandths, all else in units.
type amounts map[corev1.ResourceName]int64

// NewCluster returns a cluster of empty nodes.
func NewCluster(nodes []corev1.Node) Cluster {
	c := Cluster{index: map[string]int{}, labeled: map[string]map[string][]int{}}
	for i := range nodes {
		n := &nodes[i]
		if _, twice := c.index[n.Name]; twice {
			continue
		}
		c.index[n.Name] = len(c.nodes)
		c.nodes = append(c.nodes, node{
			name: n.Name, labels: n.Labels, taints: durable(n.Spec.Taints), off: n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, passing) || !ready(n),
			allocatable: amountsOf(n.Status.Allocatable), trials: amounts{}, others: amounts{},
		})
	}
	slices.SortFunc(c.nodes, func(a, b node) int { return strings.Compare(a.name, b.name) })
	for i := range c.nodes {
		c.index[c.nodes[i].name] = i
	}
	return c
}

// Add adds pods on the nodes. ofTrial reports whether a pod goes when its trial is over. Finished
// pods use nothing.
func (c *Cluster) Add(pods []corev1.Pod, ofTrial func(*corev1.Pod) bool) {
	for i := range pods {
		p := &pods[i]
		at, known := c.index[p.Spec.NodeName]
		if !known || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		n := &c.nodes[at]
		if ofTrial(p) {
			n.trials.add(requests(&p.Spec))
			continue
		}
		n.others.add(requests(&p.Spec))
		n.running = append(n.running, p.Labels)
	}
}

// passing reports whether a taint is one of the cluster's own, such as
// node.kubernetes.io/not-ready, which come and go.
func passing(t corev1.Taint) bool {
	return t.Effect != corev1.TaintEffectPreferNoSchedule && strings.HasPrefix(t.Key, "node.kubernetes.io/")
}

// durable returns the taints that the owner of the nodes has set.
func durable(taints []corev1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !passing(t) {
			out = append(out, t)
		}
	}
	return out
}

func ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return true // the scheduler decides about a node without the label
}

// with returns the nodes that have a label, in their order.
func (c Cluster) with(key, value string) []int {
	if c.labeled[key] == nil {
		c.labeled[key] = map[string][]int{}
		for i := range c.nodes {
			if v, has := c.nodes[i].labels[key]; has {
				c.labeled[key][v] = append(c.labeled[key][v], i)
			}
		}
	}
	return c.labeled[key][value]
}

// selected returns nodes in their order, among them all that a pod selects: the nodes with the
// rarest of its labels.
func (c Cluster) selected(p *Pod) []int {
	least, found := []int(nil), false
	for key, value := range p.Spec.NodeSelector {
		if nodes := c.with(key, value); !found || len(nodes) < len(least) {
			least, found = nodes, true
		}
	}
	if found {
		return least
	}
	all := make([]int, len(c.nodes))
	for i := range all {
		all[i] = i
	}
	return all
}

// Room reports whether there is a place for all pods. It packs the pods with the largest requests
// first, each onto the first node with room. In rare cases a scheduler that knew all pods might
// place more. And a scheduler that places them one by one may fail where Room succeeds: the trial
// then ends by its own deadline.
func (c Cluster) Room(pods []Pod) Room {
	now := func(n *node) (amounts, bool) { return n.free(n.others, n.trials), !n.off }
	then := func(n *node) (amounts, bool) { return n.free(n.others), !n.off }
	empty := func(n *node) (amounts, bool) { return n.free(), true }
	if left := c.place(pods, now); len(left) == 0 {
		return Room{State: Start}
	}
	left := c.place(pods, then)
	if len(left) == 0 {
		return Room{State: Queued, Missing: "Waiting for other trials on its pools to be over: " + c.lacks(c.place(pods, now), now) + "."}
	}
	if never := c.place(pods, empty); len(never) > 0 {
		return Room{State: Unschedulable, Missing: "It can never start on the nodes that there are, even with nothing else on them: " + c.lacks(never, empty) + "."}
	}
	return Room{State: InsufficientResources, Missing: "Waiting for room beside what else runs there: " + c.lacks(left, then) + "."}
}

func (n *node) free(used ...amounts) amounts {
	left := maps.Clone(n.allocatable)
	for _, u := range used {
		for name, q := range u {
			left[name] -= q
		}
	}
	return left
}

// view returns the free resources of a node, and whether it takes pods at all.
type view func(*node) (amounts, bool)

// place returns the pods for which there is no node.
func (c Cluster) place(pods []Pod, see view) (left []Pod) {
	offers := map[int]*offer{} // nodes that some pod was offered
	demand := demands(pods)
	for _, p := range byDemand(pods, demand) {
		asked := demand[p.Spec]
		there := c.selected(&p)
		i := slices.IndexFunc(there, func(i int) bool {
			o := offers[i]
			if o == nil {
				o = &offer{node: &c.nodes[i]}
				o.free, o.takes = see(o.node)
				offers[i] = o
			}
			if !o.takes || !admits(o.node, &p) || short(o.free, asked) != "" || keepsAway(p.Spec, o.running...) {
				return false
			}
			return !slices.ContainsFunc(o.on, func(other *Pod) bool { return keepsAway(p.Spec, other.Labels) || keepsAway(other.Spec, p.Labels) })
		})
		if i < 0 {
			left = append(left, p)
			continue
		}
		o := offers[there[i]]
		for name, q := range asked {
			o.free[name] -= q
		}
		o.on = append(o.on, &p)
	}
	return left
}

// offer is a node with its free resources, less those of the pods placed on it.
type offer struct {
	*node
	takes bool
	free  amounts
	on    []*Pod
}

// demands returns the requests of each kind of pod. Pods of one kind share a spec.
func demands(pods []Pod) map[*corev1.PodSpec]amounts {
	out := map[*corev1.PodSpec]amounts{}
	for i := range pods {
		if spec := pods[i].Spec; out[spec] == nil {
			out[spec] = requests(spec)
		}
	}
	return out
}

// byDemand sorts pods: those that are hardest to place come first.
func byDemand(pods []Pod, demand map[*corev1.PodSpec]amounts) []Pod {
	out := slices.Clone(pods)
	slices.SortStableFunc(out, func(a, b Pod) int {
		x, y := demand[a.Spec], demand[b.Spec]
		return cmp.Or(cmp.Compare(y[corev1.ResourceCPU], x[corev1.ResourceCPU]), cmp.Compare(y[corev1.ResourceMemory], x[corev1.ResourceMemory]))
	})
	return out
}

// admits reports whether a node has the labels of a pod's selector, and the pod tolerates its
// taints.
func admits(n *node, p *Pod) bool { return selects(n, p) && taintedBy(n, p) == "" }

func selects(n *node, p *Pod) bool {
	for key, value := range p.Spec.NodeSelector {
		if has, there := n.labels[key]; !there || has != value {
			return false
		}
	}
	return true
}

func taintedBy(n *node, p *Pod) string {
	for _, t := range n.taints {
		if !slices.ContainsFunc(p.Spec.Tolerations, func(tol corev1.Toleration) bool { return tol.ToleratesTaint(klog.Background(), &t, false) }) {
			return t.ToString()
		}
	}
	return ""
}

// keepsAway reports whether a pod may not share a node with a pod that has these labels.
func keepsAway(spec *corev1.PodSpec, others ...labels.Set) bool {
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil {
		return false
	}
	for _, term := range spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil || term.TopologyKey != corev1.LabelHostname {
			continue // Assay's own pods have none of these
		}
		if slices.ContainsFunc(others, func(l labels.Set) bool { return selector.Matches(l) }) {
			return true
		}
	}
	return false
}

// short names the first resource that the node lacks, in a fixed order, or "".
func short(free, asked amounts) corev1.ResourceName {
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if asked[name] > free[name] {
			return name
		}
	}
	return ""
}

// requests returns the requests of a pod as the scheduler counts them, and the pod itself.
func requests(spec *corev1.PodSpec) amounts {
	a := amountsOf(resourcehelper.PodRequests(defaulted(spec), resourcehelper.PodResourcesOptions{}))
	a[corev1.ResourcePods] = 1
	for name, q := range a {
		if q == 0 {
			delete(a, name)
		}
	}
	return a
}

// defaulted returns a pod as the API server stores it: a container with a limit and no request
// requests its limit.
func defaulted(spec *corev1.PodSpec) *corev1.Pod {
	pod := &corev1.Pod{Spec: *spec}
	fill := func(containers []corev1.Container) []corev1.Container {
		out := slices.Clone(containers)
		for i := range out {
			asked := maps.Clone(out[i].Resources.Limits)
			if asked == nil {
				continue
			}
			maps.Copy(asked, out[i].Resources.Requests)
			out[i].Resources.Requests = asked
		}
		return out
	}
	pod.Spec.Containers, pod.Spec.InitContainers = fill(spec.Containers), fill(spec.InitContainers)
	return pod
}

// Requests returns the requests of a pod for CPU and memory, as the scheduler counts them.
func Requests(spec *corev1.PodSpec) (cpu, memory resource.Quantity) {
	list := resourcehelper.PodRequests(defaulted(spec), resourcehelper.PodResourcesOptions{})
	return list[corev1.ResourceCPU], list[corev1.ResourceMemory]
}

func amountsOf(list corev1.ResourceList) amounts {
	out := amounts{}
	for name, q := range list {
		if name == corev1.ResourceCPU {
			out[name] = q.MilliValue()
			continue
		}
		out[name] = q.Value()
	}
	return out
}

func (a amounts) add(more amounts) {
	for name, q := range more {
		a[name] += q
	}
}

// text writes an amount in the notation of specs.
func text(name corev1.ResourceName, q int64) string {
	switch name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(q, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(q, resource.BinarySI).String()
	default:
		return fmt.Sprint(q)
	}
}

// lacks says why pods find no node. For the first pod, it says for each node why it does not fit.
func (c Cluster) lacks(left []Pod, see view) string {
	p := left[0]
	n := 0
	for _, other := range left {
		if other.What == p.What {
			n++
		}
	}
	asked := requests(p.Spec)
	verb := "find"
	if n == 1 {
		verb = "finds"
	}
	return fmt.Sprintf("%s %s no node (%s). %s", counted(n, p.What+" pod"), verb, asks(asked), c.reasons(&p, asked, see))
}

// counted writes a number of things: 1 node, 2 nodes.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func asks(asked amounts) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if name != corev1.ResourcePods {
			parts = append(parts, fmt.Sprintf("%s %s", name, text(name, asked[name])))
		}
	}
	if len(parts) == 0 {
		return "each asks for no CPU and no memory"
	}
	return "each asks for " + strings.Join(parts, ", ")
}

// reasons counts why nodes do not fit one pod. The most frequent reason comes first.
func (c Cluster) reasons(p *Pod, asked amounts, see view) string {
	if len(c.nodes) == 0 {
		return "There is no node"
	}
	count, most := map[string]int{}, map[string]string{}
	for i := range c.nodes {
		why, free := c.nodes[i].against(p, asked, see)
		count[why]++
		if free != "" && (most[why] == "" || longer(free, most[why])) {
			most[why] = free
		}
	}
	kinds := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], strings.Compare(a, b)) })
	parts := make([]string, len(kinds))
	for i, k := range kinds {
		parts[i] = fmt.Sprintf("%d %s", count[k], k)
		if most[k] != "" {
			parts[i] += " (" + most[k] + " free at most)"
		}
	}
	return fmt.Sprintf("Of %s: %s", counted(len(c.nodes), "node"), strings.Join(parts, ", "))
}

// longer compares amounts as text.
func longer(a, b string) bool {
	x, errX := resource.ParseQuantity(a)
	y, errY := resource.ParseQuantity(b)
	return errX == nil && errY == nil && x.Cmp(y) > 0
}

// against says why a node does not fit a pod, and how much of a scarce resource is free.
func (n *node) against(p *Pod, asked amounts, see view) (why, free string) {
	left, takes := see(n)
	lacking := short(left, asked)
	switch taint := taintedBy(n, p); {
	case !selects(n, p):
		return "without the label " + labels.Set(p.Spec.NodeSelector).String(), ""
	case taint != "":
		return "with the taint " + taint, ""
	case !takes:
		return "cordoned or not ready", ""
	case lacking != "":
		return "with too little " + string(lacking), text(lacking, max(0, left[lacking]))
	default:
		return "full with other pods of the trial, or to be kept free of them", ""
	}
}
