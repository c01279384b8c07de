package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/objects"
	"assay.dev/assay/operator/internal/controller/trial/prepared"
	"assay.dev/assay/operator/internal/engine/copies"
	"assay.dev/assay/operator/internal/fault"
	"assay.dev/assay/operator/internal/few"
	"assay.dev/assay/operator/internal/placement"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/validity"
)

// deployTimeout is how long pods may take to be scheduled, to pull their images and to report.
const deployTimeout = 5 * time.Minute

// deployPoll is how soon what failed is tried again, and missing pods are looked after: nothing
// tells that a quota has room, that an object in the way is gone, or that pods are refused.
const deployPoll = 2 * time.Second

// deploy makes the objects of the trial, runs the prepare step, and hands every pod its files once
// all pods have addresses.
func (r *Reconciler) deploy(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialDeployed) {
		if err := r.render(ctx, s); err != nil || s.rendered == nil {
			return err == nil, 0, err
		}
		return true, 0, r.renderSuccessors(ctx, s)
	}
	done, after, err := r.deployOnce(ctx, s)
	if err == nil || s.outcomeKnown() {
		return done, after, err
	}
	// An error is told of and has the deadline of the phase, since the trial holds its pools
	// meanwhile. It is not returned: the controller would wait longer and longer until it tries
	// again, beyond the deadline.
	done, after, err = s.waitDeployed(v1alpha1.ReasonPodsPending, "trying again what failed: %s", err)
	return done, min(after, deployPoll), err
}

// waitDeployed waits within the deadline of the phase.
func (s *scope) waitDeployed(reason, format string, args ...any) (bool, time.Duration, error) {
	limit := deployTimeout + copies.Limit(&s.trial.Spec)
	if p := s.system.Prepare; p != nil {
		limit += p.Timeout.OrZero()
	}
	return s.wait(v1alpha1.TrialDeployed, reason, fmt.Sprintf(format, args...), s.trial.Status.Times.Admitted, limit)
}

func (r *Reconciler) deployOnce(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if err := r.createOrGiveUp(ctx, s); err != nil || s.outcomeKnown() {
		return false, 0, err
	}
	missing := s.unreported()
	// The step runs while the other pods come up: it needs their names only.
	prepared, err := r.prepare(ctx, s, len(missing) == 0)
	if err != nil || s.outcomeKnown() {
		return false, 0, err
	}
	if len(missing) > 0 {
		if pod, why := copies.Refused(&s.trial.Spec, s.pods); pod != "" {
			s.giveUp(v1alpha1.ReasonDatasetDiffers, "Pod %s on node %s cannot have its data: %s", pod, s.pods[pod].Spec.NodeName, why)
			return false, 0, nil
		}
		poll, err := r.forbidden(ctx, s)
		if err != nil || s.outcomeKnown() {
			return false, 0, err
		}
		done, after, err := s.waitDeployed(v1alpha1.ReasonPodsPending, "waiting for the pods or agents of %s", few.Names(missing))
		if poll > 0 && after > poll {
			after = poll
		}
		return done, after, err
	}
	if failed := s.observation().FailedAgent(); failed != nil {
		s.giveUp(v1alpha1.ReasonFailed, "%s", failed.AgentFailure())
		return false, 0, nil
	}
	if !prepared {
		return s.waitDeployed(v1alpha1.ReasonPreparing, "waiting for the prepare step")
	}
	if err := r.render(ctx, s); err != nil || s.outcomeKnown() {
		return false, 0, err
	}
	if s.rendered == nil {
		return s.waitDeployed(v1alpha1.ReasonPodsPending, "waiting for the addresses of the pods")
	}
	r.direct(s, stage{})
	for _, name := range s.everyName() {
		rep, want := s.report(name), s.rendered.pods[name].Directive
		if rep.FilesDigest != want.FilesDigest {
			return s.waitDeployed(v1alpha1.ReasonConfiguring, "waiting for the files of %s", name)
		}
		if !rep.NamesResolved {
			return s.waitDeployed(v1alpha1.ReasonConfiguring, "%s cannot resolve %s", name, few.Names(rep.Unresolved))
		}
	}
	// People can read the files there; nothing depends on it.
	if err := r.objects().Create(ctx, s.trial, s.rendered.trial.ShownFiles(s.rendered.pods)); err != nil {
		return false, 0, err
	}
	s.trial.Status.PodsDigest, s.trial.Status.Datasets = s.podsDigest(), copies.Of(&s.trial.Spec, s.pods)
	s.done(v1alpha1.TrialDeployed, v1alpha1.ReasonReady, "Every pod runs and has its files.", &s.trial.Status.Times.Deployed)
	return true, 0, nil
}

