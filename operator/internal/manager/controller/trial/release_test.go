package trial

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/node/protocol"
)

func TestLinesAreCutToFit(t *testing.T) {
	line := func() []validity.Incarnation {
		return []validity.Incarnation{{UID: "a", Last: &protocol.Report{TCPResets: 1, Containers: []protocol.ContainerState{{Name: "c", Tail: strings.Repeat("x", protocol.TailLimit)}}}}, {UID: "b"}}
	}
	lines := map[string][]validity.Incarnation{}
	for i := range 400 {
		lines[fmt.Sprint("r-", i)] = line()
	}
	content, err := encodeIncarnations(lines)
	if err != nil || len(content) > incarnationsLimit {
		t.Fatalf("%d bytes, %v; want at most %d", len(content), err, incarnationsLimit)
	}
	var back map[string][]validity.Incarnation
	if err := json.Unmarshal([]byte(content), &back); err != nil || len(back) != 400 || back["r-7"][0].Last.TCPResets != 1 {
		t.Errorf("what is left of the lines: %d, %v", len(back), err)
	}
}
