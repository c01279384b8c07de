package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// origin records which fields of an applied spec come from the profile. So an error names the field
// that its author wrote.
type origin struct {
	profile *v1alpha1.Profile
	path    *field.Path // of the profile
	sweep   []*field.Path
}

func originOf(spec *v1alpha1.ExperimentSpec) origin {
	o := origin{profile: findProfile(spec)}
	for i := range spec.Sweep {
		o.sweep = append(o.sweep, field.NewPath("spec", "sweep").Index(i))
	}
	if o.profile == nil {
		return o
	}
	index := slices.IndexFunc(spec.Profiles, func(p v1alpha1.Profile) bool { return p.Name == spec.Profile })
	o.path = field.NewPath("spec", "profiles").Index(index)
	for k, axis := range o.profile.Sweep {
		path := o.path.Child("sweep").Index(k)
		if i := slices.IndexFunc(spec.Sweep, func(a v1alpha1.Axis) bool { return a.Axis == axis.Axis }); i >= 0 {
			o.sweep[i] = path
		} else {
			o.sweep = append(o.sweep, path)
		}
	}
	return o
}

func (o origin) part(replaced bool, name string) *field.Path {
	if replaced {
		return o.path.Child(name)
	}
	return field.NewPath("spec", name)
}

func (o origin) schedule() *field.Path {
	return o.part(o.profile != nil && o.profile.Schedule != nil, "schedule")
}

func (o origin) topology() *field.Path {
	return o.part(o.profile != nil && o.profile.Topology != nil, "topology")
}

func (o origin) placement() *field.Path {
	return o.part(o.profile != nil && o.profile.Placement != nil, "placement")
}

func (o origin) network() *field.Path {
	return o.part(o.profile != nil && o.profile.Network != nil, "network")
}

func (o origin) repetitions() *field.Path {
	return o.part(o.profile != nil && o.profile.Repetitions != nil, "repetitions")
}

func (o origin) tolerances() *field.Path {
	return o.part(o.profile != nil && o.profile.Tolerances != nil, "tolerances")
}

func (o origin) disturbances() *field.Path {
	return o.part(o.profile != nil && o.profile.Disturbances != nil, "disturbances")
}

// thinkTime returns where the time between transactions was set.
func (o origin) thinkTime() *field.Path {
	if o.profile != nil && o.profile.ThinkTime != nil {
		return o.path.Child("thinkTime")
	}
	return field.NewPath("spec", "clients", "thinkTime")
}

func (o origin) phases() *field.Path {
	if o.profile != nil && len(o.profile.Phases) > 0 {
		return o.path.Child("phases")
	}
	return field.NewPath("spec", "clients", "phases")
}

func (o origin) nodes() *field.Path {
	if o.profile != nil && o.profile.Nodes != nil {
		return o.path.Child("nodes")
	}
	return field.NewPath("spec", "clients", "nodes")
}

// parameter returns where the parameter of that name was set: in the experiment, or in its profile.
func (o origin) parameter(name string) *field.Path {
	replaced := false
	if o.profile != nil {
		_, replaced = o.profile.Parameters[name]
	}
	return o.part(replaced, "parameters").Key(name)
}
