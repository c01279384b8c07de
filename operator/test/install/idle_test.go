package install

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

const (
	idleMemory = 50 << 20 // bytes
	idleCPU    = 0.010    // cores
	idleWindow = 20 * time.Second
)

// sample of a manager's use of memory and processors, by the counters of its kubelet.
type sample struct {
	at     time.Time
	cpu    float64 // seconds
	memory float64 // bytes of the working set
}

// Managers without work use next to nothing. Memory is the kubelet's working set, which kubectl top
// and Prometheus (container_memory_working_set_bytes) show. No metrics server is needed.
func TestIdle(t *testing.T) {
	o := newOwner(t)
	eventually(t, patience, "no trial runs", func(ctx context.Context) (bool, error) {
		list := &v1alpha1.TrialList{}
		if err := o.List(ctx, list); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(list.Items, func(t v1alpha1.Trial) bool {
			return !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialComplete)
		}), nil
	})
	// Pods of the earlier release may still be about to end.
	o.insist(t, "kubectl", "rollout", "status", "deployment/assay-manager", "-n", namespace, helmPatience)
	memory, cores := o.leastCost(t)
	if memory >= idleMemory {
		t.Errorf("a manager takes %.1f MB, want less than %d MB", memory/(1<<20), idleMemory>>20)
	}
	if cores >= idleCPU {
		t.Errorf("a manager takes %.1f millicores, want less than %.0f", 1000*cores, 1000*idleCPU)
	}
}

// leastCost is the most that any manager uses, in bytes and cores, in the best of up to three
// windows. A manager may lose the lease because its machine stood still. It then reads all objects
// once, and is not idle. A manager that is never idle exceeds the bound in all windows.
func (o *owner) leastCost(t *testing.T) (memory, cores float64) {
	t.Helper()
	memory, cores = math.Inf(1), math.Inf(1)
	for range 3 {
		m, c := o.idleCost(t)
		if memory, cores = min(memory, m), min(cores, c); memory < idleMemory && cores < idleCPU {
			break
		}
	}
	return memory, cores
}

// idleCost measures the managers once, and returns the most that any of them used. A manager that
// was restarted meanwhile counts as too expensive.
func (o *owner) idleCost(t *testing.T) (mostMemory, mostCores float64) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := o.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"}); err != nil {
		t.Fatal(err)
	}
	pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if len(pods.Items) == 0 {
		t.Fatal("there is no manager")
	}
	before := map[string]sample{}
	for i := range pods.Items {
		before[pods.Items[i].Name] = o.sample(t, &pods.Items[i], time.Time{})
	}
	timer := time.NewTimer(idleWindow) // the measurement needs real time to pass
	defer timer.Stop()
	<-timer.C
	for i := range pods.Items {
		name := pods.Items[i].Name
		from := before[name]
		to := o.sample(t, &pods.Items[i], from.at.Add(idleWindow))
		cores := (to.cpu - from.cpu) / to.at.Sub(from.at).Seconds()
		if cores < 0 {
			cores = math.Inf(1)
		}
		t.Logf("%s: working set %.1f MB; %.1f millicores", name, to.memory/(1<<20), 1000*cores)
		mostMemory, mostCores = max(mostMemory, to.memory), max(mostCores, cores)
	}
	return mostMemory, mostCores
}

// sample is the kubelet's reading of a pod, not older than an instant. A new pod has none for a
// moment.
func (o *owner) sample(t *testing.T, pod *corev1.Pod, after time.Time) sample {
	t.Helper()
	var s sample
	eventually(t, patience, fmt.Sprintf("the kubelet of %s knows the cost of %s", pod.Spec.NodeName, pod.Name), func(ctx context.Context) (bool, error) {
		text, err := o.clientset.CoreV1().RESTClient().Get().Resource("nodes").Name(pod.Spec.NodeName).SubResource("proxy").Suffix("stats/summary").DoRaw(ctx)
		if err != nil {
			return false, err
		}
		var summary struct {
			Pods []struct {
				PodRef struct{ UID string }
				CPU    struct {
					Time                 time.Time
					UsageCoreNanoSeconds float64
				}
				Memory struct{ WorkingSetBytes float64 }
			}
		}
		if err := json.Unmarshal(text, &summary); err != nil {
			return false, err
		}
		for _, p := range summary.Pods {
			if p.PodRef.UID == string(pod.UID) {
				s = sample{at: p.CPU.Time, cpu: p.CPU.UsageCoreNanoSeconds / 1e9, memory: p.Memory.WorkingSetBytes}
			}
		}
		return s.memory > 0 && s.at.After(after), nil
	})
	return s
}
