package validity

import (
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/run"
)

// successors judges whether every replica that a fault replaced ran by the end. That it was
// replaced at all is the fault's to confirm, and how soon its replica serves again is the system's.
func successors(o *run.Observed) Verdict {
	last := o.Windows().LastRequest()
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Client != nil || len(p.Line) == 0 || p.LastGone() > last {
			continue // what happens after the last request changes nothing that is measured
		}
		switch {
		case p.Leaving:
			return refuse(v1alpha1.ReasonRunLost, "Pod %s, which a fault deleted, did not come back.", p.Name)
		case len(p.Line) == 1:
		case p.Report == nil:
			return refuse(v1alpha1.ReasonRunLost, "Pod %s was replaced as planned, and the agent of the pod that took its place did not report.", p.Name)
		case !allStarted(p.Report):
			return refuse(v1alpha1.ReasonRunLost, "Pod %s was replaced as planned, and the processes of the pod that took its place were not started; it waited for %s.",
				p.Name, p.Report.WaitingFor)
		}
	}
	return Verdict{}
}

func allStarted(rep *protocol.Report) bool {
	return !slices.ContainsFunc(rep.Containers, func(c protocol.ContainerState) bool { return c.Starts == 0 })
}
