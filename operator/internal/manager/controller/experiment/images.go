package experiment

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/nodes"
	"assay.dev/assay/operator/internal/text/few"
)

// pullPoll is how often the controller looks at the Jobs that pull images, which are not cached.
const pullPoll = 2 * time.Second

// podWaits precedes in a message what a pod waits for.
const podWaits = " waits: "

// puller makes nodes pull the images of an experiment's trials, by Jobs.
type puller struct {
	client      client.Client
	reader      client.Reader // past the cache, which has no such Jobs
	environment render.Environment
}

func (r *Reconciler) puller() *puller { return &puller{r.Client, r.Reader, r.Environment} }

// hold delays the next trial until all nodes on which its pods may run have its images, if the
// experiment asks for that. A Job on each node pulls them. A finished Job shows that its images are
// there. A failed Job ends the experiment, until a user deletes the Job.
func (p *puller) hold(ctx context.Context, s *scope) error {
	next := s.step.Create
	if s.exp.Spec.PrePull == nil || next == nil {
		return nil
	}
	wanted, problem, err := p.pulls(ctx, s)
	if apierrors.IsForbidden(err) {
		s.step.Done = s.step.Counts.Active == 0
		p.holdFor(s, v1alpha1.ReasonImagesFailed,
			"The manager may not list nodes, so it cannot have them pull images: remove spec.prePull, or ask the owner of the cluster for this right.")
		return nil
	}
	if err != nil {
		return err
	}
	if problem != "" {
		p.holdFor(s, v1alpha1.ReasonPullingImages, problem)
		return nil
	}
	jobs, err := p.jobs(ctx, s.exp)
	if err != nil {
		return err
	}
	var waiting, failed []string
	for _, node := range slices.Sorted(maps.Keys(wanted)) {
		job := jobs[render.PullJobName(s.exp.Name, node, wanted[node].Images)]
		if job == nil {
			if err := p.start(ctx, s.exp, node, wanted[node].Images); err != nil {
				return err
			}
			waiting = append(waiting, node)
			continue
		}
		switch ended, well, _ := nodes.Over(job); {
		case !ended:
			waiting = append(waiting, node)
		case !well:
			failed = append(failed, node)
		}
	}
	switch {
	case len(failed) > 0:
		why, err := p.failure(ctx, s.exp, jobs[render.PullJobName(s.exp.Name, failed[0], wanted[failed[0]].Images)], failed[0])
		if err != nil {
			return err
		}
		s.step.Done = s.step.Counts.Active == 0 // otherwise wait for trials on other sets of nodes
		p.holdFor(s, v1alpha1.ReasonImagesFailed, why)
	case len(waiting) > 0:
		held, err := p.held(ctx, s.exp)
		if err != nil {
			return err
		}
		p.holdFor(s, v1alpha1.ReasonPullingImages,
			fmt.Sprintf("%d of %d nodes have the images of the next trial. Missing on %s.%s", len(wanted)-len(waiting), len(wanted), few.Names(waiting), held))
	default:
		s.set(v1alpha1.ExperimentImagesReady, metav1.ConditionTrue, v1alpha1.ReasonPulled,
			fmt.Sprintf("The images of the next trial are on all %d nodes that its pods may run on.", len(wanted)))
	}
	return nil
}

// holdFor delays the next trial.
func (p *puller) holdFor(s *scope, reason, message string) {
	s.step.Create, s.step.Reason, s.step.Message, s.again = nil, reason, message, pullPoll
	if s.step.Done {
		s.again = 0
	}
	s.set(v1alpha1.ExperimentImagesReady, metav1.ConditionFalse, reason, message)
}

// pulls returns the images that the next trial needs, by node. problem says that no node takes its
// pods now.
func (p *puller) pulls(ctx context.Context, s *scope) (byNode map[string]*render.Pull, problem string, err error) {
	next := s.step.Create
	system := s.systems[next.System.Name]
	pulls, err := render.Pulls(s.exp.Namespace, trialName(s.exp, next.Number), next, &system, p.environment)
	if err != nil {
		return nil, "", fmt.Errorf("list the images of the next trial: %w", err)
	}
	byNode = map[string]*render.Pull{}
	for _, pull := range pulls {
		names, err := nodes.For(ctx, p.reader, pull.NodeSelector)
		if err != nil {
			return nil, "", err
		}
		if len(names) == 0 {
			return nil, fmt.Sprintf("No node%s is ready to pull the images of the next trial.", nodes.Labelled(pull.NodeSelector)), nil
		}
		for _, name := range names {
			if byNode[name] == nil {
				byNode[name] = &render.Pull{}
			}
			byNode[name].Join(pull)
		}
	}
	return byNode, "", nil
}

