package integration

import (
	"testing"

	"assay.dev/assay/operator/internal/testkit/refusals"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

func TestWrongComponentsAreRefused(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	createSystems(t, env, ns)
	refuse(t, env, ns, "systems/components.yaml", refusals.WrongComponents)
	refuse(t, env, ns, "experiment-components.yaml", refusals.WrongFaultsOfComponents)
}
