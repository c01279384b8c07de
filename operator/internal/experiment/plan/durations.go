package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
)

// bounds of a duration, both inclusive.
type bounds struct{ least, most time.Duration }

func (b bounds) String() string {
	return fmt.Sprintf("from %s to %s", shortDuration(b.least), shortDuration(b.most))
}

// shortDuration writes 1h instead of 1h0m0s.
func shortDuration(d time.Duration) string {
	switch {
	case d != 0 && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d != 0 && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

// checkDuration parses the duration at the path and checks its bounds.
func checkDuration(path *field.Path, d v1alpha1.Duration, b bounds) (time.Duration, field.ErrorList) {
	v, err := d.Parse()
	if err != nil {
		return 0, field.ErrorList{field.Invalid(path, string(d), "must be a duration such as 500ms or 20s, "+b.String())}
	}
	if v < b.least || v > b.most {
		return v, field.ErrorList{field.Invalid(path, string(d), "must be "+b.String())}
	}
	return v, nil
}

func checkSchedule(path *field.Path, s v1alpha1.Schedule) (timeline.Windows, field.ErrorList) {
	var w timeline.Windows
	var errs field.ErrorList
	for _, part := range []struct {
		name   string
		value  v1alpha1.Duration
		bounds bounds
		into   *time.Duration
	}{
		{"warmUp", s.WarmUp, bounds{0, time.Hour}, &w.WarmUp},
		{"measure", s.Measure, bounds{time.Second, 24 * time.Hour}, &w.Measure},
		{"coolDown", s.CoolDown, bounds{0, time.Hour}, &w.CoolDown},
		{"drain", s.Drain, bounds{0, time.Hour}, &w.Drain},
	} {
		var e field.ErrorList
		*part.into, e = checkDuration(path.Child(part.name), part.value, part.bounds)
		errs = append(errs, e...)
	}
	return w, errs
}
