package objects

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// Pods returns the trial's pods, even those in deletion, by their names in the layout. If two pods
// have one client's number, the client is the Job's own pod: anyone who may create pods can give
// them the labels. The pods come from the cache and must not be changed. They are not copied, since
// each news of one pod makes the trial look at all of them.
func (m Children) Pods(ctx context.Context, l *placement.Layout) (map[string]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := m.Client.List(ctx, list, client.InNamespace(l.Namespace), client.MatchingLabels{v1alpha1.LabelTrial: l.Trial}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the trial's pods: %w", err)
	}
	pods, makers := make(map[string]*corev1.Pod, len(list.Items)), m.Makers(l)
	for i := range list.Items {
		p := &list.Items[i]
		if isServer(p.Labels[v1alpha1.LabelPodType]) {
			pods[p.Name] = p // a name belongs to one pod
			continue
		}
		made, err := makers.Made(ctx, p)
		if err != nil {
			return nil, err
		}
		if !made {
			continue
		}
		if p.Labels[v1alpha1.LabelPodType] == v1alpha1.PodTypePrepare {
			pods[l.PrepareJob()] = p
		} else if c, ok := clientOf(l, p); ok {
			pods[c.Name] = p
		}
	}
	return pods, nil
}

// Makers holds a trial's StatefulSets and Jobs. It reads each of them once, however many pods it
// has.
type Makers struct {
	children Children
	layout   *placement.Layout
	uids     map[maker]types.UID // empty: the owner does not exist
}

// maker names a StatefulSet or Job. Both make pods.
type maker struct{ kind, name string }

// Makers returns the makers of a trial. It has read none of them yet.
func (m Children) Makers(l *placement.Layout) *Makers {
	return &Makers{children: m, layout: l, uids: map[maker]types.UID{}}
}

// Made reports whether a StatefulSet or Job of the trial made the pod. If so, its agent may speak
// for the trial. A pod in deletion may outlive its owner.
func (m *Makers) Made(ctx context.Context, p *corev1.Pod) (bool, error) {
	of := metav1.GetControllerOfNoCopy(p)
	if of == nil {
		return false, nil
	}
	l := m.layout
	var owner client.Object
	switch part := p.Labels[v1alpha1.LabelPodType]; {
	case isServer(part) && of.Kind == "StatefulSet" && hasSet(l, of.Name):
		owner = &appsv1.StatefulSet{}
	case part == v1alpha1.PodTypeClient && of.Kind == "Job" && hasClientSet(l, of.Name),
		part == v1alpha1.PodTypePrepare && of.Kind == "Job" && of.Name == l.PrepareJob():
		owner = &batchv1.Job{}
	default:
		return false, nil
	}
	uid, err := m.uid(ctx, of, owner)
	if err != nil || uid == "" {
		return err == nil && !p.DeletionTimestamp.IsZero(), err
	}
	return uid == of.UID, nil
}

// uid returns the UID of an owner of pods. Empty: the owner does not exist.
func (m *Makers) uid(ctx context.Context, of *metav1.OwnerReference, empty client.Object) (types.UID, error) {
	key := maker{of.Kind, of.Name}
	if uid, known := m.uids[key]; known {
		return uid, nil
	}
	// Without a copy: only the UID is read, and every look at a trial asks for it.
	err := m.children.Client.Get(ctx, client.ObjectKey{Namespace: m.layout.Namespace, Name: of.Name}, empty, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read %s %s: %w", of.Kind, of.Name, err)
	}
	m.uids[key] = empty.GetUID()
	return m.uids[key], nil
}

// isServer reports whether StatefulSets make the pods of this part.
func isServer(part string) bool {
	return part == v1alpha1.PodTypeReplica || part == v1alpha1.PodTypeComponent
}

func hasSet(l *placement.Layout, name string) bool {
	return slices.ContainsFunc(l.Sets, func(set placement.Set) bool { return set.Name == name })
}

func hasClientSet(l *placement.Layout, name string) bool {
	return slices.ContainsFunc(l.ClientSets, func(set placement.ClientSet) bool { return set.Name == name })
}

// clientOf returns the client that runs in a pod of one of the trial's Jobs.
func clientOf(l *placement.Layout, p *corev1.Pod) (placement.Client, bool) {
	of := metav1.GetControllerOf(p)
	if of == nil {
		return placement.Client{}, false
	}
	var i int
	if _, err := fmt.Sscanf(p.Labels[batchv1.JobCompletionIndexAnnotation], "%d", &i); err != nil {
		i = 0
	}
	return l.ClientOf(of.Name, i)
}

// ClientIndex returns the index of a client's pod among all client pods. 0: the pod is no client.
func ClientIndex(l *placement.Layout, p *corev1.Pod) int {
	c, _ := clientOf(l, p)
	return c.Index
}

// OwnersOfMissing returns the names of the StatefulSets and Jobs that have not made all of their
// pods.
func OwnersOfMissing(l *placement.Layout, prepares bool, pods map[string]*corev1.Pod) []string {
	var owners []string
	add := func(name string) {
		if len(owners) == 0 || owners[len(owners)-1] != name {
			owners = append(owners, name)
		}
	}
	i := 0
	for _, set := range l.Sets {
		for range set.Replicas {
			if pods[l.Servers[i].Name] == nil {
				add(set.Name)
			}
			i++
		}
	}
	for _, set := range l.ClientSets {
		for _, i := range set.Clients {
			if pods[l.Clients[i].Name] == nil {
				add(set.Name)
			}
		}
	}
	if prepares && pods[l.PrepareJob()] == nil {
		add(l.PrepareJob())
	}
	return owners
}
