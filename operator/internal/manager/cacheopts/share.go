package cacheopts

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// shareStrings replaces equal strings of cached Trials by one string. There are thousands of
// Trials, and nearly all strings of their specs and conditions are equal, but each decoded Trial
// has its own copies. Package unique forgets unused strings at a garbage collection, so a Trial
// shares strings with those cached since the last one.
//
// The object is not in the cache yet, and no other goroutine has it, so it may be changed in place.
func shareStrings(obj any) (any, error) {
	t, ok := obj.(*v1alpha1.Trial)
	if !ok {
		return obj, nil
	}
	t.ManagedFields = nil
	shareMeta(&t.ObjectMeta)
	shareSpec(&t.Spec)
	for i := range t.Status.Conditions {
		c := &t.Status.Conditions[i]
		share(&c.Type, &c.Reason, &c.Message)
		share(&c.Status)
	}
	return t, nil
}

func shareMeta(m *metav1.ObjectMeta) {
	share(&m.Namespace)
	m.Labels = shareMap(m.Labels)
	for i := range m.OwnerReferences {
		o := &m.OwnerReferences[i]
		share(&o.APIVersion, &o.Kind, &o.Name)
		share(&o.UID)
	}
	for i := range m.Finalizers {
		share(&m.Finalizers[i])
	}
}

func shareSpec(s *v1alpha1.TrialSpec) {
	share(&s.Experiment, &s.System.Name, &s.System.Revision, &s.Workload)
	share(&s.Network.Profile)
	share(&s.Network.Backend)
	share(&s.Network.Shaping)
	share(&s.Placement.Replicas, &s.Placement.Clients, &s.NodeSet)
	share(&s.Placement.Spread)
	s.Network.Links = links.share(s.Network.Links)
	for i := range s.Clients.Regions {
		share(&s.Clients.Regions[i])
	}
	share(&s.Schedule.WarmUp, &s.Schedule.Measure, &s.Schedule.CoolDown, &s.Schedule.Drain,
		&s.Clients.Timeout, &s.Clients.Retry.Backoff, &s.Clients.Retry.MaxBackoff, &s.Tolerances.FaultLateness, &s.Tolerances.StartSpread,
		&s.Tolerances.LinkDelay, &s.Tolerances.LinkLateness, &s.Tolerances.GeneratorLag, &s.Tolerances.ClockError, &s.Tolerances.ClockOffset)
	share(&s.Tolerances.LinkLoss, &s.Tolerances.Throttling, &s.Tolerances.Steal, &s.Tolerances.Contention, &s.Tolerances.OutOfRange)
	share(&s.Clients.Loop)
	s.Point.Coordinates = shareMap(s.Point.Coordinates)
	shareTopology(&s.Topology)
	for i := range s.Placement.Components {
		share(&s.Placement.Components[i].Name, &s.Placement.Components[i].Pool)
	}
	if by := s.Placement.ByRegion; by != nil {
		share(&by.Label)
		for i := range by.Values {
			share(&by.Values[i].Region, &by.Values[i].Value)
		}
	}
	if s.Parameters != nil {
		parameters := make(map[string]v1alpha1.Value, len(s.Parameters))
		for name, v := range s.Parameters {
			parameters[unique.Make(name).Value()] = v1alpha1.NewValue(unique.Make(v.String()).Value())
		}
		s.Parameters = parameters
	}
	for i := range s.Measurements {
		m := &s.Measurements[i]
		share(&m.Name, &m.Query, &m.Unit, &m.Counter, &m.Per)
		share(&m.Over)
	}
	for i := range s.Faults {
		share(&s.Faults[i].Name)
		share(&s.Faults[i].At)
	}
}

func shareTopology(t *v1alpha1.Topology) {
	for i := range t.Regions {
		share(&t.Regions[i].Name)
	}
	for i := range t.Components {
		share(&t.Components[i].Name)
		for j := range t.Components[i].Regions {
			share(&t.Components[i].Regions[j].Name)
		}
	}
}

func share[S ~string](strings ...*S) {
	for _, s := range strings {
		*s = unique.Make(*s).Value()
	}
}

func shareMap(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[unique.Make(k).Value()] = unique.Make(v).Value()
	}
	return out
}
