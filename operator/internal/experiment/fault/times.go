package fault

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
)

// Times are the times of a trial, against which the instants of faults are checked.
type Times struct {
	Windows timeline.Windows
	// Lateness is the tolerance: a trial counts if a fault begins at most that much later than
	// planned.
	Lateness time.Duration
	// Path returns where the fault of a name was written.
	Path func(fault string) *field.Path
}

// CheckTimes checks that each fault does one thing, at times at which the trial runs.
func CheckTimes(faults []v1alpha1.Fault, t Times) field.ErrorList {
	e := &checker{Point: Point{Times: t}}
	e.checkTimes(faults)
	return e.errs
}

func (e *checker) checkTimes(faults []v1alpha1.Fault) {
	for i := range faults {
		f := faults[i]
		path := e.Path(f.Name)
		set := kindsOf(&f)
		if len(set) != 1 {
			e.add(field.Invalid(path, f.Name, fmt.Sprintf(
				"does %d things: %v; set exactly one of %s", len(set), namesOf(&f), strings.Join(allNames(), ", "))))
			continue
		}
		if !set[0].dated() {
			if f.Mark != nil {
				e.checkMarkTimes(path, f, set[0], 0)
			}
			if f.At != "" || f.For != nil || f.Repeat != nil {
				e.add(field.Invalid(path.Child("at"), string(f.At), "clients behave that way during the whole trial: at, for and repeat must not be set"))
			}
			continue
		}
		at, err := f.At.Parse()
		if w := e.Windows; err != nil || f.At == "" || at < -w.WarmUp || at >= w.LastRequest() {
			e.add(field.Invalid(path.Child("at"), string(f.At), fmt.Sprintf(
				"must be a time at which clients send: from -%s (start of the warm-up) to before %s (end of the cool-down)", w.WarmUp, w.LastRequest())))
			continue
		}
		if !e.checkMarkTimes(path, f, set[0], at) {
			continue
		}
		if k, ok := set[0].(kill); ok && k.machine() && (f.For != nil || f.Repeat != nil) {
			e.add(field.Forbidden(path.Child("for"), "a machine that is reset comes back by itself, once, when it has started again; leave for and repeat out"))
			continue
		}
		if f.RunCommand != nil && f.For != nil {
			e.add(field.Forbidden(path.Child("for"), "a command ends by itself; leave for out, and see command.timeout"))
			continue
		}
		if length, ok := e.checkLength(path, f, at); ok {
			e.checkRepeat(path, f, at, length)
			e.checkFlap(path, f, length)
		}
	}
}

// checkLength returns how long one time of the fault lasts; 0: to the end of the trial.
func (e *checker) checkLength(path *field.Path, f v1alpha1.Fault, at time.Duration) (time.Duration, bool) {
	if f.For == nil {
		return 0, true
	}
	length, err := f.For.Parse()
	if err != nil || length <= 0 || at+length > e.Windows.End() {
		e.add(field.Invalid(path.Child("for"), string(*f.For), fmt.Sprintf(
			"must be more than 0 and at most %s, so that the fault is over before the trial is; leave it out for a fault that lasts to the end", e.Windows.End()-at)))
		return 0, false
	}
	return length, true
}

func (e *checker) checkRepeat(path *field.Path, f v1alpha1.Fault, at, length time.Duration) {
	if f.Repeat == nil {
		return
	}
	if length == 0 && f.RunCommand == nil {
		e.add(field.Required(path.Child("for"), "a fault that is repeated must end before it begins again: say how long it lasts"))
		return
	}
	every, err := f.Repeat.Every.Parse()
	if err != nil || every <= length {
		e.add(field.Invalid(path.Child("repeat", "every"), string(f.Repeat.Every), fmt.Sprintf("must be more than the fault lasts (for: %s)", length)))
		return
	}
	last := at + time.Duration(f.Repeat.Times-1)*every
	if w := e.Windows; last >= w.LastRequest() || last+length > w.End() {
		e.add(field.Invalid(path.Child("repeat", "times"), f.Repeat.Times, fmt.Sprintf(
			"the last time would begin at %s and end at %s, but clients send until %s and the trial ends at %s", last, last+length, w.LastRequest(), w.End())))
	}
}

// maxFlaps is the most cuts of a partition in one trial.
const maxFlaps = 1000

func (e *checker) checkFlap(path *field.Path, f v1alpha1.Fault, length time.Duration) {
	flap := flapOf(&f)
	if flap == nil {
		return
	}
	path = path.Child("partition", "flap")
	period, err := flap.Period.Parse()
	switch {
	case err != nil:
		e.add(field.Invalid(path.Child("period"), string(flap.Period), "must be a duration such as 500ms or 20s, from 20ms to 1h"))
		return
	case period < 20*time.Millisecond || period > time.Hour:
		e.add(field.Invalid(path.Child("period"), string(flap.Period), "must be from 20ms to 1h"))
		return
	}
	cut, written := period/2, path.Child("period")
	if c := flap.Cut; c != nil {
		var err error
		if cut, err = c.Parse(); err != nil || cut < 10*time.Millisecond || cut >= period {
			e.add(field.Invalid(path.Child("cut"), string(*c), fmt.Sprintf("must be from 10ms to less than the period (%s)", period)))
			return
		}
		written = path.Child("cut")
	}
	if length == 0 {
		length = e.Windows.LastRequest() - f.At.OrZero()
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
		e.add(field.Invalid(path.Child("period"), string(flap.Period), fmt.Sprintf("makes %d cuts; at most %d are possible", n, maxFlaps)))
	}
}

// checkCut refuses a cut that could vanish within the tolerance: a trial counts although a cut
// begins late, and ends early, by that much.
func (e *checker) checkCut(path *field.Path, cut time.Duration, why string) {
	tolerated := e.Lateness
	if cut < 2*tolerated {
		e.add(field.Invalid(path, cut.String(), fmt.Sprintf("%sa cut that begins %s late and ends %s early counts as confirmed (tolerances.faultLateness), "+
			"so that one of less than %s may not happen at all; make it longer, or tolerate less", why, tolerated, tolerated, 2*tolerated)))
	}
}
