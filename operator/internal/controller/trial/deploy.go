package trial

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/few"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
)

// deployTimeout is how long pods may take to be scheduled, to pull their images and to report.
const deployTimeout = 5 * time.Minute

// deployPoll is how soon what failed is tried again: nothing tells that a quota has room, or that an object that was in the way is gone.
const deployPoll = 2 * time.Second

// deploy makes the objects of the trial, runs the prepare step, and hands every pod its files once all pods have addresses.
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
	// An error is told of and has the deadline of the phase, since the trial holds its pools meanwhile. It is not returned: the controller would wait
	// longer and longer until it tries again, beyond the deadline.
	done, after, err = s.waitDeployed(v1alpha1.ReasonPodsPending, "trying again what failed: %s", err)
	return done, min(after, deployPoll), err
}

// waitDeployed waits within the deadline of the phase.
func (s *scope) waitDeployed(reason, format string, args ...any) (bool, time.Duration, error) {
	limit := deployTimeout
	if p := s.system.Prepare; p != nil {
		limit += p.Timeout.OrZero()
	}
	return s.wait(v1alpha1.TrialDeployed, reason, fmt.Sprintf(format, args...), s.trial.Status.Times.Admitted, limit)
}

func (r *Reconciler) deployOnce(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if err := r.createOrGiveUp(ctx, s); err != nil || s.outcomeKnown() {
		return false, 0, err
	}
	if missing := r.unreported(s); len(missing) > 0 {
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
	if failed := r.agentFailure(s); failed != "" {
		s.giveUp(v1alpha1.ReasonFailed, "%s", failed)
		return false, 0, nil
	}
	if prepared, err := r.prepare(ctx, s); err != nil || !prepared {
		if err != nil || s.outcomeKnown() {
			return false, 0, err
		}
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
	if err := r.showFiles(ctx, s); err != nil {
		return false, 0, err
	}
	s.trial.Status.PodsDigest = s.podsDigest()
	s.done(v1alpha1.TrialDeployed, v1alpha1.ReasonReady, "Every pod runs and has its files.", &s.trial.Status.Times.Deployed)
	return true, 0, nil
}

// createOrGiveUp ends the trial when its objects cannot be made whatever is tried. What a quota refuses is tried again: others free what they have of it.
func (r *Reconciler) createOrGiveUp(ctx context.Context, s *scope) error {
	err := r.create(ctx, s)
	var bad *renderError
	var forbidden *forbiddenError
	switch {
	case errors.As(err, &bad):
		s.giveUp(v1alpha1.ReasonRenderFailed, "%s", bad.Error())
	case errors.As(err, &forbidden):
		s.giveUp(v1alpha1.ReasonPodsForbidden, "%s.", forbidden.Error())
	case denied(err):
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

// create makes the trial's objects once. They never change, so that an object that is there is right, if it is ours.
func (r *Reconciler) create(ctx context.Context, s *scope) error {
	made := false
	r.remember(s.trial, func(m *memo) { made = m.created })
	if made {
		return nil
	}
	env := r.environment()
	offsets, err := r.simulatedOffsets(ctx, s)
	if err != nil {
		return err
	}
	env.SimulatedClockOffsets = offsets
	o, err := render.NewObjects(s.layout, &s.trial.Spec, s.system, env)
	if err != nil {
		return &renderError{err}
	}
	if err := r.checkPodSecurity(ctx, s, o); err != nil {
		return err
	}
	objects := []client.Object{o.Service}
	if o.Prepare != nil {
		objects = append(objects, o.Prepare)
	}
	for _, set := range o.Replicas {
		objects = append(objects, set)
	}
	objects = append(objects, o.Clients)
	for _, obj := range objects {
		if err := r.createOne(ctx, s, obj); err != nil {
			return err
		}
	}
	if err := r.monitor(ctx, s); err != nil {
		return err
	}
	r.remember(s.trial, func(m *memo) { m.created = true })
	return nil
}

func (r *Reconciler) createOne(ctx context.Context, s *scope, obj client.Object) error {
	kind := fmt.Sprintf("%T", obj)
	kind = kind[strings.LastIndex(kind, ".")+1:]
	if err := controllerutil.SetControllerReference(s.trial, obj, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own %s %s: %w", kind, obj.GetName(), err)
	}
	err := r.Client.Create(ctx, obj)
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s %s: %w", kind, obj.GetName(), err)
	}
	found := obj.DeepCopyObject().(client.Object)
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(obj), found); err != nil {
		return fmt.Errorf("read %s %s: %w", kind, obj.GetName(), err)
	}
	if !metav1.IsControlledBy(found, s.trial) {
		return fmt.Errorf("%s %s exists and belongs to something else: delete it", kind, obj.GetName())
	}
	return nil
}

// annotationSimulatedClockOffset of an Experiment makes agents misread their clocks: "<global replica index>=<duration>,...". It proves that
// clock offsets are measured and corrected.
const annotationSimulatedClockOffset = "assay.dev/simulated-clock-offset"

func (r *Reconciler) simulatedOffsets(ctx context.Context, s *scope) (string, error) {
	e := &v1alpha1.Experiment{}
	key := client.ObjectKey{Namespace: s.trial.Namespace, Name: s.trial.Spec.Experiment}
	if err := r.Client.Get(ctx, key, e); err != nil {
		return "", fmt.Errorf("read the trial's Experiment: %w", err)
	}
	var out []string
	for _, part := range strings.FieldsFunc(e.Annotations[annotationSimulatedClockOffset], func(c rune) bool { return c == ',' }) {
		var index int
		var offset string
		if _, err := fmt.Sscanf(strings.Replace(part, "=", " ", 1), "%d %s", &index, &offset); err != nil || index < 0 || index >= len(s.layout.Replicas) {
			return "", fmt.Errorf("annotation %s: %q is not <replica>=<duration> with a replica from 0 to %d",
				annotationSimulatedClockOffset, part, len(s.layout.Replicas)-1)
		}
		out = append(out, s.layout.Replicas[index].Name+"="+offset)
	}
	return strings.Join(out, ","), nil
}

// unreported lists the pods that do not exist, have no address or whose agents have not reported.
func (r *Reconciler) unreported(s *scope) []string {
	var missing []string
	for _, name := range s.everyName() {
		p := s.pods[name]
		if p == nil || p.Status.PodIP == "" || s.report(name) == nil {
			missing = append(missing, name+why(p))
		}
	}
	return missing
}

// why tells what the cluster says about a pod that does not come up.
func why(p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return " (" + c.Message + ")"
		}
	}
	for _, c := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		if w := c.State.Waiting; w != nil && w.Message != "" {
			return fmt.Sprintf(" (%s: %s)", c.Name, w.Message)
		}
	}
	return ""
}

