package validity

import (
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// A client that was ended as planned and had printed nothing that could be read left no line
// behind.
func TestLogsOfTrialsThatDoNotCount(t *testing.T) {
	o := &Observation{Trial: &v1alpha1.Trial{}, Pods: []Pod{{Name: "silent"}, {Name: "client", Report: &protocol.Report{Containers: []protocol.ContainerState{
		{Name: "ended", State: protocol.StateExited, Expected: true, Tail: "usage: client --keys N"},
		{Name: "quiet", State: protocol.StateExited, Expected: true},
	}}}}}
	result := o.Describe()
	if len(result.Logs) > 0 {
		t.Errorf("a trial that counts keeps %v of processes that ended as planned", result.Logs)
	}
	o.KeepLogs(result)
	if len(result.Logs) != 1 || result.Logs["client/ended"] != "usage: client --keys N" {
		t.Errorf("kept are %v; want what client/ended printed", result.Logs)
	}
}
