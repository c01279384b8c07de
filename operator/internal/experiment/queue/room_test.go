package queue

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

func list(cpu, memory, pods string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory, corev1.ResourcePods: pods} {
		if text != "" {
			out[name] = resource.MustParse(text)
		}
	}
	return out
}

// machine makes a node of a pool, or of none.
func machine(name, pool, cpu, memory string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}
	if pool != "" {
		n.Labels[v1alpha1.LabelPool] = pool
	}
	n.Status.Allocatable = list(cpu, memory, "110")
	return n
}

func tainted(n corev1.Node, key, value string, effect corev1.TaintEffect) corev1.Node {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	return n
}

// alike makes so many pods of one kind for a pool.
func alike(n int, what, pool, cpu, memory string) []Pod {
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list(cpu, memory, "")}}}}
	if pool != "" {
		spec.NodeSelector = map[string]string{v1alpha1.LabelPool: pool}
		spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.LabelPool, Operator: corev1.TolerationOpEqual, Value: pool}}
	}
	var out []Pod
	for range n {
		out = append(out, Pod{What: what, Labels: map[string]string{"part": what}, Spec: spec})
	}
	return out
}

// there returns a pod on a node, of a trial or of another owner.
func there(node, cpu string, trial bool) corev1.Pod {
	p := corev1.Pod{Spec: *alike(1, "x", "", cpu, "")[0].Spec}
	p.Spec.NodeName = node
	if trial {
		p.Labels = map[string]string{v1alpha1.LabelTrial: "t"}
	}
	return p
}

func ofTrial(p *corev1.Pod) bool { return p.Labels[v1alpha1.LabelTrial] != "" }

// awayFrom keeps pods off the nodes of pods with a label.
func awayFrom(pods []Pod, part string) []Pod {
	for i := range pods {
		spec := pods[i].Spec.DeepCopy()
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"part": part}},
		}}}}
		pods[i].Spec = spec
	}
	return pods
}

// labeled gives a node, and pods that select it, one more label.
func labeled(n corev1.Node, key, value string) corev1.Node {
	n.Labels[key] = value
	return n
}

func selecting(pods []Pod, key, value string) []Pod {
	for i := range pods {
		pods[i].Spec = pods[i].Spec.DeepCopy()
		pods[i].Spec.NodeSelector[key] = value
	}
	return pods
}

// limited gives the containers a limit.
func limited(pods []Pod, cpu string) []Pod {
	for i := range pods {
		pods[i].Spec.Containers[0].Resources.Limits = list(cpu, "", "")
	}
	return pods
}

// offering gives a node so much of a resource, as a device plugin or the kernel would.
func offering(n corev1.Node, name corev1.ResourceName, amount string) corev1.Node {
	n.Status.Allocatable[name] = resource.MustParse(amount)
	return n
}

// wanting gives the containers a limit of a resource.
func wanting(pods []Pod, name corev1.ResourceName, amount string) []Pod {
	for i := range pods {
		spec := pods[i].Spec.DeepCopy()
		spec.Containers[0].Resources.Limits = corev1.ResourceList{name: resource.MustParse(amount)}
		pods[i].Spec = spec
	}
	return pods
}

