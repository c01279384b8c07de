package plan

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/suggest"
)

// leastShapePoints is how many points of a reported series must be measured to compare its shape,
// as in package claims.
const leastShapePoints = 3

// checkShapes finds claims that compare a reported series with a measured curve that cannot exist,
// and says why. The series may be unknown, an axis may lack a value, or too few points may be
// measured.
func checkShapes(p *Plan, c v1alpha1.Claim, checks Checks) (why []string) {
	if checks.Shapes == nil {
		return nil
	}
	checks.Shapes(c.Expr, func(series string, at map[string]string) {
		i := slices.IndexFunc(p.Spec.Reported, func(s v1alpha1.ReportedSeries) bool { return s.Name == series })
		if i < 0 {
			var names []string
			for _, s := range p.Spec.Reported {
				names = append(names, s.Name)
			}
			if len(names) == 0 {
				why = append(why, fmt.Sprintf("there is no reported series %s; the experiment has none", series))
			} else {
				why = append(why, suggest.Unknown("there is no reported series", series, names))
			}
			return
		}
		if text := missesCurve(p, p.Spec.Reported[i], at); text != "" {
			why = append(why, text)
		}
	})
	return why
}

// missesCurve says why the points of a series are not one curve. Empty: they are.
func missesCurve(p *Plan, s v1alpha1.ReportedSeries, at map[string]string) string {
	for _, axis := range p.Axes {
		_, bySeries := s.At[axis.Name]
		_, byCall := at[axis.Name]
		switch {
		case axis.Name == s.Axis:
			if n := valuesOn(s, axis); n < leastShapePoints {
				return fmt.Sprintf("%d values of the series %s lie at a value of axis %s, and a shape needs %d", n, s.Name, axis.Name, leastShapePoints)
			}
		case !bySeries && !byCall && len(axis.Values) > 1:
			return fmt.Sprintf("the series %s says nothing of axis %s: give it a value, as in %s='%s'", s.Name, axis.Name, axis.Name, axis.Values[0])
		}
	}
	return ""
}

// valuesOn counts the values of a series that lie at a value of its axis.
func valuesOn(s v1alpha1.ReportedSeries, axis results.Axis) (n int) {
	for _, v := range s.Values {
		if slices.ContainsFunc(axis.Values, func(x string) bool { return results.SameValue(x, v.X.String()) }) {
			n++
		}
	}
	return n
}