func (r *Reconciler) agentFailure(s *scope) string {
	for _, name := range s.everyName() {
		if rep := s.report(name); rep != nil && rep.Failure != "" && !s.leaving[name] {
			return fmt.Sprintf("The agent of %s cannot go on: %s", name, rep.Failure)
		}
	}
	return ""
}

// prepare runs the prepare step and returns true when its output is stored.
func (r *Reconciler) prepare(ctx context.Context, s *scope) (bool, error) {
	if s.system.Prepare == nil {
		return true, nil
	}
	if _, ok, err := r.preparedFiles(ctx, s); err != nil || ok {
		return ok, err
	}
	t, err := render.NewTrial(&s.trial.Spec, s.system, s.layout)
	if err != nil {
		s.giveUp(v1alpha1.ReasonRenderFailed, "%s", err)
		return false, nil
	}
	pod, err := t.Prepare()
	if err != nil {
		s.giveUp(v1alpha1.ReasonRenderFailed, "%s", err)
		return false, nil
	}
	name := s.layout.PrepareJob()
	d := pod.Directive
	d.Start = true
	r.Coordinator.Direct(s.key, name, d, nil)
	if rep := s.report(name); rep != nil && rep.Failure != "" {
		tail := ""
		if len(rep.Containers) > 0 {
			tail = rep.Containers[0].Tail
		}
		s.giveUp(v1alpha1.ReasonPrepareFailed, "The prepare step failed: %s. It printed: %s", rep.Failure, tail)
	}
	return false, nil
}

// preparedFiles reads the prepare step's output once it is stored.
func (r *Reconciler) preparedFiles(ctx context.Context, s *scope) (files []protocol.File, ok bool, err error) {
	if s.system.Prepare == nil {
		return nil, true, nil
	}
	r.remember(s.trial, func(m *memo) { files = m.prepared })
	if files != nil {
		return files, true, nil
	}
	secret := &corev1.Secret{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.key.Namespace, Name: s.layout.PreparedSecret()}, secret); err != nil {
		return nil, false, client.IgnoreNotFound(err)
	}
	if files, err = unpack(s.system.Prepare.OutputPath, secret.Data[preparedKey]); err != nil {
		s.giveUp(v1alpha1.ReasonPrepareFailed, "The prepare step's output cannot be read: %s", err)
		return nil, false, nil
	}
	r.remember(s.trial, func(m *memo) { m.prepared = files })
	return files, true, nil
}

