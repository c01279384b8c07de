package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// The pods of the floor. Their number equals that of the experiment's replicas and clients.
const (
	floorReplicas = 6
	floorClients  = 2
	floorName     = "floor"
	floorLimit    = 2 * time.Minute
)

// floorTimes are how long Kubernetes itself takes.
type floorTimes struct{ up, down time.Duration }

// runFloor makes and deletes the Kubernetes objects of a trial, with containers that do nothing: a
// StatefulSet and a Job, whose pods have a sidecar and one container each. A trial cannot take less
// time.
func (b *bench) runFloor(ctx context.Context, o *owners) (floorTimes, error) {
	objects := []client.Object{floorSet(b.pause), floorJob(b.pause)}
	begun := time.Now()
	for _, object := range objects {
		if err := b.cluster.Create(ctx, object); err != nil {
			return floorTimes{}, fmt.Errorf("create the floor's %T: %w", object, err)
		}
	}
	err := eventually(ctx, floorLimit, 50*time.Millisecond, "the floor's pods run", func(context.Context) (bool, error) {
		_, running, err := o.running()
		return running == floorReplicas+floorClients, err
	})
	if err != nil {
		return floorTimes{}, err
	}
	up := time.Since(begun)
	begun = time.Now()
	for _, object := range objects {
		if err := b.cluster.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return floorTimes{}, fmt.Errorf("delete the floor's %T: %w", object, err)
		}
	}
	err = eventually(ctx, floorLimit, 50*time.Millisecond, "the floor's pods are gone", func(context.Context) (bool, error) {
		all, _, err := o.running()
		return all == 0, err
	})
	return floorTimes{up: up, down: time.Since(begun)}, err
}

func floorSet(image string) *appsv1.StatefulSet {
	labels := map[string]string{labelPodType: v1alpha1.PodTypeReplica}
	replicas := int32(floorReplicas)
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: floorName}, Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, ServiceName: floorName, PodManagementPolicy: appsv1.ParallelPodManagement,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: floorPod(image, corev1.RestartPolicyAlways)},
	}}
}

func floorJob(image string) *batchv1.Job {
	clients, retries, mode := int32(floorClients), int32(0), batchv1.IndexedCompletion
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: floorName}, Spec: batchv1.JobSpec{
		Parallelism: &clients, Completions: &clients, BackoffLimit: &retries, CompletionMode: &mode,
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelPodType: v1alpha1.PodTypeClient}},
			Spec:       floorPod(image, corev1.RestartPolicyNever),
		},
	}}
}

func floorPod(image string, restart corev1.RestartPolicy) corev1.PodSpec {
	always, no, grace := corev1.ContainerRestartPolicyAlways, false, int64(5)
	return corev1.PodSpec{
		RestartPolicy: restart, AutomountServiceAccountToken: &no, EnableServiceLinks: &no, TerminationGracePeriodSeconds: &grace,
		InitContainers: []corev1.Container{{Name: "sidecar", Image: image, ImagePullPolicy: corev1.PullNever, RestartPolicy: &always}},
		Containers:     []corev1.Container{{Name: "main", Image: image, ImagePullPolicy: corev1.PullNever}},
	}
}