// jobs returns the experiment's Jobs that pull images, by name, without Jobs in deletion.
func (p *puller) jobs(ctx context.Context, exp *v1alpha1.Experiment) (map[string]*batchv1.Job, error) {
	list := &batchv1.JobList{}
	if err := p.reader.List(ctx, list, client.InNamespace(exp.Namespace), client.MatchingLabels{v1alpha1.LabelImages: exp.Name}); err != nil {
		return nil, wrap("list the Jobs that pull images", err)
	}
	jobs := map[string]*batchv1.Job{}
	for i := range list.Items {
		if j := &list.Items[i]; metav1.IsControlledBy(j, exp) && j.DeletionTimestamp.IsZero() {
			jobs[j.Name] = j
		}
	}
	return jobs, nil
}

func (p *puller) start(ctx context.Context, exp *v1alpha1.Experiment, node string, images []render.PullImage) error {
	job := render.PullJob(exp.Namespace, exp.Name, node, images, p.environment, int64(exp.Spec.PrePull.TimeoutOrDefault().OrZero().Seconds()))
	if err := controllerutil.SetControllerReference(exp, job, p.client.Scheme()); err != nil {
		return wrap("own a Job that pulls images", err)
	}
	if err := p.client.Create(ctx, job); err != nil && !apierrors.IsAlreadyExists(err) {
		return wrap("create a Job that pulls images", err)
	}
	return nil
}

// held says what one of the pods that pull images waits for.
func (p *puller) held(ctx context.Context, exp *v1alpha1.Experiment) (string, error) {
	pods, err := p.pods(ctx, exp)
	if err != nil {
		return "", err
	}
	for i := range pods {
		if pods[i].Status.Phase != corev1.PodPending {
			continue
		}
		if held := nodes.Held(&pods[i]); held != "" {
			return " Pod " + pods[i].Name + podWaits + strings.TrimSuffix(strings.TrimPrefix(held, ": "), ".") + ".", nil
		}
	}
	return "", nil
}

func (p *puller) pods(ctx context.Context, exp *v1alpha1.Experiment) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := p.reader.List(ctx, list, client.InNamespace(exp.Namespace), client.MatchingLabels{v1alpha1.LabelImages: exp.Name})
	return list.Items, wrap("list the pods that pull images", err)
}

// failure says which image a node has not pulled or cannot run, and what the last pod waited for.
// The kubelet forgets the latter when the pod's time is over.
func (p *puller) failure(ctx context.Context, exp *v1alpha1.Experiment, job *batchv1.Job, node string) (string, error) {
	was := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentImagesReady)
	if was != nil && was.Reason == v1alpha1.ReasonImagesFailed && strings.Contains(was.Message, job.Name) {
		return was.Message, nil
	}
	pods, err := p.pods(ctx, exp)
	if err != nil {
		return "", err
	}
	_, _, why := nodes.Over(job)
	for i := range pods {
		if !metav1.IsControlledBy(&pods[i], job) {
			continue
		}
		why = cmp.Or(pods[i].Status.Message, why)
		for _, c := range pods[i].Status.ContainerStatuses {
			switch t := c.State.Terminated; {
			case t == nil || t.ExitCode == 0:
			case t.Reason == "ContainerStatusUnknown":
				why = fmt.Sprintf("%s; %s was not pulled", strings.TrimSuffix(why, "."), c.Image)
			default:
				why = fmt.Sprintf("%s; %s cannot run: %s %s", strings.TrimSuffix(why, "."), c.Image, t.Reason, strings.TrimSpace(t.Message))
			}
		}
	}
	if was != nil {
		if _, held, ok := strings.Cut(was.Message, podWaits); ok {
			why = fmt.Sprintf("%s; before that, a pod waited: %s", strings.TrimSuffix(why, "."), held)
		}
	}
	return fmt.Sprintf("Node %s lacks images of the next trial: %s. It is tried again when Job %s is deleted.", node, strings.TrimSuffix(why, "."), job.Name), nil
}

// forget deletes the Jobs that pulled images when no trial is to run. After ImagesFailed it keeps
// them, since they show the reason.
func (p *puller) forget(ctx context.Context, s *scope) error {
	if !s.step.Done || s.step.Reason == v1alpha1.ReasonImagesFailed || meta.FindStatusCondition(s.exp.Status.Conditions, v1alpha1.ExperimentImagesReady) == nil {
		return nil
	}
	jobs, err := p.jobs(ctx, s.exp)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if err := p.client.Delete(ctx, job, client.PropagationPolicy("Background")); client.IgnoreNotFound(err) != nil {
			return wrap("delete a Job that pulled images", err)
		}
	}
	return nil
}
