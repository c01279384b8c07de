package timeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Mark is an instant at which a script printed a line that matches a pattern.
type Mark struct {
	Name string `json:"name"`
	// Groups are the texts that the named groups of the mark's pattern matched.
	Groups map[string]string `json:"groups,omitempty"`
	// At is when the line was read, relative to t = 0.
	At time.Duration `json:"at"`
	// Line of the output, cut if it is long.
	Line string `json:"line,omitempty"`
}

// After is a mark that an action counts from.
type After struct {
	Mark string `json:"mark"`
	// Groups that the mark must have.
	Groups map[string]string `json:"groups,omitempty"`
	// Occurrence says which of several such marks, from 1.
	Occurrence int `json:"occurrence"`
}

// String names the mark: "row scheme=queue".
func (a After) String() string {
	text := markText(a.Mark, a.Groups)
	if a.Occurrence > 1 {
		text += fmt.Sprintf(", time %d", a.Occurrence)
	}
	return text
}

// String names the mark: "row scheme=queue".
func (m Mark) String() string { return markText(m.Name, m.Groups) }

func markText(name string, groups map[string]string) string {
	words := []string{name}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		words = append(words, g+"="+groups[g])
	}
	return strings.Join(words, " ")
}

// In finds the mark among the marks so far, which are in order of time.
func (a After) In(marks []Mark) (Mark, bool) {
	left := max(a.Occurrence, 1)
	for _, m := range marks {
		if m.Name != a.Mark || !m.Has(a.Groups) {
			continue
		}
		if left--; left == 0 {
			return m, true
		}
	}
	return Mark{}, false
}

// Has reports whether the mark has all the given groups.
func (m Mark) Has(groups map[string]string) bool {
	for name, value := range groups {
		if m.Groups[name] != value {
			return false
		}
	}
	return true
}

// Dated turns the instants of actions that count from marks into instants relative to t = 0. It
// returns the actions with an instant, in order of time. later are the actions whose marks have not
// come.
func Dated(actions []Action, marks []Mark) (dated, later []Action) {
	dated = make([]Action, 0, len(actions))
	for _, a := range actions {
		if a.After == nil {
			dated = append(dated, a)
			continue
		}
		m, come := a.After.In(marks)
		if !come {
			later = append(later, a)
			continue
		}
		a.MarkAt, a.At = m.At, m.At+a.At
		dated = append(dated, a)
	}
	slices.SortStableFunc(dated, func(a, b Action) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.ID, b.ID))
	})
	return dated, later
}

// Span is a part of a run, relative to t = 0. A span without a length is empty.
type Span struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// Length returns the length of the span.
func (s Span) Length() time.Duration { return s.To - s.From }
