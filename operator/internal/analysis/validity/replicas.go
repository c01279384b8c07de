package validity

import (
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// replicas judges whether every process of the system lived long enough, except for processes that
// a fault killed. A process must live until the first client ends, or until the last request. Later
// events of a replica change no measurement, such as its death by SIGPIPE when clients are killed
// one by one. The check ends judges whether the clients themselves lasted for all of the window.
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
// t = 0. A process whose end is unknown counts as ended before.
func ReplicaExit(pod string, rep *protocol.Report, before time.Duration) Failure {
	for _, c := range rep.Containers {
		if c.State != protocol.StateExited || c.Expected || c.Exited != 0 && c.Exited >= before {
			continue
		}
		return fail(v1alpha1.ReasonReplicaExited, "The process of %s/%s ended with %s though no fault killed it. It printed: %s", pod, c.Name, exitText(c.ExitCode), c.Tail)
	}
	return Failure{}
}