func TestRoom(t *testing.T) {
	notReady := machine("n", "", "4", "8Gi")
	notReady.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	cordoned := machine("n", "", "4", "8Gi")
	cordoned.Spec.Unschedulable = true
	over := there("n", "4", false)
	over.Status.Phase = corev1.PodSucceeded
	tests := map[string]struct {
		nodes   []corev1.Node
		there   []corev1.Pod
		pods    []Pod
		want    State
		message []string
	}{
		"pods that ask for nothing": {nodes: []corev1.Node{machine("n", "", "1", "1Gi")}, pods: alike(100, "replica", "", "", ""), want: Start},
		"as many as there is room for": {nodes: []corev1.Node{machine("n", "", "4", "8Gi"), machine("m", "", "2", "8Gi")},
			pods: append(alike(2, "client", "", "1", ""), alike(2, "replica", "", "2", "1Gi")...), want: Start},
		"the largest first": {nodes: []corev1.Node{machine("n", "", "4", "8Gi"), machine("m", "", "2", "8Gi")},
			pods: append(alike(2, "client", "", "1", ""), alike(1, "replica", "", "4", "1Gi")...), want: Start},
		"one too many": {nodes: []corev1.Node{machine("n", "", "4", "8Gi")}, pods: alike(5, "replica", "", "1", "1Gi"), want: Unschedulable,
			message: []string{"1 replica pod finds no node (each asks for cpu 1, memory 1Gi)", "can never start", "Of 1 node: 1 full with other pods"}},
		"too large for any node": {nodes: []corev1.Node{machine("n", "", "4", "8Gi"), machine("m", "", "2", "8Gi")}, pods: alike(2, "replica", "", "8", ""), want: Unschedulable,
			message: []string{"2 replica pods find no node", "Of 2 nodes: 2 with too little cpu (4 free at most)"}},
		"too many pods for a node": {nodes: []corev1.Node{machine("n", "", "4", "8Gi")}, pods: alike(111, "client", "", "", ""), want: Unschedulable,
			message: []string{"1 client pod finds no node (each asks for no CPU and no memory)"}},
		"another pod is there": {nodes: []corev1.Node{machine("n", "", "4", "8Gi")}, there: []corev1.Pod{there("n", "3", false)}, pods: alike(1, "replica", "", "2", ""),
			want: InsufficientResources, message: []string{"beside what else runs there", "with too little cpu (1 free at most)"}},
		"another trial is there": {nodes: []corev1.Node{machine("n", "", "4", "8Gi")}, there: []corev1.Pod{there("n", "3", true)}, pods: alike(1, "replica", "", "2", ""),
			want: Queued, message: []string{"other trials on its pools to be over"}},
		"a pod that is over":       {nodes: []corev1.Node{machine("n", "", "4", "8Gi")}, there: []corev1.Pod{over}, pods: alike(1, "replica", "", "4", ""), want: Start},
		"a pod on no node":         {nodes: []corev1.Node{machine("n", "", "4", "8Gi")}, there: []corev1.Pod{there("", "4", false)}, pods: alike(1, "replica", "", "4", ""), want: Start},
		"no node in the pool":      {nodes: []corev1.Node{machine("n", "loaders", "4", "8Gi"), machine("m", "", "4", "8Gi")}, pods: alike(1, "replica", "servers", "1", ""), want: Unschedulable, message: []string{"Of 2 nodes: 2 without the label assay.dev/pool=servers"}},
		"no node at all":           {pods: alike(1, "replica", "", "1", ""), want: Unschedulable, message: []string{"There is no node"}},
		"pools apart":              {nodes: []corev1.Node{machine("n", "servers", "4", "8Gi"), machine("m", "loaders", "4", "8Gi")}, pods: append(alike(4, "replica", "servers", "1", ""), alike(4, "client", "loaders", "1", "")...), want: Start},
		"the pool's own taint":     {nodes: []corev1.Node{tainted(machine("n", "servers", "4", "8Gi"), v1alpha1.LabelPool, "servers", corev1.TaintEffectNoSchedule)}, pods: alike(1, "replica", "servers", "1", ""), want: Start},
		"a pool's taint, no pool":  {nodes: []corev1.Node{tainted(machine("n", "servers", "4", "8Gi"), v1alpha1.LabelPool, "servers", corev1.TaintEffectNoSchedule)}, pods: alike(1, "replica", "", "1", ""), want: Unschedulable, message: []string{"1 with the taint assay.dev/pool=servers:NoSchedule"}},
		"a taint that only warns":  {nodes: []corev1.Node{tainted(machine("n", "", "4", "8Gi"), "k", "v", corev1.TaintEffectPreferNoSchedule)}, pods: alike(1, "replica", "", "1", ""), want: Start},
		"a node that is not ready": {nodes: []corev1.Node{notReady}, pods: alike(1, "replica", "", "1", ""), want: InsufficientResources, message: []string{"1 cordoned or not ready"}},
		"a node with a passing taint": {nodes: []corev1.Node{tainted(machine("n", "", "4", "8Gi"), "node.kubernetes.io/disk-pressure", "", corev1.TaintEffectNoSchedule)},
			pods: alike(1, "replica", "", "1", ""), want: InsufficientResources},
		"a cordoned node": {nodes: []corev1.Node{cordoned}, pods: alike(1, "replica", "", "1", ""), want: InsufficientResources, message: []string{"cordoned or not ready"}},
		"clients away from replicas": {nodes: []corev1.Node{machine("n", "", "4", "8Gi"), machine("m", "", "4", "8Gi")},
			pods: append(awayFrom(alike(2, "client", "", "1", ""), "replica"), alike(3, "replica", "", "1", "")...), want: Start},
		"nowhere away from replicas": {nodes: []corev1.Node{machine("n", "", "4", "8Gi")},
			pods: append(awayFrom(alike(1, "client", "", "1", ""), "replica"), alike(3, "replica", "", "1", "")...), want: Unschedulable},
		"a limit is a request": {nodes: []corev1.Node{machine("n", "", "4", "8Gi")}, pods: limited(alike(2, "replica", "", "", ""), "3"), want: Unschedulable,
			message: []string{"1 replica pod finds no node (each asks for cpu 3)"}},
		"a device for each": {nodes: []corev1.Node{machine("n", "", "4", "8Gi"), offering(machine("m", "", "4", "8Gi"), "rdma/hca", "2")},
			pods: wanting(alike(2, "replica", "", "", ""), "rdma/hca", "1"), want: Start},
		"too few devices": {nodes: []corev1.Node{machine("n", "", "4", "8Gi"), offering(machine("m", "", "4", "8Gi"), "rdma/hca", "2")},
			pods: wanting(alike(3, "replica", "", "", ""), "rdma/hca", "1"), want: Unschedulable, message: []string{"1 replica pod finds no node (each asks for rdma/hca 1)", "1 with too little rdma/hca (0 free at most)"}},
		"huge pages": {nodes: []corev1.Node{offering(machine("n", "", "4", "8Gi"), "hugepages-2Mi", "64Mi")},
			pods: wanting(alike(2, "replica", "", "", ""), "hugepages-2Mi", "48Mi"), want: Unschedulable, message: []string{"1 replica pod finds no node (each asks for hugepages-2Mi"}},
		"both labels, in any order": {nodes: []corev1.Node{labeled(machine("a", "loaders", "4", "8Gi"), "disk", "ssd"), labeled(machine("b", "servers", "4", "8Gi"), "disk", "ssd"), machine("c", "servers", "4", "8Gi"), machine("d", "servers", "4", "8Gi")},
			pods: selecting(alike(2, "replica", "servers", "2", ""), "disk", "ssd"), want: Start},
		"no node has both labels": {nodes: []corev1.Node{labeled(machine("a", "loaders", "4", "8Gi"), "disk", "ssd"), machine("c", "servers", "4", "8Gi")},
			pods: selecting(alike(1, "replica", "servers", "2", ""), "disk", "ssd"), want: Unschedulable, message: []string{"Of 2 nodes: 2 without the label assay.dev/pool=servers,disk=ssd"}},
		"two kinds that share a node": {nodes: []corev1.Node{machine("n", "servers", "4", "8Gi")}, pods: append(alike(1, "replica", "servers", "3", ""), alike(1, "client", "servers", "2", "")...), want: Unschedulable,
			message: []string{"1 client pod finds no node (each asks for cpu 2)"}},
		"a node that is listed twice": {nodes: []corev1.Node{machine("n", "", "4", "8Gi"), machine("n", "", "4", "8Gi")}, pods: alike(2, "replica", "", "4", ""), want: Unschedulable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := NewCluster(tc.nodes)
			for i := range tc.there {
				c.Add(tc.there[i:i+1], ofTrial) // pods come in pages
			}
			got := c.Room(tc.pods)
			if got.State != tc.want {
				t.Errorf("%s: %s; want %s", got.State, got.Missing, tc.want)
			}
			for _, m := range tc.message {
				if !strings.Contains(got.Missing, m) {
					t.Errorf("it lacks %q; want that to say %q", got.Missing, m)
				}
			}
		})
	}
}

