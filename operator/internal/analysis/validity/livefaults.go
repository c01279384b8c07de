package validity

import (
	"fmt"

	"assay.dev/assay/operator/internal/node/protocol"
)

// LiveFaults are the actions that took effect so far, in the order of the plan. Each is there once,
// at the first instant among its pods. A user who watches the trial sees them at once.
func (o *Observation) LiveFaults() []protocol.LiveFault {
	var faults []protocol.LiveFault
	at := map[string]int{}
	for _, a := range o.Actions {
		done := o.record(a)
		if done == nil || done.Skipped || done.Error != "" {
			continue
		}
		instant := done.Confirmed
		if a.Kind.ConfirmedLate() {
			instant = done.Started
		}
		f := protocol.LiveFault{Fault: a.Fault, Time: a.Time, Kind: string(a.Kind), Ends: a.Kind.Ends(), Object: a.Object, Millis: float64(instant.Microseconds()) / 1e3}
		key := fmt.Sprint(f.Fault, f.Time, f.Kind, f.Object)
		if i, ok := at[key]; ok {
			faults[i].Millis = min(faults[i].Millis, f.Millis)
			continue
		}
		if len(faults) == protocol.MostLiveFaults {
			break
		}
		at[key] = len(faults)
		faults = append(faults, f)
	}
	return faults
}
