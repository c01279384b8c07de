package fault

import "slices"

// links is a set of directed links, kept in order.
type links struct {
	order []string // pods with links, in the order of their first link
	out   map[string][]string
	in    map[string][]string
}

func newLinks() *links { return &links{out: map[string][]string{}, in: map[string][]string{}} }

func (l *links) add(from, to []string) {
	for _, a := range from {
		for _, b := range to {
			if a == b || slices.Contains(l.out[a], b) {
				continue
			}
			for _, pod := range []string{a, b} {
				if l.out[pod] == nil && l.in[pod] == nil {
					l.order = append(l.order, pod)
				}
			}
			l.out[a] = append(l.out[a], b)
			l.in[b] = append(l.in[b], a)
		}
	}
}
