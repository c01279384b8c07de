package plan

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/chaosmesh"
)

func faultPath(i int) *field.Path { return field.NewPath("spec", "faults").Index(i) }

// faultPath is where the fault of that index was written: a profile may have replaced it.
func (e *expansion) faultPath(i int) *field.Path {
	if i < 0 {
		return field.NewPath("spec", "faults")
	}
	if p := e.origin.profile; p != nil {
		for k, f := range p.Faults {
			if f.Name == e.spec.Faults[i].Name {
				return e.origin.path.Child("faults").Index(k)
			}
		}
	}
	return faultPath(i)
}

// kinds lists what a fault does.
func kinds(f v1alpha1.Fault) []string {
	var set []string
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"nodeKill", f.NodeKill != nil}, {"pause", f.Pause != nil}, {"partition", f.Partition != nil}, {"degrade", f.Degrade != nil},
		{"chaosMesh", f.ChaosMesh != nil}, {"clientBehavior", f.ClientBehavior != nil},
	} {
		if k.set {
			set = append(set, k.name)
		}
	}
	return set
}

// checkFaultTimes checks that each fault does one thing, at times at which the trial runs.
func (e *expansion) checkFaultTimes() {
	for i, f := range e.spec.Faults {
		path := e.faultPath(i)
		if set := kinds(f); len(set) != 1 {
			e.add(field.Invalid(path, f.Name, fmt.Sprintf(
				"does %d things: %v; set exactly one of nodeKill, pause, partition, degrade, chaosMesh, clientBehavior", len(set), set)))
			continue
		}
		if f.ClientBehavior != nil {
			if f.At != "" || f.For != nil || f.Repeat != nil {
				e.add(field.Invalid(path.Child("at"), string(f.At), "clients behave that way during the whole trial: at, for and repeat must not be set"))
			}
			continue
		}
		at, err := f.At.Parse()
		if w := e.windows; err != nil || f.At == "" || at < -w.WarmUp || at >= w.LastRequest() {
			e.add(field.Invalid(path.Child("at"), string(f.At), fmt.Sprintf(
				"must be a time at which clients send: from -%s (start of the warm-up) to before %s (end of the cool-down)", w.WarmUp, w.LastRequest())))
			continue
		}
		if f.NodeKill != nil && f.NodeKill.Mode == v1alpha1.KillMachine && (f.For != nil || f.Repeat != nil) {
			e.add(field.Forbidden(path.Child("for"), "a machine that is reset comes back by itself, once, when it has started again; leave for and repeat out"))
			continue
		}
		if length, ok := e.checkLength(path, f, at); ok {
			e.checkRepeat(path, f, at, length)
			e.checkFlap(path, f, length)
		}
	}
}

// checkLength returns how long the fault lasts, once; 0: to the end.
func (e *expansion) checkLength(path *field.Path, f v1alpha1.Fault, at time.Duration) (time.Duration, bool) {
	if f.For == nil {
		return 0, true
	}
	length, err := f.For.Parse()
	if err != nil || length <= 0 || at+length > e.windows.End() {
		e.add(field.Invalid(path.Child("for"), string(*f.For), fmt.Sprintf(
			"must be more than 0 and at most %s, so that the fault is over before the trial is; leave it out for a fault that lasts to the end", e.windows.End()-at)))
		return 0, false
	}
	return length, true
}

func (e *expansion) checkRepeat(path *field.Path, f v1alpha1.Fault, at, length time.Duration) {
	if f.Repeat == nil {
		return
	}
	if length == 0 {
		e.add(field.Required(path.Child("for"), "a fault that is repeated must end before it begins again: say how long it lasts"))
		return
	}
	every, err := f.Repeat.Every.Parse()
	if err != nil || every <= length {
		e.add(field.Invalid(path.Child("repeat", "every"), string(f.Repeat.Every), fmt.Sprintf("must be more than the fault lasts (for: %s)", length)))
		return
	}
	last := at + time.Duration(f.Repeat.Times-1)*every
	if w := e.windows; last >= w.LastRequest() || last+length > w.End() {
		e.add(field.Invalid(path.Child("repeat", "times"), f.Repeat.Times, fmt.Sprintf(
			"the last time would begin at %s and end at %s, but clients send until %s and the trial ends at %s", last, last+length, w.LastRequest(), w.End())))
	}
}

// maxFlaps bounds how often a partition comes and goes in one trial.
const maxFlaps = 1000

func (e *expansion) checkFlap(path *field.Path, f v1alpha1.Fault, length time.Duration) {
	if f.Partition == nil || f.Partition.Flap == nil {
		return
	}
	path = path.Child("partition", "flap")
	period, errs := checkDuration(path.Child("period"), f.Partition.Flap.Period, bounds{20 * time.Millisecond, time.Hour})
	e.add(errs...)
	if len(errs) > 0 {
		return
	}
	cut, written := period/2, path.Child("period")
	if c := f.Partition.Flap.Cut; c != nil {
		var err error
		if cut, err = c.Parse(); err != nil || cut < 10*time.Millisecond || cut >= period {
			e.add(field.Invalid(path.Child("cut"), string(*c), fmt.Sprintf("must be from 10ms to less than the period (%s)", period)))
			return
		}
		written = path.Child("cut")
	}
	if length == 0 {
		length = e.windows.LastRequest() - f.At.OrZero()
	}
	e.checkCut(written, min(cut, length), "")
	if last := length % period; last > 0 && last < cut {
		e.checkCut(path.Child("period"), last, fmt.Sprintf("the fault lasts %s, so that its end shortens the last cut; ", length))
	}
	times := int64(1)
	if f.Repeat != nil {
		times = int64(f.Repeat.Times)
	}
	if n := times * int64(math.Ceil(float64(length)/float64(period))); n > maxFlaps {
		e.add(field.Invalid(path.Child("period"), string(f.Partition.Flap.Period), fmt.Sprintf("makes %d cuts; at most %d are possible", n, maxFlaps)))
	}
}

// checkCut refuses a cut that could vanish within what is tolerated: a trial counts though the beginning of a cut is late, and its end early, by that much.
func (e *expansion) checkCut(path *field.Path, cut time.Duration, why string) {
	tolerated := e.spec.Tolerances.FaultLateness.OrZero()
	if cut < 2*tolerated {
		e.add(field.Invalid(path, cut.String(), fmt.Sprintf("%sa cut that begins %s late and ends %s early counts as confirmed (tolerances.faultLateness), "+
			"so that one of less than %s may not happen at all; make it longer, or tolerate less", why, tolerated, tolerated, 2*tolerated)))
	}
}

// span is when a fault may be in force, repetitions included, from beginning to end.
func span(f v1alpha1.Fault) (from, to time.Duration) {
	from = f.At.OrZero()
	if chaosmesh.OneShot(&f) {
		return from, from + 1
	}
	if f.For == nil {
		return from, math.MaxInt64
	}
	to = from + f.For.OrZero()
	if f.Repeat != nil {
		to += time.Duration(f.Repeat.Times-1) * f.Repeat.Every.OrZero()
	}
	return from, to
}

// overlap reports whether two faults may be in force at the same instant.
func overlap(a, b v1alpha1.Fault) bool {
	fromA, toA := span(a)
	fromB, toB := span(b)
	return fromA < toB && fromB < toA
}