func TestQuota(t *testing.T) {
	quota := func(hard, used corev1.ResourceList) corev1.ResourceQuota {
		return corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
	}
	scoped := quota(list("", "", "1"), list("", "", "0"))
	scoped.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
	selecting := quota(list("", "", "1"), list("", "", "0"))
	selecting.Spec.ScopeSelector = &corev1.ScopeSelector{}
	tests := map[string]struct {
		quota corev1.ResourceQuota
		want  State
		says  string
	}{
		"enough":             {quota: quota(list("6", "6Gi", "8"), list("2", "2Gi", "4")), want: Start},
		"too few pods":       {quota: quota(list("", "", "3"), list("", "", "0")), want: QuotaExceeded, says: "can never start under the namespace's quota: ResourceQuota q allows pods 3, of which 0 is in use, and the trial needs 4"},
		"pods of others":     {quota: quota(list("", "", "6"), list("", "", "3")), want: QuotaExceeded, says: "Waiting for the namespace's quota: ResourceQuota q allows pods 6, of which 3 is in use, and the trial needs 4"},
		"too little CPU":     {quota: quota(list("3500m", "", ""), list("0", "", "")), want: QuotaExceeded, says: "allows cpu 3500m, of which 0 is in use, and the trial needs 4"},
		"too little memory":  {quota: quota(list("", "3Gi", ""), list("", "0", "")), want: QuotaExceeded, says: "allows memory 3Gi, of which 0 is in use, and the trial needs 4Gi"},
		"of certain pods":    {quota: scoped, want: Start},
		"of selected pods":   {quota: selecting, want: Start},
		"of other kinds":     {quota: quota(corev1.ResourceList{"count/secrets": resource.MustParse("0")}, nil), want: Start},
		"requests by name":   {quota: quota(corev1.ResourceList{"requests.cpu": resource.MustParse("1")}, nil), want: QuotaExceeded, says: "requests.cpu 1"},
		"limits, unlimited":  {quota: quota(corev1.ResourceList{"limits.cpu": resource.MustParse("1")}, nil), want: Start},
		"pods by their kind": {quota: quota(corev1.ResourceList{"count/pods": resource.MustParse("1")}, nil), want: QuotaExceeded, says: "count/pods 1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Quota(alike(4, "replica", "", "1", "1Gi"), []corev1.ResourceQuota{tc.quota}); got.State != tc.want || !strings.Contains(got.Missing, tc.says) {
				t.Errorf("%s: %s; want %s with %q", got.State, got.Missing, tc.want, tc.says)
			}
		})
	}
}

