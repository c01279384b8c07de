package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

const (
	// notReadyAfter is when the control plane marks a node without answers as NotReady.
	// evictedAfter is when it gives up the pods of that node.
	notReadyAfter = 40 * time.Second
	evictedAfter  = 5 * time.Minute
)

// node runs pods. Either its kubelet and all its processes are up, or none of them is.
type node struct {
	name, pool string
	up, cut    bool // cut: the node is up, but no packet reaches it
	boots      int
	pods       map[types.UID]*agent
}

// reachable: the control plane and the managers reach it.
func (n *node) reachable() bool { return n.up && !n.cut }

// cluster plays Kubernetes: controllers of StatefulSets and Jobs, the scheduler, kubelets, and the
// garbage collector.
type cluster struct {
	*server

	nodes  []*node
	pools  map[string][]*node
	agents map[types.UID]*agent
	made   map[types.UID]map[int]bool // pods that a Job has made
	owned  map[types.UID]map[named]bool
	serial int
	of     *world
}

// named is an object's kind and name.
type named struct {
	kind string
	types.NamespacedName
}

func newCluster(a *server) *cluster {
	c := &cluster{server: a, pools: map[string][]*node{}, agents: map[types.UID]*agent{}, made: map[types.UID]map[int]bool{}, owned: map[types.UID]map[named]bool{}}
	a.changed = append(a.changed, c.see)
	return c
}

func (c *cluster) addNode(name, pool string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelPool: pool}}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("500"),
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := c.create(n); err != nil {
		panic(err)
	}
	one := &node{name: name, pool: pool, up: true, pods: map[types.UID]*agent{}}
	c.nodes, c.pools[pool] = append(c.nodes, one), append(c.pools[pool], one)
}

// own records the owners of an object.
func (c *cluster) own(kind string, old, now client.Object) {
	if old != nil {
		for _, r := range old.GetOwnerReferences() {
			delete(c.owned[r.UID], named{kind, client.ObjectKeyFromObject(old)})
		}
	}
	if now == nil {
		return
	}
	for _, r := range now.GetOwnerReferences() {
		if c.owned[r.UID] == nil {
			c.owned[r.UID] = map[named]bool{}
		}
		c.owned[r.UID][named{kind, client.ObjectKeyFromObject(now)}] = true
	}
}

// see carries out the consequences of a change.
func (c *cluster) see(kind string, old, now client.Object) {
	c.own(kind, old, now)
	switch {
	case now == nil:
		uid := old.GetUID()
		c.after(c.between(5*time.Millisecond, 300*time.Millisecond), func() { c.collect(uid) })
	case old == nil && len(now.GetOwnerReferences()) > 0:
		c.after(time.Second, func() { c.orphan(kind, now) })
	}
	o := now
	if o == nil {
		o = old
	}
	key := client.ObjectKeyFromObject(o)
	soon := c.between(2*time.Millisecond, 20*time.Millisecond)
	switch kind {
	case "StatefulSet":
		if now != nil {
			c.after(soon, func() { c.syncSet(key) })
		}
	case "Job":
		if now != nil && old == nil {
			c.after(soon, func() { c.syncJob(key) })
		}
	case "Pod":
		c.seePod(old, now)
		if owner := metav1.GetControllerOf(o); now == nil && owner != nil && owner.Kind == "StatefulSet" {
			c.after(soon, func() { c.syncSet(types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}) })
		}
	}
}

func (c *cluster) seePod(old, now client.Object) {
	pod, _ := now.(*corev1.Pod)
	before, _ := old.(*corev1.Pod)
	switch {
	case pod == nil:
		if a := c.agents[before.UID]; a != nil {
			a.removed()
		}
	case pod.Spec.NodeName == "":
		uid, key := pod.UID, client.ObjectKeyFromObject(pod)
		c.after(c.between(2*time.Millisecond, 20*time.Millisecond), func() { c.bind(uid, key) })
	case pod.DeletionTimestamp != nil && (before == nil || before.DeletionTimestamp == nil):
		if a := c.agents[pod.UID]; a != nil {
			a.terminate()
		}
	}
}