// createOrGiveUp ends the trial when its objects cannot be made whatever is tried. What a quota
// refuses is tried again: others free what they have of it.
func (r *Reconciler) createOrGiveUp(ctx context.Context, s *scope) error {
	err := r.create(ctx, s)
	var bad *renderError
	var forbidden *objects.ForbiddenError
	switch {
	case errors.As(err, &bad):
		s.giveUp(v1alpha1.ReasonRenderFailed, "%s", bad.Error())
	case errors.As(err, &forbidden):
		s.giveUp(v1alpha1.ReasonPodsForbidden, "%s.", forbidden.Error())
	case objects.Denied(err):
		s.giveUp(v1alpha1.ReasonPodsForbidden, "The cluster refuses an object of the trial: %s", err)
	case apierrors.IsInvalid(err):
		s.giveUp(v1alpha1.ReasonRenderFailed, "The API server takes an object of the trial for invalid: %s", err)
	default:
		return err
	}
	return nil
}

// renderError is the System's fault, not the cluster's.
type renderError struct{ error }

// environment of a pod that is made now.
func (r *Reconciler) environment() render.Environment {
	env := r.Environment
	env.CoordinatorCA = r.Trusted()
	return env
}

func (r *Reconciler) objects() objects.Maker {
	return objects.Maker{Client: r.Client, Reader: r.Reader, Clock: r.Clock}
}

// create makes the trial's objects once. They never change, so that an object that is there is
// right, if it is ours.
func (r *Reconciler) create(ctx context.Context, s *scope) error {
	made := false
	r.remember(s.trial, func(m *memo) { made = m.created })
	if made {
		return nil
	}
	env := r.environment()
	if err := plan.CheckCapabilities(s.system, env.Capabilities); err != nil { // the owner may have changed the list
		return &renderError{fmt.Errorf("System %s: %w", s.trial.Spec.System.Name, err)}
	}
	offsets, err := r.objects().ClockOffsets(ctx, s.trial, s.layout)
	if err != nil {
		return err
	}
	env.SimulatedClockOffsets = offsets
	o, err := render.NewObjects(s.layout, &s.trial.Spec, s.system, env)
	if err != nil {
		return &renderError{err}
	}
	if err := r.objects().CheckPodSecurity(ctx, s.key.Namespace, o); err != nil {
		return err
	}
	if err := deskOf(r, s).Take(ctx, o); err != nil {
		return err
	}
	if err := r.objects().CreateAll(ctx, s.trial, o); err != nil {
		return err
	}
	if err := r.monitor(ctx, s); err != nil {
		return err
	}
	r.remember(s.trial, func(m *memo) { m.created, m.asked = true, s.now })
	return nil
}

// unreported lists the pods that do not exist, have no address or whose agents have not reported.
func (s *scope) unreported() []string {
	var missing []string
	for _, name := range s.everyName() {
		p := s.pods[name]
		if p == nil || p.Status.PodIP == "" || s.report(name) == nil {
			missing = append(missing, name+objects.Waiting(p))
		}
	}
	return missing
}

// prepare runs the prepare step and returns true when its output is stored. Unless it must know, it
// looks for the output only when the agent has sent it: it is called at every news of a pod.
func (r *Reconciler) prepare(ctx context.Context, s *scope, mustKnow bool) (bool, error) {
	if s.system.Prepare == nil {
		return true, nil
	}
	rep := s.report(s.layout.PrepareJob())
	if mustKnow || rep != nil && rep.Sent {
		if _, ok, err := r.preparedFiles(ctx, s); err != nil || ok || s.outcomeKnown() {
			return ok, err
		}
	}
	if rep != nil && rep.Failure != "" {
		s.giveUp(v1alpha1.ReasonPrepareFailed, "The prepare step failed: %s. %s", rep.Failure, validity.LastOutput(rep))
		return false, nil
	}
	asked := false
	if r.remember(s.trial, func(m *memo) { asked = m.preparing }); asked || rep == nil {
		return false, nil // the coordinator ignores directives for a pod that it does not know
	}
	t, err := render.NewTrial(&s.trial.Spec, s.system, s.layout)
	var pod *render.Pod
	if err == nil {
		pod, err = t.Prepare()
	}
	if err != nil {
		s.giveUp(v1alpha1.ReasonRenderFailed, "%s", err)
		return false, nil
	}
	pod.Directive.Start = true
	r.Coordinator.Direct(s.key, s.layout.PrepareJob(), pod.Directive, nil)
	r.remember(s.trial, func(m *memo) { m.preparing = true })
	return false, nil
}

