package engine

import (
	"context"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
)

// faults gives a trial up before its objects are made, if the trial has a fault that neither an
// agent nor the injector can carry out.
type faults struct{ injector Injector }

func (*faults) condition() string { return v1alpha1.TrialDeployed }

func (p *faults) run(ctx context.Context, s *scope) Result {
	if s.isTrue(v1alpha1.TrialDeployed) {
		return Skip()
	}
	return p.possible(ctx, s)
}

// possible checks that every fault can be carried out. It is called again right before t = 0 is
// agreed.
func (p *faults) possible(ctx context.Context, s *scope) Result {
	if p.injector == nil {
		if kinds := chaosmesh.Kinds(s.trial.Spec.Faults); len(kinds) > 0 {
			return Fail(v1alpha1.ReasonChaosMeshMissing, "A fault needs Chaos Mesh, which is not here.")
		}
		return Skip()
	}
	why, err := p.injector.Refusal(ctx, s.trial)
	switch {
	case err != nil:
		return Retry(err)
	case why != "":
		return Fail(v1alpha1.ReasonChaosMeshMissing, "%s", why)
	}
	return Skip()
}

// clear begins to undo the faults of the injector.
func (p *faults) clear(ctx context.Context, s *scope) error {
	if p.injector == nil {
		return nil
	}
	return p.injector.Clear(ctx, s.trial)
}
