package objects

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// annotationSimulatedClockOffset of an Experiment makes agents misread their clocks: "<global
// replica index>=<duration>,...". It proves that clock offsets are measured and corrected.
const annotationSimulatedClockOffset = "assay.dev/simulated-clock-offset"

// ClockOffsets returns the offsets that the trial's agents simulate, in the form of their flag.
func (m Children) ClockOffsets(ctx context.Context, trial *v1alpha1.Trial, layout *placement.Layout) (string, error) {
	e := &v1alpha1.Experiment{}
	key := client.ObjectKey{Namespace: trial.Namespace, Name: trial.Spec.Experiment}
	if err := m.Client.Get(ctx, key, e); err != nil {
		return "", fmt.Errorf("read the trial's Experiment: %w", err)
	}
	var out []string
	replicas := layout.Replicas()
	for _, part := range strings.FieldsFunc(e.Annotations[annotationSimulatedClockOffset], func(c rune) bool { return c == ',' }) {
		var index int
		var offset string
		if _, err := fmt.Sscanf(strings.Replace(part, "=", " ", 1), "%d %s", &index, &offset); err != nil || index < 0 || index >= len(replicas) {
			return "", fmt.Errorf("annotation %s: %q is not <replica>=<duration> with a replica from 0 to %d",
				annotationSimulatedClockOffset, part, len(replicas)-1)
		}
		out = append(out, replicas[index].Name+"="+offset)
	}
	return strings.Join(out, ","), nil
}
