package plan_test

import (
	"errors"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

func TestCheckCapabilities(t *testing.T) {
	system := builders.System("rdma").Set(withProxies).Set(func(s *v1alpha1.SystemSpec) {
		s.Replicas.Containers[0].Capabilities = []string{"IPC_LOCK", "SYS_NICE"}
		s.Components[0].Containers[0].Capabilities = []string{"IPC_LOCK"}
		s.Prepare = &v1alpha1.PrepareStep{Container: v1alpha1.Container{Capabilities: []string{"SYS_ADMIN"}}}
	}).Obj().Spec
	for name, tc := range map[string]struct {
		allowed []string
		want    string
	}{
		"all of them":    {[]string{"SYS_ADMIN", "SYS_NICE", "IPC_LOCK"}, ""},
		"some":           {[]string{"IPC_LOCK"}, "(spec.prepare.container.capabilities[0]: SYS_ADMIN; spec.replicas.containers[0].capabilities[1]: SYS_NICE); it allows IPC_LOCK."},
		"none":           {nil, "spec.components[0].containers[0].capabilities[0]: IPC_LOCK; spec.prepare"},
		"none, in words": {nil, "it allows none. The owner of the cluster can add to them: trialPods.capabilities of the chart"},
	} {
		t.Run(name, func(t *testing.T) {
			err := plan.CheckCapabilities(&system, tc.allowed)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// The error names the system that asks for too much.
func TestCapabilitiesAreAskedFor(t *testing.T) {
	systems := map[string]v1alpha1.SystemSpec{"echo": builders.System("echo").Obj().Spec, "rdma": builders.System("rdma").Obj().Spec}
	exp := builders.Experiment("exp").System("echo").System("rdma").Obj()
	_, errs := plan.Validate(exp, systems, plan.Checks{Capabilities: func(s *v1alpha1.SystemSpec) error {
		if s.Description == "" {
			return errors.New("an empty system was asked about")
		}
		return nil
	}})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	rdma := systems["rdma"]
	rdma.Replicas.Containers[0].Capabilities = []string{"IPC_LOCK"}
	_, errs = plan.Validate(exp, systems, plan.Checks{Capabilities: func(s *v1alpha1.SystemSpec) error { return plan.CheckCapabilities(s, nil) }})
	if err := errs.ToAggregate(); err == nil || !strings.Contains(err.Error(), "spec.systems[1].name: Forbidden: System rdma: its containers want capabilities") {
		t.Errorf("error %v", err)
	}
}