// collect deletes the objects that a deleted object owned.
func (c *cluster) collect(owner types.UID) {
	kinds := []string{"Trial", "StatefulSet", "Job", "Pod", "Service", "ConfigMap", "Secret", "ControllerRevision"}
	order := func(x, y named) int {
		return cmp.Or(slices.Index(kinds, x.kind)-slices.Index(kinds, y.kind), strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	}
	for _, n := range slices.SortedFunc(maps.Keys(c.owned[owner]), order) {
		if o := c.find(n.kind, n.NamespacedName); o != nil && slices.Contains(kinds, n.kind) {
			c.trace("garbage collector deletes %s %s", n.kind, o.GetName())
			_ = c.remove(o, client.DeleteOptions{})
		}
	}
	delete(c.owned, owner)
}

// orphan deletes an object whose owner was already gone when it was made.
func (c *cluster) orphan(kind string, o client.Object) {
	there := c.find(kind, client.ObjectKeyFromObject(o))
	if there == nil || there.GetUID() != o.GetUID() {
		return
	}
	for _, r := range there.GetOwnerReferences() {
		owner := c.find(r.Kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: r.Name})
		if owner == nil || owner.GetUID() != r.UID {
			c.trace("garbage collector deletes %s %s, an orphan", kind, o.GetName())
			_ = c.remove(there, client.DeleteOptions{})
			return
		}
	}
}

// syncSet makes the missing pods of a StatefulSet. It deletes failed pods first.
func (c *cluster) syncSet(key types.NamespacedName) {
	set, _ := c.find("StatefulSet", key).(*appsv1.StatefulSet)
	if set == nil || set.DeletionTimestamp != nil {
		return
	}
	for i := range int(*set.Spec.Replicas) {
		name := fmt.Sprintf("%s-%d", set.Name, i)
		there, _ := c.find("Pod", types.NamespacedName{Namespace: key.Namespace, Name: name}).(*corev1.Pod)
		if there != nil {
			if there.Status.Phase == corev1.PodFailed && there.DeletionTimestamp == nil {
				_ = c.remove(there, client.DeleteOptions{})
			}
			continue
		}
		c.makePod(set, "StatefulSet", name, &set.Spec.Template, map[string]string{appsv1.StatefulSetPodNameLabel: name, "apps.kubernetes.io/pod-index": strconv.Itoa(i)})
	}
}

// syncJob makes each pod of a Job once: its backoff limit is 0.
func (c *cluster) syncJob(key types.NamespacedName) {
	job, _ := c.find("Job", key).(*batchv1.Job)
	if job == nil || job.DeletionTimestamp != nil {
		return
	}
	for i := range int(*job.Spec.Completions) {
		if c.made[job.UID][i] {
			continue
		}
		if c.made[job.UID] == nil {
			c.made[job.UID] = map[int]bool{}
		}
		c.made[job.UID][i] = true
		c.serial++
		name := fmt.Sprintf("%s-%d-%05d", job.Name, i, c.serial)
		c.makePod(job, "Job", name, &job.Spec.Template, map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(i)})
	}
}

func (c *cluster) makePod(owner client.Object, kind, name string, of *corev1.PodTemplateSpec, more map[string]string) {
	yes := true
	version := map[string]string{"StatefulSet": "apps/v1", "Job": "batch/v1"}[kind]
	pod := &corev1.Pod{ObjectMeta: *of.ObjectMeta.DeepCopy(), Spec: *of.Spec.DeepCopy()}
	pod.Namespace, pod.Name = owner.GetNamespace(), name
	pod.Labels = labels.Merge(pod.Labels, more)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}}
	pod.Status.Phase = corev1.PodPending
	if err := c.create(pod); err != nil {
		panic(err)
	}
}

