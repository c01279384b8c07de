package validity

import (
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// replicas judges whether every process of the system lived for as long as it mattered, other than
// the processes that a fault killed. That is until the first client ended, or the last request.
// Events of a replica after that, such as to die of SIGPIPE when clients are killed one by one,
// change nothing that is measured. That the clients themselves lasted for all of the window, ends
// judges.
func replicas(o *Observation) Failure {
	over := o.Windows().LastRequest()
	for i := range o.Pods {
		if rep := o.Pods[i].Report; o.Pods[i].Client != nil && rep != nil && rep.Client != nil && rep.Client.Ended != 0 {
			over = min(over, rep.Client.Ended)
		}
	}
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Client != nil || p.Report == nil || p.Terminating {
			continue
		}
		if v := ReplicaExit(p.Name, p.Report, over); !v.OK() {
			return v
		}
	}
	return Failure{}
}

// ReplicaExit judges whether a process of a replica ended by itself before an instant, relative to
// t = 0. One whose end is not known ended before.
func ReplicaExit(pod string, rep *protocol.Report, before time.Duration) Failure {
	for _, c := range rep.Containers {
		if c.State != protocol.StateExited || c.Expected || c.Exited != 0 && c.Exited >= before {
			continue
		}
		return fail(v1alpha1.ReasonReplicaExited, "The process of %s/%s ended with %s though no fault killed it. It printed: %s", pod, c.Name, exitText(c.ExitCode), c.Tail)
	}
	return Failure{}
}
