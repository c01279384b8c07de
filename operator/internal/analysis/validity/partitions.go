package validity

import (
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
)

const (
	// partitionMargin is left out at both ends of a partition, for packets in flight and for the
	// second that Chaos Mesh needs to begin and to end.
	partitionMargin = time.Second
	// canaryEvery is how often each pod probes each other one in the window.
	canaryEvery = time.Second
	// fewestExpected is how many probes of a pair must have been sent into a partition for their
	// loss to be expected.
	fewestExpected = 2
)

// partitions judges whether the trial's own probes passed a partition that Chaos Mesh says was in
// force. Every pod probes every other one each second of the window, in any network. A probe is
// lost if either direction is cut.
func partitions(o *Observation) Failure {
	for i := range o.Injections {
		t := &o.Injections[i]
		expected := probesInto(t, o.Windows().Measure)
		if !chaosmesh.Separates(t.Fault) || expected < fewestExpected {
			continue
		}
		for _, p := range o.Pairs {
			if !t.Separates(p.A, p.B) || o.AgentActs(p.A) || o.AgentActs(p.B) {
				continue
			}
			for _, v := range p.Views() {
				if v.Said != nil && v.Said.CanarySent > 0 && 2*v.Said.CanaryLost < expected {
					return fail(v1alpha1.ReasonFaultNotConfirmed,
						"Chaos Mesh said that fault %s (%s, time %d) was in force, and of %d probes that %s sent to %s in that time or more, %d were lost in all.",
						t.Fault.Name, chaosmesh.Describe(t.Fault), t.Time, expected, v.From, v.To, v.Said.CanaryLost)
				}
			}
		}
	}
	return Failure{}
}

// probesInto is how many probes of a pair were sent at least while a fault was in force within the
// window.
func probesInto(t *Injection, measure time.Duration) int {
	if t.Confirmed == nil || t.Ended == nil {
		return 0
	}
	from := max(0, *t.Confirmed) + partitionMargin
	to := min(*t.Ended, measure) - partitionMargin
	return int(max(0, to-from) / canaryEvery)
}
