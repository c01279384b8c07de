package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Use says which use of the pods' resources a measurement is.
type Use struct {
	Resource string `json:"resource"`
	// Part of the trial; empty: all pods.
	Part string `json:"part,omitempty"`
	// Pods says how the pods become one number: Sum, Mean, Largest or Variation; empty: Sum.
	Pods string `json:"pods,omitempty"`
	// Over says how the seconds of the window become one: Mean, P50, P95, P99, Maximum or Total.
	// VolumeSize has End: the size when the window is over.
	Over string `json:"over"`
	// Volume of VolumeSize, by its name in the System; empty: all of a pod together.
	Volume string `json:"volume,omitempty"`
}

// The ways of Use.Pods and Use.Over.
const (
	PodsSum       = "Sum"
	PodsMean      = "Mean"
	PodsLargest   = "Largest"
	PodsVariation = "Variation"
	overTotal     = "Total"
	overEnd       = "End"
)

// UseVolumeSize is how much space files take on the pods' volumes, UseEnergy what the processors of
// their nodes use, each of which counts once.
const (
	UseVolumeSize = "VolumeSize"
	UseEnergy     = "Energy"
)

// String says it in words, for tables.
func (u Use) String() string {
	part, pods := u.Part+"s", strings.ToLower(u.Pods)
	if u.Part == "" {
		part = "pods"
	}
	if pods == "" {
		pods = strings.ToLower(PodsSum)
	}
	resource := u.Resource
	if u.Volume != "" {
		resource += " " + u.Volume
	}
	return fmt.Sprintf("%s, %s of all %s", resource, pods, part)
}

