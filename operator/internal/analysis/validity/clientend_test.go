package validity

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// A client may end before the window does, but only by as much as clients may start apart.
func TestClientEnd(t *testing.T) {
	spec := &v1alpha1.TrialSpec{Schedule: v1alpha1.Schedule{Measure: "20s"}, Tolerances: v1alpha1.Tolerances{StartSpread: "100ms"}}
	for name, tc := range map[string]struct {
		client protocol.ClientRun
		want   string
	}{
		"with the window":          {protocol.ClientRun{Ended: 20 * time.Second}, ""},
		"as early as is tolerated": {protocol.ClientRun{Ended: 19_900 * time.Millisecond}, ""},
		"a bit earlier":            {protocol.ClientRun{Ended: 19_899 * time.Millisecond}, v1alpha1.ReasonLoadEndedEarly},
		"never":                    {protocol.ClientRun{}, v1alpha1.ReasonClientLost},
		"by a failure":             {protocol.ClientRun{Ended: time.Second, ExitCode: 1}, v1alpha1.ReasonClientFailed},
		"by a failure at the end":  {protocol.ClientRun{Ended: 20 * time.Second, ExitCode: 1}, ""}, // no request is sent then
		"by a signal that it got":  {protocol.ClientRun{Ended: 20 * time.Second, ExitCode: 143, Asked: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if f := ClientEnd(spec, "c-0", &protocol.Report{Over: true, Client: &tc.client}); f.Reason != tc.want {
				t.Errorf("%q: %s; want %q", f.Reason, f.Message, tc.want)
			}
		})
	}
}

// A client whose process ends before its agent releases it has failed by itself. Its agent has no
// run to report. The end of another container tells nothing about the client.
func TestClientEndsBeforeItsRelease(t *testing.T) {
	spec := &v1alpha1.TrialSpec{Schedule: v1alpha1.Schedule{Measure: "20s"}}
	for state, want := range map[string]string{protocol.StateExited: v1alpha1.ReasonClientFailed, protocol.StateRunning: v1alpha1.ReasonClientLost} {
		for _, client := range []*protocol.ClientRun{nil, {Released: -time.Second}} { // the agent writes start files even then
			rep := &protocol.Report{Over: true, Client: client, Containers: []protocol.ContainerState{{Name: "client", State: state, ExitCode: 1, Tail: "no such host"}, {Name: "helper", State: protocol.StateExited}}}
			if f := ClientEnd(spec, "c-0", rep); f.Reason != want || !strings.HasSuffix(f.Message, "no such host") {
				t.Errorf("%s, %+v: %q: %s; want %q", state, client, f.Reason, f.Message, want)
			}
		}
	}
}