// bind assigns a node to a pod, and retries while there is none.
func (c *cluster) bind(uid types.UID, key types.NamespacedName) {
	pod, _ := c.find("Pod", key).(*corev1.Pod)
	if pod == nil || pod.UID != uid || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return
	}
	all := c.nodes
	if wanted := pod.Spec.NodeSelector[v1alpha1.LabelPool]; wanted != "" {
		all = c.pools[wanted]
	}
	var fits []*node
	for _, n := range all {
		if c.ready(n.name) {
			fits = append(fits, n)
		}
	}
	if len(fits) == 0 {
		c.after(5*time.Second, func() { c.bind(uid, key) })
		return
	}
	n := fits[c.rng.IntN(len(fits))]
	bound := pod.DeepCopy()
	bound.Spec.NodeName = n.name
	c.write(bound)
	a := newAgent(c, n, bound)
	n.pods[uid], c.agents[uid] = a, a
	c.after(c.between(30*time.Millisecond, 400*time.Millisecond), a.begin)
}

// write replaces an object, whatever version it has now. A real kubelet or controller retries until
// it succeeds.
func (c *cluster) write(o client.Object) {
	there := c.find(kindOf(o), client.ObjectKeyFromObject(o))
	if there == nil || there.GetUID() != o.GetUID() {
		return
	}
	c.put(kindOf(o), client.ObjectKeyFromObject(o), there, o)
}

func (c *cluster) ready(name string) bool {
	n, _ := c.find("Node", types.NamespacedName{Name: name}).(*corev1.Node)
	return n != nil && n.Status.Conditions[0].Status == corev1.ConditionTrue
}

func (c *cluster) setReady(name string, ready bool) {
	n, _ := c.find("Node", types.NamespacedName{Name: name}).(*corev1.Node)
	if n == nil {
		return
	}
	status := corev1.ConditionTrue
	if !ready {
		status = corev1.ConditionUnknown
	}
	now := n.DeepCopy()
	now.Status.Conditions[0].Status = status
	c.write(now)
}

// lose takes a node down or cuts it off, for the given time; 0: for ever.
func (c *cluster) lose(n *node, cut bool, d time.Duration) {
	n.boots++
	boot := n.boots
	if cut {
		n.cut = true
	} else {
		n.up = false
		for _, a := range n.inOrder() {
			a.powerOff()
		}
	}
	lost := func() bool { return n.boots == boot && !n.reachable() }
	c.after(notReadyAfter, func() {
		if lost() {
			c.setReady(n.name, false)
		}
	})
	c.after(notReadyAfter+evictedAfter, func() {
		if lost() {
			c.abandon(n)
		}
	})
	if d > 0 {
		c.after(d, func() { c.restore(n) })
	}
}

// abandon marks the pods of a node without answers as deleted.
func (c *cluster) abandon(n *node) {
	for _, a := range n.inOrder() {
		c.evict(a, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
	}
}

// evict deletes a pod for the cluster's needs, after it has reported that.
func (c *cluster) evict(a *agent, reason, message string) {
	p, _ := c.find("Pod", a.key).(*corev1.Pod)
	if p == nil || p.UID != a.uid || p.DeletionTimestamp != nil {
		return
	}
	now := p.DeepCopy()
	now.Status.Conditions = append(now.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	c.write(now)
	_ = c.remove(now, client.DeleteOptions{})
}

// restore brings a node back. Its kubelet ends the pods that were deleted meanwhile, and starts the
// others.
func (c *cluster) restore(n *node) {
	if n.reachable() {
		return
	}
	off := !n.up
	n.up, n.cut = true, false
	n.boots++
	c.trace("node %s is back", n.name)
	c.after(c.between(time.Second, 5*time.Second), func() {
		if n.reachable() {
			c.setReady(n.name, true)
		}
	})
	for _, a := range n.inOrder() {
		p := c.find("Pod", a.key)
		switch {
		case p == nil || p.GetUID() != a.uid || p.GetDeletionTimestamp() != nil:
			a.terminate()
		case off:
			a.powerOn()
		default:
			a.act()
		}
	}
}

func (n *node) inOrder() []*agent {
	out := make([]*agent, 0, len(n.pods))
	for _, a := range n.pods {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *agent) int { return a.number - b.number })
	return out
}
