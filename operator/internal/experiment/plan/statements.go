package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// checkStatements refuses settings with which a verdict would stand under a sentence that was not
// judged. A profile may change what a claim judges, but keep its sentence. A profile may widen a
// bound without a reason. A reported value may lack the place where the source prints it. It checks
// all profiles, also those that are not in use.
func checkStatements(exp *v1alpha1.Experiment, checks Checks) (errs field.ErrorList) {
	spec := &exp.Spec
	for i, c := range spec.Claims {
		errs = append(errs, checkReportedIn(field.NewPath("spec", "claims").Index(i), spec, c)...)
	}
	for i := range spec.Profiles {
		path := field.NewPath("spec", "profiles").Index(i)
		errs = append(errs, checkProfileClaims(path, spec, &spec.Profiles[i])...)
		errs = append(errs, checkPointsRead(path, spec, &spec.Profiles[i], checks.Reads)...)
	}
	return errs
}

// checkReportedIn requires the place where the source prints a reported value.
func checkReportedIn(path *field.Path, spec *v1alpha1.ExperimentSpec, c v1alpha1.Claim) field.ErrorList {
	switch {
	case c.Reported == nil:
		return nil
	case spec.Source == nil:
		return field.ErrorList{field.Invalid(path.Child("reported"), c.Reported.String(),
			fmt.Sprintf("claim %q has a reported value, and the experiment has no source that prints it: name it under spec.source, or give the value as expected", c.Name))}
	case c.ReportedIn == "":
		return field.ErrorList{field.Required(path.Child("reportedIn"),
			fmt.Sprintf("say where the source prints %s: figure, table and row, such as \"Table 2, row fast\"; a value that it does not print is expected, not reported", c.Reported))}
	}
	return nil
}

// checkProfileClaims requires a sentence if a profile judges something else than the claim, and a
// reason for a wider bound.
func checkProfileClaims(path *field.Path, spec *v1alpha1.ExperimentSpec, p *v1alpha1.Profile) (errs field.ErrorList) {
	for k, change := range p.Claims {
		full := findClaim(spec, change.Name)
		if full == nil || change.Skip != "" {
			continue
		}
		at := path.Child("claims").Index(k)
		changed := changedFields(*full, change)
		switch {
		case len(changed) > 0 && change.Statement == "":
			errs = append(errs, field.Required(at.Child("statement"),
				fmt.Sprintf("profile %q changes %s of claim %q and keeps its sentence, which is then not what is judged: say in a sentence of its own what is judged here",
					p.Name, strings.Join(changed, " and "), change.Name)))
		case len(changed) > 0 && change.Statement == full.Statement:
			errs = append(errs, field.Invalid(at.Child("statement"), change.Statement,
				fmt.Sprintf("is the sentence of the full evaluation, and profile %q changes %s of claim %q: say what is judged here", p.Name, strings.Join(changed, " and "), change.Name)))
		}
		was, before := relativeBound(full.Reported, full.Expected, full.Within)
		applied := *full
		replaceClaim(&applied, change)
		is, after := relativeBound(applied.Reported, applied.Expected, applied.Within)
		if before && after && is > was*(1+1e-9) && change.WiderBecause == "" {
			errs = append(errs, field.Required(at.Child("widerBecause"),
				fmt.Sprintf("the bound of claim %q is wider in profile %q, %s of the value in place of %s: say why, or keep the tolerance %s",
					change.Name, p.Name, percentage(is), percentage(was), full.Within)))
		}
	}
	return errs
}

