package engine

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine/copies"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/text/few"
)

// DeployTimeout is how long pods may take to be scheduled, to pull their images and to report.
const DeployTimeout = 5 * time.Minute

// RetryPoll is how soon the engine retries an operation that failed, and looks for missing pods. No
// event reports room in a quota, the end of an object in the way, or a refused pod.
const RetryPoll = 2 * time.Second

// deploy makes the pods of the trial, runs the prepare step, and hands every pod its files once all
// pods have addresses.
type deploy struct {
	pods        Pods
	attachments Attachments
	agents      Agents
	renderer    *renderer
}

func (*deploy) condition() string { return v1alpha1.TrialDeployed }

func (p *deploy) run(ctx context.Context, s *scope) Result {
	if s.isTrue(v1alpha1.TrialDeployed) {
		err := p.renderer.render(ctx, s)
		if err == nil && s.rendered != nil {
			err = p.renderer.renderReplacements(ctx, s)
		}
		return rejected(err)
	}
	r := p.once(ctx, s)
	if r.err == nil {
		return r
	}
	// The condition reports the error, and the deadline of the phase applies to it, since the trial
	// holds its pools meanwhile. It is not returned: the controller would retry after longer and
	// longer waits, beyond the deadline.
	return p.waitDeployed(s, v1alpha1.ReasonPodsPending, "trying again what failed: %s", r.err).Within(RetryPoll)
}

// rejected returns the result for an error: a RejectedError ends the trial.
func rejected(err error) Result {
	var bad *RejectedError
	switch {
	case errors.As(err, &bad):
		return Fail(bad.Reason, "%s", bad.Message)
	case err != nil:
		return Retry(err)
	}
	return Skip()
}

// waitDeployed waits within the deadline of the phase.
func (p *deploy) waitDeployed(s *scope, reason, format string, args ...any) Result {
	return Wait(reason, format, args...).Until(s.trial.Status.Times.Admitted, s.deployLimit())
}

func (s *scope) deployLimit() time.Duration {
	limit := DeployTimeout + copies.Limit(&s.trial.Spec)
	if p := s.system.Prepare; p != nil {
		limit += p.Timeout.OrZero()
	}
	return limit
}

func (p *deploy) once(ctx context.Context, s *scope) Result {
	if !s.cache.created {
		if err := p.pods.Ensure(ctx, s.subject()); err != nil {
			return rejected(err)
		}
		s.cache.created, s.cache.asked = true, s.now
	}
	if r := p.lostPods(s); r.state == failed {
		return r
	}
	missing := p.unreported(s)
	// The step needs only the names of the other pods, so it runs while they start.
	prepared, r := p.prepare(ctx, s, len(missing) == 0)
	if r.err != nil || r.state == failed {
		return r
	}
	if len(missing) > 0 {
		return p.awaitPods(ctx, s, missing)
	}
	if failed := s.observation().FailedAgent(); failed != nil {
		return Fail(v1alpha1.ReasonFailed, "%s", failed.AgentFailure())
	}
	if !prepared {
		name := s.layout.PrepareJob()
		if pod, rep := s.pods[name], s.report(name); pod != nil && pod.Status.Phase == corev1.PodFailed && (rep == nil || !rep.Sent) {
			return Fail(v1alpha1.ReasonRunLost, "Pod %s of the prepare step failed: %s", name, validity.FailedWhy(pod))
		}
		return p.waitDeployed(s, v1alpha1.ReasonPreparing, "waiting for the prepare step")
	}
	if err := p.renderer.render(ctx, s); err != nil {
		return rejected(err)
	}
	if s.rendered == nil {
		return p.waitDeployed(s, v1alpha1.ReasonPodsPending, "waiting for the addresses of the pods")
	}
	return p.configure(ctx, s).Directing(stage{})
}

// PodNotRunnable is the reason of a pod that failed before its processes ran, and for which no
// controller makes a new one. A runtime without a kubelet sets it.
const PodNotRunnable = "NotRunnable"

// awaitPods waits for pods that do not exist, have no address, or whose agents have not reported.
func (p *deploy) awaitPods(ctx context.Context, s *scope, missing []string) Result {
	poll, why, err := p.refusal(ctx, s)
	switch {
	case err != nil:
		return Retry(err)
	case why != "":
		return Fail(v1alpha1.ReasonPodsForbidden, "The cluster refuses pods of the trial: %s", why)
	}
	return p.waitDeployed(s, v1alpha1.ReasonPodsPending, "waiting for the pods or agents of %s", few.Names(missing)).Within(poll)
}

// lostPods fails if a pod will never run, and nothing makes another one. A pod also fails without
// its data, or on a machine that cannot run it. These reasons come first.
func (p *deploy) lostPods(s *scope) Result {
	if pod, why := copies.Refused(&s.trial.Spec, s.pods); pod != "" {
		return Fail(v1alpha1.ReasonDatasetDiffers, "Pod %s on node %s cannot have its data: %s", pod, s.pods[pod].Spec.NodeName, why)
	}
	for _, name := range append(s.everyName(), s.layout.PrepareJob()) {
		if pod := s.pods[name]; pod != nil && pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == PodNotRunnable {
			return Fail(v1alpha1.ReasonPodsForbidden, "Pod %s cannot run on its machine: %s", name, pod.Status.Message)
		}
	}
	if f := p.lostClient(s); !f.OK() {
		return Fail(f.Reason, "%s", f.Message)
	}
	return Skip()
}