// byteUnits are those of amounts of bytes, in bytes.
var byteUnits = map[string]float64{
	"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}

// Unit converts a measurement's unit. The result size is one of it in the resource's own unit:
// bytes, bytes per second, cores, processor-seconds. The result own is the name of that unit. Unit
// refuses units of other resources.
func (u Use) Unit(unit string) (own string, size float64, err error) {
	usables := append(slices.Clip(usables), usable{name: UseVolumeSize, level: true})
	i := slices.IndexFunc(usables, func(r usable) bool { return r.name == u.Resource })
	switch volumes := u.Resource == UseVolumeSize; {
	case volumes != (u.Over == overEnd):
		return "", 0, fmt.Errorf("%s is read at the End of the window, and it is the only resource with over: End", UseVolumeSize)
	case u.Resource == UseEnergy:
		return u.energyUnit(unit)
	case u.Volume != "" && !volumes:
		return "", 0, fmt.Errorf("a volume goes with %s", UseVolumeSize)
	}
	if i < 0 {
		return "", 0, fmt.Errorf("there is no resource %s", u.Resource)
	}
	of, suffix := usables[i], ""
	switch {
	case of.level && u.Over == overTotal:
		return "", 0, fmt.Errorf("%s is an amount at an instant, and has no total", u.Resource)
	case u.Pods == PodsVariation && unit != "":
		return "", 0, fmt.Errorf("a variation over pods has no unit")
	case u.Pods == PodsVariation:
		return "", 1, nil
	case u.Resource == UseCPU && u.Over == overTotal:
		return "s", 1, only("s", unit)
	case u.Resource == UseCPU:
		return "cores", 1, only("cores", unit)
	case !of.level && u.Over != overTotal:
		suffix = "/s"
	}
	if unit == "" {
		return "B" + suffix, 1, nil
	}
	size, has := byteUnits[strings.TrimSuffix(unit, suffix)]
	if !has || !strings.HasSuffix(unit, suffix) {
		return "", 0, fmt.Errorf("the unit must be B, kB, MB, GB, KiB, MiB or GiB, followed by %q", suffix)
	}
	return "B" + suffix, size, nil
}

// energyUnit is Unit of energy: joules in all, or watts in the mean.
func (u Use) energyUnit(unit string) (own string, size float64, err error) {
	if u.Pods != "" && u.Pods != PodsSum {
		return "", 0, fmt.Errorf("%s is of whole nodes, and is added up over those of the pods", UseEnergy)
	}
	switch u.Over {
	case overTotal:
		return "J", 1, only("J", unit)
	case "Mean":
		return "W", 1, only("W", unit)
	}
	return "", 0, fmt.Errorf("%s has a Total, in J, and a Mean, in W", UseEnergy)
}

// energy is the energy of the pods' nodes in the window.
func (u Use) energy(t *Trial) (joules float64, err error) {
	seen := map[string]bool{}
	for _, p := range t.Pods {
		if u.Part != "" && p.Part != u.Part {
			continue
		}
		if p.Resources == nil {
			return 0, fmt.Errorf("%s does not say what its node used", p.Name)
		}
		n := p.Resources.Node
		if n.EnergyJoules == nil {
			return 0, fmt.Errorf("the node of %s: %s", p.Name, cmp.Or(n.EnergyUnmeasured, "nothing was read"))
		}
		if key := cmp.Or(n.Machine, p.Node); !seen[key] {
			seen[key] = true
			joules += *n.EnergyJoules
		}
	}
	if len(seen) == 0 {
		return 0, fmt.Errorf("the trial has no such pod")
	}
	return joules, nil
}

// only refuses every unit but own.
func only(own, unit string) error {
	if unit != "" && unit != own {
		return fmt.Errorf("the unit must be %s", own)
	}
	return nil
}

// Used reads a measurement from the use of a trial's pods, in the measurement's unit.
func Used(name, unit string, u Use, t *Trial) Measurement {
	m := Measurement{Name: name}
	_, size, err := u.Unit(unit)
	if err != nil {
		m.Reason = err.Error()
		return m
	}
	value, err := u.of(t)
	if err != nil {
		m.Reason = err.Error()
		return m
	}
	value /= size
	m.Value = &value
	return m
}

// of is the number in the resource's own unit.
func (u Use) of(t *Trial) (float64, error) {
	part := u.Part
	if part == "" {
		part = "pod"
	}
	if u.Resource == UseEnergy {
		joules, err := u.energy(t)
		if u.Over == "Mean" {
			joules /= float64(t.MeasureNanos) / 1e9
		}
		return joules, err
	}
	sum := u.Pods == "" || u.Pods == PodsSum
	if sum && u.Resource != UseVolumeSize {
		i := slices.IndexFunc(t.Use, func(p PartUse) bool { return p.Part == u.Part })
		if i < 0 {
			return 0, fmt.Errorf("of some %s it is not known over time what it used", part)
		}
		value, has := u.over(t.Use[i].OverTime, float64(t.MeasureNanos)/1e9)
		if !has {
			return 0, fmt.Errorf("%s of some %s is not known%s", u.Resource, part, u.unmeasured(t))
		}
		return value, nil
	}
	var values []float64
	for _, p := range t.Pods {
		if u.Part != "" && p.Part != u.Part {
			continue
		}
		value, has, err := u.ofPod(p, float64(t.MeasureNanos)/1e9)
		switch {
		case err != nil:
			return 0, err
		case has:
			values = append(values, value)
		case u.Resource != UseVolumeSize: // pods without the volume have no VolumeSize
			return 0, fmt.Errorf("%s of %s is not known%s", u.Resource, p.Name, u.unmeasured(t))
		}
	}
	if len(values) == 0 && u.Resource == UseVolumeSize {
		return 0, fmt.Errorf("no %s has such a volume on a disk, or it was not looked at", part)
	}
	if len(values) == 0 {
		return 0, fmt.Errorf("the trial has no %s", part)
	}
	if cov, varies := variation(values); u.Pods == PodsVariation {
		if !varies {
			return 0, fmt.Errorf("no %s used any %s, so that it has no variation", part, u.Resource)
		}
		return cov, nil
	}
	return u.together(values), nil
}

// together makes one number of the numbers of one pod or more.
func (u Use) together(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	switch u.Pods {
	case PodsLargest:
		return slices.Max(values)
	case PodsMean:
		return total / float64(len(values))
	}
	return total
}

// ofPod is the number of one pod; false: it has none.
func (u Use) ofPod(p Pod, seconds float64) (value float64, has bool, err error) {
	if p.Resources == nil {
		return 0, false, nil
	}
	if u.Resource != UseVolumeSize {
		value, has = u.over(p.Resources.OverTime, seconds)
		return value, has, nil
	}
	for _, v := range p.Resources.Volumes {
		switch {
		case u.Volume != "" && v.Name != u.Volume:
		case v.Unmeasured != "":
			return 0, false, fmt.Errorf("volume %s of %s: %s", v.Name, p.Name, v.Unmeasured)
		default:
			value, has = value+float64(v.Bytes), true
		}
	}
	return value, has, nil
}

// unmeasured is the first reason that some pod gives, as the end of a sentence.
func (u Use) unmeasured(t *Trial) string {
	ofDisks := strings.HasPrefix(u.Resource, UseDisk)
	for _, p := range t.Pods {
		if p.Resources == nil || u.Part != "" && p.Part != u.Part {
			continue
		}
		for _, why := range p.Resources.Unmeasured {
			if ofDisks == strings.Contains(why, disksUnmeasured) {
				return fmt.Sprintf(": %s, %s", p.Name, why)
			}
		}
	}
	return ""
}

// over makes one number of the use over time. A total is the mean times the window.
func (u Use) over(all []ResourceOverTime, seconds float64) (float64, bool) {
	i := slices.IndexFunc(all, func(o ResourceOverTime) bool { return o.Resource == u.Resource })
	if i < 0 {
		return 0, false
	}
	o := all[i]
	value, has := map[string]float64{"Mean": o.Mean, "P50": o.P50, "P95": o.P95, "P99": o.P99, "Maximum": o.Max, overTotal: o.Mean * seconds}[u.Over]
	return value, has
}