func findClaim(spec *v1alpha1.ExperimentSpec, name string) *v1alpha1.Claim {
	i := slices.IndexFunc(spec.Claims, func(c v1alpha1.Claim) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &spec.Claims[i]
}

// changedFields returns the judged fields of a claim that a profile changes.
func changedFields(full v1alpha1.Claim, change v1alpha1.ProfileClaim) (names []string) {
	another := func(was, is *v1alpha1.Value) bool {
		return is != nil && (was == nil || was.String() != is.String())
	}
	for _, f := range []struct {
		name    string
		changed bool
	}{
		{"expr", change.Expr != "" && change.Expr != full.Expr}, {"reported", another(full.Reported, change.Reported)},
		{"expected", another(full.Expected, change.Expected)}, {"within", change.Within != "" && change.Within != full.Within},
	} {
		if f.changed {
			names = append(names, f.name)
		}
	}
	return names
}

// relativeBound returns a tolerance as a share of the value. It returns false if there is none, if
// the value is 0, or if one of them cannot be read.
func relativeBound(reported, expected *v1alpha1.Value, within string) (float64, bool) {
	value := reported
	if value == nil {
		value = expected
	}
	if value == nil || within == "" {
		return 0, false
	}
	if percent, ok := strings.CutSuffix(within, "%"); ok {
		x, err := strconv.ParseFloat(percent, 64)
		return x / 100, err == nil
	}
	v, isTime, ok := readAmount(value.String())
	w, alsoTime, read := readAmount(within)
	if !ok || !read || isTime != alsoTime || v == 0 {
		return 0, false
	}
	return w / math.Abs(v), true
}

// readAmount reads a duration, in nanoseconds, or a number.
func readAmount(text string) (x float64, isTime, ok bool) {
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return x, false, true
	}
	d, err := time.ParseDuration(text)
	return float64(d), true, err == nil
}

func percentage(share float64) string {
	return strconv.FormatFloat(100*share, 'g', 4, 64) + "%"
}

// checkPointsRead requires a sentence for each claim that reads other points in a profile. Such a
// claim names a value that the profile's axis lacks or sets otherwise, or it reads the whole axis.
func checkPointsRead(path *field.Path, spec *v1alpha1.ExperimentSpec, p *v1alpha1.Profile, reads func(expr, axis string) ([]string, bool)) (errs field.ErrorList) {
	if reads == nil {
		return nil
	}
	for _, c := range spec.Claims {
		k := slices.IndexFunc(p.Claims, func(change v1alpha1.ProfileClaim) bool { return change.Name == c.Name })
		at, expr := path.Child("claims"), c.Expr
		if k >= 0 {
			change := p.Claims[k]
			at = at.Index(k).Child("statement")
			if change.Skip != "" || change.Statement != "" && change.Statement != c.Statement || len(changedFields(c, change)) > 0 {
				continue // it has its own sentence, or checkProfileClaims requires one
			}
		}
		for _, axis := range p.Sweep {
			i := slices.IndexFunc(spec.Sweep, func(a v1alpha1.Axis) bool { return a.Axis == axis.Axis })
			if i < 0 {
				continue // checkProfile refuses it
			}
			named, every := reads(expr, axis.Axis)
			if !readsOthers(spec.Sweep[i], axis, named, every) {
				continue
			}
			errs = append(errs, field.Required(at, fmt.Sprintf("profile %q changes the axis %s, along which claim %q reads its points: "+
				"give the claim a statement here that says what is judged, or skip it and say why", p.Name, axis.Axis, c.Name)))
			break
		}
	}
	return errs
}

// readsOthers reports whether a claim reads other points if applied replaces full. The claim reads
// the named values of the axis, or every value.
func readsOthers(full, applied v1alpha1.Axis, named []string, every bool) bool {
	was, is := axisSettings(full), axisSettings(applied)
	if every {
		return len(was) != len(is) || slices.ContainsFunc(sortedKeys(is), func(name string) bool { return was[name] != is[name] })
	}
	return slices.ContainsFunc(named, func(name string) bool { return was[name] != is[name] })
}

// axisSettings returns the values of an axis with their settings, as JSON. A search is one value.
func axisSettings(a v1alpha1.Axis) map[string]string {
	settings := map[string]string{}
	set := func(name string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("plan: an axis that came as JSON cannot be written as JSON: %v", err))
		}
		settings[name] = string(text)
	}
	for _, v := range a.Values {
		set(v.String(), v)
	}
	for _, p := range a.Points {
		set(p.Name, p)
	}
	if a.Search != nil {
		set("", a.Search)
	}
	return settings
}