// lostClient judges the pods of clients that have ended.
func (*deploy) lostClient(s *scope) validity.Failure {
	ended := false
	for _, name := range s.clientNames() {
		switch pod := s.pods[name]; {
		case pod == nil || pod.DeletionTimestamp != nil:
			ended = ended || s.cache.clients[name]
		case pod.Status.Phase == corev1.PodFailed:
			ended = true
		default:
			s.cache.clients[name] = true
		}
	}
	if !ended {
		return validity.Failure{} // an observation of many pods takes a while
	}
	return validity.ClientsLost(s.observation(), s.cache.clients)
}

// configure hands every pod its files.
func (p *deploy) configure(ctx context.Context, s *scope) Result {
	for _, name := range s.everyName() {
		rep, want := s.report(name), s.rendered.pods[name].Directive
		if rep.FilesDigest != want.FilesDigest {
			return p.waitDeployed(s, v1alpha1.ReasonConfiguring, "waiting for the files of %s", name)
		}
		if !rep.NamesResolved {
			return p.waitDeployed(s, v1alpha1.ReasonConfiguring, "%s cannot resolve %s", name, few.Names(rep.Unresolved))
		}
	}
	// The files are shown to people only: nothing reads them there.
	if err := p.attachments.Show(ctx, s.subject(), s.rendered.trial.ShownFiles(s.rendered.pods)); err != nil {
		return Retry(err)
	}
	s.trial.Status.PodsDigest, s.trial.Status.Datasets = s.podsDigest(), copies.Of(&s.trial.Spec, s.pods)
	s.trial.Status.Nodes = s.nodesUsed()
	return Done(v1alpha1.ReasonReady, "Every pod runs and has its files.", &s.trial.Status.Times.Deployed)
}

// unreported lists the pods that do not exist, have no address, lack an image, or whose agents have
// not reported. It begins with the pods for which the cluster gives a reason, since a message names
// only some pods.
func (p *deploy) unreported(s *scope) []string {
	var explained, others []string
	prepare := s.layout.PrepareJob()
	for _, name := range append(s.everyName(), prepare) {
		p := s.pods[name]
		ready := p != nil && p.Status.PodIP != "" && s.report(name) != nil || name == prepare // the pod of the prepare step may be over
		if ready && !validity.LacksImage(p) {
			continue
		}
		if why := validity.PodWaiting(p); why != "" {
			explained = append(explained, name+why)
		} else {
			others = append(others, name)
		}
	}
	return append(explained, others...)
}

// prepare runs the prepare step, and returns true when its output is stored. It is called at each
// report of a pod. So it looks for the output only if the agent has sent it, or with mustKnow.
func (p *deploy) prepare(ctx context.Context, s *scope, mustKnow bool) (prepared bool, r Result) {
	if s.system.Prepare == nil {
		return true, Skip()
	}
	rep := s.report(s.layout.PrepareJob())
	if mustKnow || rep != nil && rep.Sent {
		if _, ok, err := p.renderer.prepared(ctx, s); err != nil || ok {
			return ok, rejected(err)
		}
	}
	switch {
	case rep == nil || rep.Failure == "":
	case rep.Unreadable:
		return false, Fail(v1alpha1.ReasonPrepareFailed, "The prepare step failed: %s.", rep.Failure)
	default:
		return false, Fail(v1alpha1.ReasonFailed, "The agent of the prepare step cannot go on: %s.", rep.Failure)
	}
	if s.cache.preparing || rep == nil {
		return false, Skip() // agents of unknown pods get no directives
	}
	t, err := render.NewTrial(&s.trial.Spec, s.system, s.layout)
	var pod *render.Pod
	if err == nil {
		pod, err = t.Prepare()
	}
	if err != nil {
		return false, Fail(v1alpha1.ReasonRenderFailed, "%s", err)
	}
	pod.Directive.Start = true
	p.agents.Direct(s.key, s.layout.PrepareJob(), pod.Directive, nil)
	s.cache.preparing = true
	return false, Skip()
}

// refusal returns why pods can never be made, or how soon to look again.
func (p *deploy) refusal(ctx context.Context, s *scope) (again time.Duration, why string, err error) {
	if !p.lacksPods(s) {
		return 0, "", nil
	}
	if next := s.cache.asked.Add(RetryPoll); s.now.Before(next) {
		return next.Sub(s.now), "", nil
	}
	if why, err = p.pods.Refusal(ctx, s.subject(), s.pods); err != nil {
		return 0, "", err
	}
	s.cache.asked = s.now
	return RetryPoll, why, nil
}

// lacksPods reports whether some pods of the trial do not exist.
func (p *deploy) lacksPods(s *scope) bool {
	for _, name := range s.everyName() {
		if s.pods[name] == nil {
			return true
		}
	}
	return s.system.Prepare != nil && s.pods[s.layout.PrepareJob()] == nil
}
