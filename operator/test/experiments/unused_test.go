package experiments

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/reported"
)

// unused says why no file draws some numbers of a source, and no claim compares with them.
type unused struct {
	// File under experiments/reported, a pattern for its Curves, and Metrics; empty: all.
	File    string   `json:"file"`
	Curves  string   `json:"curves"`
	Metrics []string `json:"metrics,omitempty"`
	Why     string   `json:"why"`

	numbers int
}

func (u *unused) has(p place) bool {
	matches, err := path.Match(u.Curves, p.curve)
	return err == nil && matches && u.File == p.file && (len(u.Metrics) == 0 || slices.Contains(u.Metrics, p.metric))
}

// countUnused sets how many numbers each entry of the catalogue covers, and how many there are in
// all. Each unused number needs one entry, and each entry needs a number.
func (c *catalogue) countUnused() error {
	list, err := reported.Load(os.DirFS(filepath.Join(c.dir, "reported")))
	if err != nil {
		return err
	}
	used := c.used(list)
	for _, f := range list {
		for _, curve := range f.Curves {
			for _, column := range curve.Values {
				for i, n := range column.Numbers {
					p := place{f.Name, curve.Name, column.Metric, i}
					if n == nil {
						continue
					}
					c.numbers++
					if used[p] {
						continue
					}
					at := slices.IndexFunc(c.unused, func(u unused) bool { return u.has(p) })
					if at < 0 {
						return fmt.Errorf("nothing uses %s %s/%s/%s, and the catalogue does not say why under unused", f.Name, curve.Name, column.Metric, curve.X[i].String())
					}
					c.unused[at].numbers++
				}
			}
		}
	}
	for _, u := range c.unused {
		if u.numbers == 0 {
			return fmt.Errorf("the catalogue's unused has %s %s %v, and all its numbers are used", u.File, u.Curves, u.Metrics)
		}
	}
	return nil
}

// used are the numbers that a file draws or a claim compares with.
func (c *catalogue) used(list []reported.File) map[place]bool {
	used := map[place]bool{}
	var rows []numbersRow
	for _, f := range list {
		rows = append(rows, rowsOf(f)...)
	}
	for _, exp := range c.experiments {
		for _, s := range exp.Spec.Reported {
			for _, r := range rows {
				places, _ := r.has(s)
				for _, p := range places {
					used[p] = true
				}
			}
		}
		for _, claim := range exp.Spec.Claims {
			words := strings.Fields(claim.ReportedIn[strings.LastIndex(claim.ReportedIn, "; ")+1:])
			for i := 1; i < len(words); i += 2 { // FILE TERM, or FILE TERM / TERM
				markTerm(used, list, words[0], words[i])
			}
		}
	}
	return used
}

// markTerm marks CURVE/METRIC/X of a file; max and min use the whole curve.
func markTerm(used map[place]bool, list []reported.File, file, term string) {
	parts := strings.SplitN(term, "/", 3)
	for _, f := range list {
		for _, curve := range f.Curves {
			if f.Name != file || len(parts) != 3 || curve.Name != parts[0] {
				continue
			}
			for i, x := range curve.X {
				if x.String() == parts[2] || parts[2] == "max" || parts[2] == "min" {
					used[place{file, curve.Name, parts[1], i}] = true
				}
			}
		}
	}
}

const unusedHead = `
## Numbers that nothing uses

The files under [reported](reported) have %d numbers of the five sources. No file draws %d of them,
and no claim compares with these:

| numbers | of | why |
|---|---|---|
`

func (c *catalogue) writeUnused(b *strings.Builder) {
	sum := 0
	for _, u := range c.unused {
		sum += u.numbers
	}
	fmt.Fprintf(b, unusedHead, c.numbers, sum)
	for _, u := range c.unused {
		of := u.File + ", " + strings.ReplaceAll(u.Curves, "*", "\\*")
		if len(u.Metrics) > 0 {
			of += ": " + strings.Join(u.Metrics, ", ")
		}
		fmt.Fprintf(b, "| %d | %s | %s |\n", u.numbers, of, u.Why)
	}
}