// An init container with a limit and no request requests its limit, as the API server stores it. A
// pod requests at least as much as its largest init container.
func TestRequestsOfInitContainers(t *testing.T) {
	spec := &corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "load", Resources: corev1.ResourceRequirements{Limits: list("4", "", "")}}},
		Containers:     []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list("1", "", "")}}},
	}
	if cpu, _ := Requests(spec); cpu.Value() != 4 {
		t.Errorf("the pod asks for %s CPUs, want 4", cpu.String())
	}
}

// A toleration is for one effect only: a pod that tolerates only NoExecute is not scheduled to a
// node with NoSchedule.
func TestTolerationsOfAnEffect(t *testing.T) {
	taint := corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}
	for name, tc := range map[string]struct {
		tolerations []corev1.Toleration
		want        string
	}{
		"none":            {nil, "k=v:NoSchedule"},
		"any effect":      {[]corev1.Toleration{{Key: "k", Value: "v"}}, ""},
		"this effect":     {[]corev1.Toleration{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}, ""},
		"another effect":  {[]corev1.Toleration{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}}, "k=v:NoSchedule"},
		"another value":   {[]corev1.Toleration{{Key: "k", Value: "w"}}, "k=v:NoSchedule"},
		"any value":       {[]corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}, ""},
		"everything":      {[]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, ""},
		"greater numbers": {[]corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpGt, Value: "v"}}, "k=v:NoSchedule"},
	} {
		t.Run(name, func(t *testing.T) {
			n := &node{taints: []corev1.Taint{taint}}
			if got := taintedBy(n, &Pod{Spec: &corev1.PodSpec{Tolerations: tc.tolerations}}); got != tc.want {
				t.Errorf("kept away by %q, want %q", got, tc.want)
			}
		})
	}
}
