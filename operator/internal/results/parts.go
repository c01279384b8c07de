package results

import (
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
)

// Readings are all that was read of a pod in a run. So it can be said what it used in parts of the
// run that are known at the end. A reading takes some 200 bytes: of three hours, once a second,
// that is 4 MB for two containers. The zero value has none, and nil keeps none.
type Readings struct {
	all []reading
}

// reading of a container, or of the pod where there is no name.
type reading struct {
	name      string
	container ContainerReading
	pod       PodReading
}

// mostReadings are kept. Later readings are not known of any part.
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

// around a part is where the readings are that its ends lie between. A busy machine delays some.
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
