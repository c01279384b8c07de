package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"assay.dev/assay/operator/api/v1alpha1"
)

// labelPodType is on the floor's pods the counterpart of v1alpha1.LabelPodType on a trial's: no
// manager reacts to it.
const labelPodType = "bench-part"

// owners knows the row of each container. It watches the pods of the bench's namespace, since they
// come and go.
type owners struct {
	mu   sync.Mutex
	row  map[string]string           // by the container's ID
	pods map[string]corev1.PodStatus // of the bench's namespace, by name
	err  error                       // of the watch
}

// rowOfPod is the row of a container in a pod.
func rowOfPod(p *corev1.Pod, container string, sidecar bool) string {
	part := cmp.Or(p.Labels[v1alpha1.LabelPodType], p.Labels[labelPodType])
	switch {
	case p.Labels["component"] == "kube-apiserver":
		return rowAPIServer
	case p.Labels["component"] == "etcd":
		return rowEtcd
	case container == "manager" && p.Labels["app.kubernetes.io/name"] == "assay":
		return rowManagers
	case sidecar && part != "":
		return rowAgents
	case part == v1alpha1.PodTypeReplica:
		return rowSystem
	case part == v1alpha1.PodTypeClient:
		return rowClients
	case part == v1alpha1.PodTypePrepare:
		return rowPrepare
	default:
		return rowOthers
	}
}

func (o *owners) note(p *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, list := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for _, c := range list {
			if _, id, ok := strings.Cut(c.ContainerID, "://"); ok {
				o.row[id] = rowOfPod(p, c.Name, i == 1)
			}
		}
	}
	if p.Namespace == namespace {
		o.pods[p.Name] = p.Status
	}
}

// of is the row of a container; empty: no pod that was seen has it.
func (o *owners) of(id string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.row[id]
}

// running counts all pods of the bench's namespace, and those whose containers all run.
func (o *owners) running() (all, running int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, status := range o.pods {
		all++
		if status.Phase != corev1.PodRunning {
			continue
		}
		up := true
		for _, c := range status.ContainerStatuses {
			up = up && c.State.Running != nil
		}
		if up {
			running++
		}
	}
	return all, running, o.err
}

// watchOwners lists all pods, and watches those of the bench's namespace until ctx is done.
func watchOwners(ctx context.Context, clientset kubernetes.Interface) (*owners, error) {
	o := &owners{row: map[string]string{}, pods: map[string]corev1.PodStatus{}}
	list, err := clientset.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	for i := range list.Items {
		o.note(&list.Items[i])
	}
	w, err := clientset.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	go func() {
		defer w.Stop()
		for event := range w.ResultChan() {
			p, ok := event.Object.(*corev1.Pod)
			if !ok {
				break
			}
			o.note(p)
			if event.Type == "DELETED" {
				o.mu.Lock()
				delete(o.pods, p.Name)
				o.mu.Unlock()
			}
		}
		if ctx.Err() == nil {
			o.mu.Lock()
			o.err = fmt.Errorf("the watch of pods in namespace %s ended", namespace)
			o.mu.Unlock()
		}
	}()
	return o, nil
}
