package install

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

const (
	idleMemory = 50 << 20 // bytes
	idleCPU    = 0.010    // cores
	idleWindow = 20 * time.Second
)

// sample of a manager's own metrics.
type sample struct {
	at       time.Time
	cpu      float64 // seconds
	resident float64 // bytes, with the pages of the program's file that it has used: the kernel may drop these
	heap     float64 // bytes
}

// Managers that have nothing to do cost next to nothing. Processor time is what they say of themselves (/metrics); memory is the kubelet's working set,
// which is what kubectl top and Prometheus (container_memory_working_set_bytes) show. No metrics server is needed.
func TestIdle(t *testing.T) {
	o := newOwner(t)
	eventually(t, 2*time.Minute, "no trial runs", func(ctx context.Context) (bool, error) {
		list := &v1alpha1.TrialList{}
		if err := o.List(ctx, list); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(list.Items, func(t v1alpha1.Trial) bool {
			return !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialComplete)
		}), nil
	})
	// Pods of the release before this one may still be about to go.
	o.run(t, "kubectl", "rollout", "status", "deployment/assay-manager", "-n", namespace, "--timeout=2m")
	pods, err := o.clientset.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=manager"})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("no managers: %v", err)
	}
	pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	before := map[string]sample{}
	for i := range pods.Items {
		before[pods.Items[i].Name] = o.sample(t, pods.Items[i].Name)
	}
	timer := time.NewTimer(idleWindow) // what is measured is time that passes
	defer timer.Stop()
	<-timer.C
	for i := range pods.Items {
		name := pods.Items[i].Name
		from, to := before[name], o.sample(t, name)
		cores := (to.cpu - from.cpu) / to.at.Sub(from.at).Seconds()
		memory := o.workingSet(t, &pods.Items[i])
		t.Logf("%s: working set %.1f MB, of which objects %.1f MB; resident with the program's file %.1f MB; %.1f millicores",
			name, memory/(1<<20), to.heap/(1<<20), to.resident/(1<<20), 1000*cores)
		if memory == 0 || memory >= idleMemory {
			t.Errorf("%s takes %.1f MB, want less than %d MB", name, memory/(1<<20), idleMemory>>20)
		}
		if cores >= idleCPU {
			t.Errorf("%s takes %.1f millicores, want less than %.0f", name, 1000*cores, 1000*idleCPU)
		}
	}
}

func (o *owner) sample(t *testing.T, pod string) sample {
	t.Helper()
	text, err := o.clientset.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").Name(pod + ":8080").SubResource("proxy").Suffix("metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatalf("read the metrics of %s: %v", pod, err)
	}
	s := sample{at: time.Now()}
	for name, into := range map[string]*float64{
		"process_cpu_seconds_total": &s.cpu, "process_resident_memory_bytes": &s.resident, "go_memstats_heap_alloc_bytes": &s.heap,
	} {
		v, err := metric(string(text), name)
		if err != nil {
			t.Fatalf("%s: %v", pod, err)
		}
		*into = v
	}
	return s
}

// workingSet of a pod, in bytes, as its kubelet counts it.
func (o *owner) workingSet(t *testing.T, pod *corev1.Pod) float64 {
	t.Helper()
	text, err := o.clientset.CoreV1().RESTClient().Get().Resource("nodes").Name(pod.Spec.NodeName).SubResource("proxy").Suffix("stats/summary").DoRaw(t.Context())
	if err != nil {
		t.Fatalf("read the summary of node %s: %v", pod.Spec.NodeName, err)
	}
	var summary struct {
		Pods []struct {
			PodRef struct{ UID string }
			Memory struct{ WorkingSetBytes float64 }
		}
	}
	if err := json.Unmarshal(text, &summary); err != nil {
		t.Fatalf("read the summary of node %s: %v", pod.Spec.NodeName, err)
	}
	for _, p := range summary.Pods {
		if p.PodRef.UID == string(pod.UID) {
			return p.Memory.WorkingSetBytes
		}
	}
	t.Fatalf("the kubelet of %s does not know %s", pod.Spec.NodeName, pod.Name)
	return 0
}

// metric is the value of a metric without labels.
func metric(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}
