package trial

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/experiment/monitoring"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/trial/chaos"
	"assay.dev/assay/operator/internal/manager/controller/trial/machines"
	"assay.dev/assay/operator/internal/manager/controller/trial/objects"
	"assay.dev/assay/operator/internal/manager/controller/trial/prepared"
	"assay.dev/assay/operator/internal/manager/coordinator"
)

// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=podmonitors,verbs=get;create;delete

// pods makes, reads and deletes the pods of the cluster.
type pods struct{ r *Reconciler }

var _ engine.Pods = pods{}

func (r *Reconciler) pods() pods { return pods{r} }

func (r *Reconciler) objects() objects.Children {
	return objects.Children{Client: r.Client, Reader: r.Reader, Clock: r.Clock, Deletions: &r.deletions, AtOnce: r.AtOnce}
}

func (r *Reconciler) resetter() *machines.Resetter {
	return &machines.Resetter{Client: r.Client, Reader: r.Reader, Environment: r.environment()}
}

// environment returns the surroundings of a pod that is made now.
func (r *Reconciler) environment() render.Environment {
	env := r.Environment
	env.CoordinatorCA = r.Trusted()
	return env
}

// Ensure makes the trial's objects. They never change, so an existing object is right if the trial
// owns it. If a quota refuses pods, they are tried again: others free their share of it.
func (p pods) Ensure(ctx context.Context, s *engine.Subject) error {
	err := p.create(ctx, s)
	var forbidden *objects.ForbiddenError
	switch {
	case errors.As(err, &forbidden):
		return &engine.RejectedError{Reason: v1alpha1.ReasonPodsForbidden, Message: forbidden.Error() + "."}
	case objects.Denied(err):
		return &engine.RejectedError{Reason: v1alpha1.ReasonPodsForbidden, Message: "The cluster refuses an object of the trial: " + err.Error()}
	case apierrors.IsInvalid(err):
		return &engine.RejectedError{Reason: v1alpha1.ReasonRenderFailed, Message: "The API server takes an object of the trial for invalid: " + err.Error()}
	}
	return err
}

func (p pods) create(ctx context.Context, s *engine.Subject) error {
	r, env, rejected := p.r, p.r.environment(), v1alpha1.ReasonRenderFailed
	if err := plan.CheckCapabilities(s.System, env.Capabilities); err != nil { // the cluster's owner may have changed the list
		return &engine.RejectedError{Reason: rejected, Message: fmt.Sprintf("System %s: %s", s.Trial.Spec.System.Name, err)}
	}
	offsets, err := r.objects().ClockOffsets(ctx, s.Trial, s.Layout)
	if err != nil {
		return err
	}
	env.SimulatedClockOffsets = offsets
	o, err := render.NewObjects(s.Layout, &s.Trial.Spec, s.System, env)
	if err != nil {
		return &engine.RejectedError{Reason: rejected, Message: err.Error()}
	}
	if err := r.objects().CheckPodSecurity(ctx, s.Trial.Namespace, o); err != nil {
		return err
	}
	if err := r.prepared(s).Reuse(ctx, o); err != nil {
		return err
	}
	if err := r.objects().CreateAll(ctx, s.Trial, o); err != nil {
		return err
	}
	return p.monitor(ctx, s)
}

// prepared returns the cache of the outputs of prepare steps, for the trial.
func (r *Reconciler) prepared(s *engine.Subject) prepared.Cache {
	return prepared.Cache{Objects: r.objects(), Trial: s.Trial, System: s.System, Layout: s.Layout}
}

// monitor makes Prometheus scrape the pods of the experiment's trials, if that is possible.
func (p pods) monitor(ctx context.Context, s *engine.Subject) error {
	prometheus := p.r.Prometheus
	if prometheus == nil {
		return nil
	}
	pm := monitoring.PodMonitor(s.Trial.Namespace, &s.Trial.Spec, s.System, prometheus.PodMonitorLabels())
	if pm == nil {
		return nil
	}
	if has, err := prometheus.HasPodMonitors(); err != nil || !has {
		return err
	}
	return p.r.objects().Monitor(ctx, s.Trial, pm)
}

func (p pods) Observe(ctx context.Context, s *engine.Subject) (map[string]*corev1.Pod, error) {
	return p.r.objects().Pods(ctx, s.Layout)
}

// Authorize registers the pods of the trial's StatefulSets and Jobs, and the pods that reset
// machines. The agents of all other pods are not ours.
func (p pods) Authorize(ctx context.Context, s *engine.Subject, observed map[string]*corev1.Pod) (resetters []string, err error) {
	known, err := p.r.resetter().Known(ctx, s.Trial)
	if err != nil {
		return nil, err
	}
	for _, k := range known {
		resetters = append(resetters, k.Name)
	}
	key, makers := client.ObjectKeyFromObject(s.Trial), p.r.objects().Makers(s.Layout)
	for name, pod := range observed {
		if made, err := makers.Made(ctx, pod); err != nil {
			return nil, err
		} else if !made {
			continue
		}
		known = append(known, coordinator.Pod{UID: pod.UID, Trial: key, Name: name, Part: pod.Labels[v1alpha1.LabelPodType], Index: objects.ClientIndex(s.Layout, pod)})
	}
	p.r.Coordinator.Register(key, known)
	return resetters, nil
}

// Impostor returns why a pod was not made by one of the trial's StatefulSets. Empty: it was.
func (p pods) Impostor(ctx context.Context, s *engine.Subject, pod *corev1.Pod) (string, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "StatefulSet" {
		return "no StatefulSet has made it", nil
	}
	set := &appsv1.StatefulSet{}
	if err := p.r.Client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, set); err != nil {
		if apierrors.IsNotFound(err) {
			return "its StatefulSet is not there", nil
		}
		return "", fmt.Errorf("read StatefulSet %s: %w", owner.Name, err)
	}
	if set.UID != owner.UID || !metav1.IsControlledBy(set, s.Trial) {
		return "its StatefulSet is none of the trial", nil
	}
	return "", nil
}

func (p pods) Refusal(ctx context.Context, s *engine.Subject, observed map[string]*corev1.Pod) (string, error) {
	return p.r.objects().RefusedPods(ctx, s.Trial.Namespace, objects.OwnersOfMissing(s.Layout, s.System.Prepare != nil, observed))
}

// Delete deletes every object of a trial except its results, and begins with the objects of Chaos
// Mesh.
func (p pods) Delete(ctx context.Context, trial *v1alpha1.Trial) (engine.Remains, error) {
	x, m := p.r.chaosExecutor(), p.r.chaos.memory(trial.UID)
	left, hold, err := x.Clear(ctx, trial, m)
	if err != nil || hold {
		return engine.Remains{Left: chaos.Remains(left)}, err
	}
	remains, err := p.r.deleteAll(ctx, client.ObjectKeyFromObject(trial))
	if err != nil || remains != "" {
		return engine.Remains{Left: remains}, err
	}
	if len(left) > 0 {
		return engine.Remains{Left: chaos.Remains(left)}, x.Force(ctx, trial, m, left)
	}
	gone, err := p.r.objects().Gone(ctx, client.ObjectKeyFromObject(trial))
	return engine.Remains{Gone: gone}, err
}

// deleteAll deletes the cluster's objects of the trial, and returns a description of what is still
// there.
func (r *Reconciler) deleteAll(ctx context.Context, key types.NamespacedName) (string, error) {
	resetters, err := r.resetter().Pods(ctx, r.Reader, key)
	if err != nil {
		return "", err
	}
	return r.objects().DeleteAll(ctx, key, resetters)
}
