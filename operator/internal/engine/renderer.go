package engine

import (
	"context"
	"sync"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/linkcheck"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/node/protocol"
)

// renderer renders the files of the pods.
type renderer struct {
	record      Record
	attachments Attachments
	// heavy lets only one trial at a time render its templates or merge its results. Both take
	// memory in proportion to the data of authors and pods.
	heavy sync.Mutex
}

// prepared reads the prepare step's output once it is stored.
func (r *renderer) prepared(ctx context.Context, s *scope) (files []protocol.File, ok bool, err error) {
	if s.system.Prepare == nil {
		return nil, true, nil
	}
	if s.cache.prepared != nil {
		return s.cache.prepared, true, nil
	}
	packed, err := r.attachments.Prepared(ctx, s.subject())
	if err != nil || packed == nil {
		return nil, false, err
	}
	if files, err = render.UnpackOutput(s.system.Prepare.OutputPath, packed); err != nil {
		return nil, false, &RejectedError{v1alpha1.ReasonPrepareFailed, "The prepare step's output cannot be read: " + err.Error()}
	}
	s.cache.prepared = files
	return files, true, nil
}

// addresses returns the pods' addresses for rendering, by pod. After the release of a run that
// moves pods, they are the addresses at the release. Otherwise they are the current addresses.
func (r *renderer) addresses(ctx context.Context, s *scope) (map[string]string, error) {
	if s.trial.Status.ZeroUnixNanos == 0 || !fault.MovesPods(s.trial.Spec.Faults) {
		return s.addresses(), nil
	}
	kept, err := s.readRelease(ctx, r.record)
	if err != nil {
		return nil, err
	}
	return kept.Addresses, nil
}

// addresses returns the addresses of the existing pods.
func (s *members) addresses() map[string]string {
	all := map[string]string{}
	for name, p := range s.pods {
		all[name] = p.Status.PodIP
	}
	return all
}

// render renders all pods when all have addresses. It keeps the result while the addresses do not
// change. A RejectedError ends the trial.
func (r *renderer) render(ctx context.Context, s *scope) error {
	if s.trial.Status.ZeroUnixNanos != 0 && fault.MovesPods(s.trial.Spec.Faults) {
		// After the release nothing is rendered again: a pod whose node was reset, or that replaces
		// another one, has a new address, or none.
		if s.rendered = s.cache.rendered; s.rendered != nil {
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
	key := resolved.Addresses()
	if kept := s.cache.rendered; kept != nil && kept.addresses == key {
		s.rendered = kept
		return nil
	}
	prepared, ok, err := r.prepared(ctx, s)
	if err != nil || !ok {
		return err
	}
	out, err := r.all(s, resolved, prepared)
	if err != nil {
		return err
	}
	out.addresses = key
	s.rendered, s.cache.rendered = out, out
	return nil
}

func (r *renderer) all(s *scope, resolved *placement.Layout, prepared []protocol.File) (*rendered, error) {
	r.heavy.Lock()
	defer r.heavy.Unlock()
	out := &rendered{}
	var err error
	if out.trial, out.pods, err = render.All(s.trial, s.system, resolved, prepared, s.pods); err != nil {
		return nil, &RejectedError{v1alpha1.ReasonRenderFailed, err.Error()}
	}
	out.longest = linkcheck.LongestRoundTrip(out.pods)
	return out, nil
}

// renderReplacements renders the pods that have replaced others. Such a pod sees its own new
// address, and the addresses of the other pods at t = 0. The other pods still see its old address,
// so that no file of a living pod changes.
func (r *renderer) renderReplacements(ctx context.Context, s *scope) error {
	s.replacements = map[string]*render.Pod{}
	for _, name := range s.everyName() {
		p := s.pods[name]
		if !s.history.Replaced(name) || p == nil || p.Status.PodIP == "" {
			continue
		}
		if s.replacements[name] = s.cache.replacements[p.UID]; s.replacements[name] != nil {
			continue
		}
		released, err := r.addresses(ctx, s)
		if err != nil {
			return err
		}
		addresses := map[string]string{}
		for pod, at := range released {
			addresses[pod] = at
		}
		addresses[name] = p.Status.PodIP
		resolved, _ := s.layout.Resolve(addresses)
		prepared, _, err := r.prepared(ctx, s)
		if err != nil {
			return err
		}
		all, err := r.all(s, resolved, prepared)
		if err != nil {
			return err
		}
		s.replacements[name], s.cache.replacements[p.UID] = all.pods[name], all.pods[name]
	}
	return nil
}

// renderedPod returns the rendered pod of this name. It is nil for a replacement without an
// address.
func (s *scope) renderedPod(name string) *render.Pod {
	if s.history.Replaced(name) {
		return s.replacements[name]
	}
	return s.rendered.pods[name]
}
