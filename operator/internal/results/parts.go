package results

import (
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
)

// Readings keeps all readings of a pod in a run. From them, Of computes the pod's use in parts of
// the run that are known only at the end. A reading takes some 200 bytes: two containers, read once
// a second for three hours, take 4 MB. The zero value has no readings, and a nil value keeps none.
type Readings struct {
	all []reading
}

// reading of a container, or of the pod where there is no name.
type reading struct {
	name      string
	container ContainerReading
	pod       PodReading
}

// mostReadings are kept. Later readings are dropped, so that the use after them is unknown.
const mostReadings = 100_000

// Container keeps a reading of a container.
func (r *Readings) Container(name string, of ContainerReading) {
	if r != nil && len(r.all) < mostReadings {
		r.all = append(r.all, reading{name: name, container: of})
	}
}

// Pod keeps a reading of the pod and its node.
func (r *Readings) Pod(of PodReading) {
	if r != nil && len(r.all) < mostReadings {
		r.all = append(r.all, reading{pod: of})
	}
}

// around is how far outside of a part readings still count: each end of the part lies between two
// readings, and a busy machine delays some.
const around = 5 * time.Second

// Of is what the pod used in each part, without a series.
func (r *Readings) Of(parts []timeline.Span, containers []string) []Resources {
	if r == nil {
		return nil
	}
	out := make([]Resources, 0, len(parts))
	for _, part := range parts {
		m := NewMeter(timeline.Windows{Measure: max(part.Length(), time.Millisecond)}, containers)
		for _, one := range r.all {
			one.container.At -= part.From
			one.pod.At -= part.From
			at := one.pod.At
			if one.name != "" {
				at = one.container.At
			}
			switch {
			case at < -around || at > part.Length()+around:
			case one.name == "":
				m.Pod(one.pod)
			default:
				m.Container(one.name, one.container)
			}
		}
		used := m.Resources()
		used.Series = nil
		out = append(out, *used)
	}
	return out
}
