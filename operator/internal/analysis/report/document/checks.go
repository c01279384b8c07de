package document

import (
	"cmp"
	"slices"
	"strconv"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// ChecksLegend says how to read the table.
const ChecksLegend = "Safety: what the System's own checks say when the clients are over, of all trials, also of excluded ones. " +
	"A violation is a result: no trial is repeated for it."

// checksTable has a row for each check at each point, with how often it gave each verdict.
func checksTable(e results.Experiment) Table {
	t := Table{Columns: []Column{{"check", false}, {"point", false}, {"trials", true}, {"holds", true}, {"violated", true}, {"unknown", true}}}
	type key struct {
		check string
		point int32
	}
	counts, points, order := map[key]map[string]int{}, map[int32]string{}, []key{}
	for _, l := range e.Trials {
		for _, c := range l.Checks {
			k := key{c.Name, l.PointIndex}
			if counts[k] == nil {
				counts[k] = map[string]int{}
				order = append(order, k)
			}
			counts[k][c.Verdict]++
			points[l.PointIndex] = cmp.Or(model.At(e.Axes, l.Coordinates), "the only one")
		}
	}
	slices.SortFunc(order, func(a, b key) int { return cmp.Or(cmp.Compare(a.check, b.check), cmp.Compare(a.point, b.point)) })
	for _, k := range order {
		n := counts[k]
		t.Rows = append(t.Rows, []string{
			k.check, points[k.point], strconv.Itoa(n["Holds"] + n["Violated"] + n["Unknown"]), strconv.Itoa(n["Holds"]), strconv.Itoa(n["Violated"]), strconv.Itoa(n["Unknown"]),
		})
	}
	return t
}

// checkedTable lists the trials in which a check did not hold.
func checkedTable(e results.Experiment) Table {
	t := Table{Columns: []Column{{"trial", false}, {"point", false}, {"outcome", false}, {"check", false}, {"safety", false}, {"message", false}}}
	for _, l := range e.Trials {
		for _, c := range l.Checks {
			if c.Verdict != "Holds" {
				t.Rows = append(t.Rows, []string{l.Name, model.At(e.Axes, l.Coordinates), l.Outcome, c.Name, c.Verdict, c.Message})
			}
		}
	}
	return t
}

// violations says in a sentence how many trials broke a promise, if any.
func violations(e results.Experiment) (sentences []string) {
	violated := 0
	for _, l := range e.Trials {
		for _, c := range l.Checks {
			if c.Verdict == "Violated" {
				violated++
				break
			}
		}
	}
	if violated == 0 {
		return nil
	}
	return []string{"Safety: Violated in " + model.Count(violated, "trial") + " of " + strconv.Itoa(len(e.Trials)) + "."}
}
