package render

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
)

// Chaos returns the first time of a fault that Chaos Mesh carries out in a trial.
func Chaos(l *placement.Layout, spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec, f *v1alpha1.Fault) (chaosmesh.Occurrence, error) {
	o := chaosmesh.Occurrence{
		Namespace: l.Namespace, Trial: l.Trial, Experiment: spec.Experiment, Fault: f, Time: 1, Containers: ContainersOf(system, f),
	}
	if f.For != nil {
		o.Left = f.For.OrZero()
	}
	actions, err := fault.Build([]v1alpha1.Fault{*f}, timeline.FromSchedule(spec.Schedule), l)
	if err != nil {
		return o, err
	}
	for _, a := range actions {
		if a.Kind == timeline.Inject && a.Time == 1 {
			o.Pods, o.Peers = append(o.Pods, a.Pod), a.Peers
		}
	}
	return o, nil
}

// ContainersOf names the containers of the target pods of a fault of Chaos Mesh, in order.
func ContainersOf(system *v1alpha1.SystemSpec, f *v1alpha1.Fault) []string {
	var names []string
	group := system.Group(chaosmesh.Component(f))
	if group == nil {
		return nil
	}
	for _, c := range group.Containers {
		names = append(names, c.Name)
	}
	return names
}