func deskOf(r *Reconciler, s *scope) prepared.Desk {
	return prepared.Desk{Objects: r.objects(), Trial: s.trial, System: s.system, Layout: s.layout}
}

// preparedFiles reads the prepare step's output once it is stored.
func (r *Reconciler) preparedFiles(ctx context.Context, s *scope) (files []protocol.File, ok bool, err error) {
	if s.system.Prepare == nil {
		return nil, true, nil
	}
	if r.remember(s.trial, func(m *memo) { files = m.prepared }); files != nil {
		return files, true, nil
	}
	packed, err := deskOf(r, s).Read(ctx)
	if err != nil || packed == nil {
		return nil, false, err
	}
	if files, err = render.UnpackOutput(s.system.Prepare.OutputPath, packed); err != nil {
		s.giveUp(v1alpha1.ReasonPrepareFailed, "The prepare step's output cannot be read: %s", err)
		return nil, false, nil
	}
	r.remember(s.trial, func(m *memo) { m.prepared = files })
	return files, true, nil
}

// render renders all pods when all have addresses, and remembers it while they don't change.
func (r *Reconciler) render(ctx context.Context, s *scope) error {
	if s.trial.Status.ZeroUnixNanos != 0 && fault.MovesPods(s.trial.Spec.Faults) {
		// Frozen: a pod whose machine was reset, or that replaces another, has another address now,
		// or none.
		if r.remember(s.trial, func(m *memo) { s.rendered = m.rendered }); s.rendered != nil {
			return nil
		}
	}
	addresses, err := r.succession().Addresses(ctx, s.line)
	if err != nil {
		return err
	}
	resolved, missing := s.layout.Resolve(addresses)
	if len(missing) > 0 {
		return nil
	}
	key := resolved.Addresses()
	r.remember(s.trial, func(m *memo) {
		if old := m.rendered; old != nil && old.addresses == key {
			s.rendered = old
		}
	})
	if s.rendered != nil {
		return nil
	}
	prepared, ok, err := r.preparedFiles(ctx, s)
	if err != nil || !ok {
		return err
	}
	out, err := r.renderAll(s, resolved, prepared)
	if err != nil {
		s.giveUp(v1alpha1.ReasonRenderFailed, "%s", err)
		return nil
	}
	out.addresses = key
	s.rendered = out
	r.remember(s.trial, func(m *memo) { m.rendered = out })
	return nil
}

func (r *Reconciler) renderAll(s *scope, resolved *placement.Layout, prepared []protocol.File) (out *rendered, err error) {
	r.memory.heavy.Lock()
	defer r.memory.heavy.Unlock()
	out = &rendered{}
	out.trial, out.pods, err = render.All(s.trial, s.system, resolved, prepared, s.pods)
	return out, err
}

// forbidden gives the trial up when pods of it are refused, and else says how soon to look again.
func (r *Reconciler) forbidden(ctx context.Context, s *scope) (time.Duration, error) {
	owners := objects.OwnersOfMissing(s.layout, s.system.Prepare != nil, s.pods)
	if len(owners) == 0 {
		return 0, nil
	}
	var next time.Time
	if r.remember(s.trial, func(m *memo) { next = m.asked.Add(deployPoll) }); s.now.Before(next) {
		return next.Sub(s.now), nil
	}
	why, err := r.objects().RefusedPods(ctx, s.key.Namespace, owners)
	if err != nil {
		return 0, err
	}
	r.remember(s.trial, func(m *memo) { m.asked = s.now })
	if why != "" {
		s.giveUp(v1alpha1.ReasonPodsForbidden, "The cluster refuses pods of the trial: %s", why)
	}
	return deployPoll, nil
}
