package validity

import (
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// successors judges whether every replica that a fault replaced ran by the end. The fault's
// confirmation shows that it was replaced at all. How soon the new replica serves depends on the
// system.
func successors(o *Observation) Failure {
	last := o.Windows().LastRequest()
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Client != nil || len(p.Incarnations) == 0 || p.LastDeleted() > last {
			continue // what happens after the last request changes nothing that is measured
		}
		switch {
		case p.Terminating:
			return fail(v1alpha1.ReasonRunLost, "Pod %s, which a fault deleted, did not come back.", p.Name)
		case len(p.Incarnations) == 1:
		case p.Report == nil:
			return fail(v1alpha1.ReasonRunLost, "Pod %s was replaced as planned, and the agent of the pod that took its place did not report.", p.Name)
		case !allStarted(p.Report):
			return fail(v1alpha1.ReasonRunLost, "Pod %s was replaced as planned, and the processes of the pod that took its place were not started; it waited for %s.",
				p.Name, p.Report.WaitingFor)
		}
	}
	return Failure{}
}

func allStarted(rep *protocol.Report) bool {
	return !slices.ContainsFunc(rep.Containers, func(c protocol.ContainerState) bool { return c.Starts == 0 })
}