// unpackLimit bounds what a packed output may hold.
const unpackLimit = 16 << 20

func unpack(dir string, packed []byte) ([]protocol.File, error) {
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	tr := tar.NewReader(io.LimitReader(gz, unpackLimit))
	files := []protocol.File{}
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			return nil, err
		}
		// Clean with a leading slash cannot leave the directory.
		files = append(files, protocol.File{Path: path.Join(dir, path.Clean("/"+h.Name)), Mode: uint32(h.Mode & 0o777), Content: content})
	}
}

// render renders all pods when all have addresses, and remembers it while they don't change.
func (r *Reconciler) render(ctx context.Context, s *scope) error {
	if s.trial.Status.ZeroUnixNanos != 0 && movesPods(&s.trial.Spec) {
		// Frozen: a pod whose machine was reset, or that replaces another, has another address now, or none.
		if r.remember(s.trial, func(m *memo) { s.rendered = m.rendered }); s.rendered != nil {
			return nil
		}
	}
	addresses, err := r.addresses(ctx, s)
	if err != nil {
		return err
	}
	resolved, missing := s.layout.Resolve(addresses)
	if len(missing) > 0 {
		return nil
	}
	key := addressKey(resolved)
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
	out, err := renderAll(s, resolved, prepared)
	if err != nil {
		s.giveUp(v1alpha1.ReasonRenderFailed, "%s", err)
		return nil
	}
	out.addresses = key
	s.rendered = out
	r.remember(s.trial, func(m *memo) { m.rendered = out })
	return nil
}

func addressKey(l *render.Layout) string {
	var b strings.Builder
	for _, p := range l.Replicas {
		b.WriteString(p.Name + "=" + p.IP + ",")
	}
	for _, p := range l.Clients {
		b.WriteString(p.Name + "=" + p.IP + ",")
	}
	return b.String()
}

func renderAll(s *scope, resolved *render.Layout, prepared []protocol.File) (*rendered, error) {
	t, err := render.NewTrial(&s.trial.Spec, s.system, resolved)
	if err != nil {
		return nil, err
	}
	out := &rendered{trial: t, pods: map[string]*render.Pod{}}
	for _, p := range resolved.Replicas {
		if out.pods[p.Name], err = t.Replica(p); err != nil {
			return nil, err
		}
	}
	for _, p := range resolved.Clients {
		if out.pods[p.Name], err = t.Client(p); err != nil {
			return nil, err
		}
	}
	key := probeKey(s.trial.UID)
	for name, p := range out.pods {
		p.WithPrepared(prepared)
		if p.Directive.Network, err = t.Network(name); err != nil {
			return nil, err
		}
		p.Directive.Network.ProbeKey = key
	}
	return out, nil
}

// showFiles puts the rendered files where people can read them. Nothing depends on it; the prepare step's output, which may hold keys, is not in it.
func (r *Reconciler) showFiles(ctx context.Context, s *scope) error {
	files, part := map[string][]protocol.File{}, map[string]string{}
	prefix := ""
	if s.system.Prepare != nil {
		prefix = s.system.Prepare.OutputPath + "/"
	}
	for name, p := range s.rendered.pods {
		part[name] = v1alpha1.PartReplica
		if p.Directive.Client != nil {
			part[name] = v1alpha1.PartClient
		}
		for _, f := range p.Files {
			if prefix == "" || !strings.HasPrefix(f.Path, prefix) {
				files[name] = append(files[name], f)
			}
		}
	}
	data := s.rendered.trial.FilesByName(files, part)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: s.layout.FilesConfigMap(), Namespace: s.key.Namespace,
		Labels: map[string]string{v1alpha1.LabelTrial: s.key.Name, v1alpha1.LabelExperiment: s.trial.Spec.Experiment},
	}, Data: fitData(data)}
	return r.createOne(ctx, s, cm)
}

// fitData leaves out the largest entries until a ConfigMap can hold the rest.
func fitData(data map[string]string) map[string]string {
	keys := make([]string, 0, len(data))
	size := 0
	for k, v := range data {
		keys = append(keys, k)
		size += len(k) + len(v)
	}
	sort.Slice(keys, func(i, j int) bool {
		if len(data[keys[i]]) != len(data[keys[j]]) {
			return len(data[keys[i]]) > len(data[keys[j]])
		}
		return keys[i] < keys[j]
	})
	for _, k := range keys {
		if size <= configMapLimit {
			break
		}
		size -= len(data[k])
		data[k] = "left out: too large for a ConfigMap"
	}
	return data
}

// configMapLimit is what our ConfigMaps may hold; the API server refuses 1 MiB.
const configMapLimit = 1000 << 10
