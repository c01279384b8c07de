package fault

import (
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/model/timeline"
)

// Occurrence is one time of a fault that Chaos Mesh carries out.
type Occurrence struct {
	// ID is unique in the trial: "<fault>/<time>".
	ID    string
	Fault *v1alpha1.Fault
	// Time of the fault, from 1.
	Time int
	// From and To are relative to t = 0. To is 0 if the fault is over at once.
	From, To time.Duration
	// Pods are those of the target, Peers those at the other end.
	Pods, Peers []string
}

// Occurrences returns the times of faults that Chaos Mesh carries out, in order of their beginning.
func Occurrences(faults []v1alpha1.Fault, w timeline.Windows, cast Cast) ([]*Occurrence, error) {
	if !UsesChaosMesh(faults) {
		return nil, nil
	}
	actions, err := Build(faults, w, cast)
	if err != nil {
		return nil, err
	}
	var all []*Occurrence
	byID := map[string]*Occurrence{}
	for _, a := range actions {
		if !a.Kind.ByChaosMesh() {
			continue
		}
		id := OccurrenceOf(a)
		o := byID[id]
		if o == nil {
			i := slices.IndexFunc(faults, func(f v1alpha1.Fault) bool { return f.Name == a.Fault })
			o = &Occurrence{ID: id, Fault: faults[i].DeepCopy(), Time: a.Time, From: a.At, Peers: a.Peers}
			byID[id], all = o, append(all, o)
		}
		if a.Kind.Ends() {
			o.To = a.At
			continue
		}
		o.Pods = append(o.Pods, a.Pod)
	}
	return all, nil
}

// OccurrenceOf returns the ID of the occurrence that an action belongs to.
func OccurrenceOf(a timeline.Action) string { return fmt.Sprintf("%s/%d", a.Fault, a.Time) }

// Replaces reports whether the pods are deleted, and other pods of the same name take their places.
func (o *Occurrence) Replaces() bool { return chaosmesh.Replaces(o.Fault) }

// Restarts reports whether containers of the pods end, and the kubelet restarts them.
func (o *Occurrence) Restarts() bool { return chaosmesh.Restarts(o.Fault) }

// RestartsAgent reports whether the pods' agents restart, too.
func (o *Occurrence) RestartsAgent() bool { return chaosmesh.RestartsAgent(o.Fault) }

// ReplacesPods reports whether any of the faults replaces pods.
func ReplacesPods(faults []v1alpha1.Fault) bool {
	return slices.ContainsFunc(faults, func(f v1alpha1.Fault) bool { return chaosmesh.Replaces(&f) })
}

// MovesPods reports whether pods may get other addresses in the run than when the trial was
// rendered.
func MovesPods(faults []v1alpha1.Fault) bool { return ResetsMachines(faults) || ReplacesPods(faults) }
