package timeline

import (
	"testing"
	"time"
)

func TestActionsAreDatedByMarks(t *testing.T) {
	row := func(scheme string, at time.Duration) Mark {
		return Mark{Name: "row", Groups: map[string]string{"scheme": scheme}, At: at}
	}
	after := func(scheme string, n int) *After {
		a := &After{Mark: "row", Occurrence: n}
		if scheme != "" {
			a.Groups = map[string]string{"scheme": scheme}
		}
		return a
	}
	marks := []Mark{{Name: "ready", At: 1}, row("lock", 10), row("queue", 20), row("lock", 30)}
	for name, tc := range map[string]struct {
		after *After
		want  time.Duration // -1: not yet
	}{
		"from the start of the run":     {nil, 3},
		"the first of a name":           {after("", 1), 13},
		"the third of a name":           {after("", 3), 33},
		"the first with a group":        {after("queue", 1), 23},
		"the second with a group":       {after("lock", 2), 33},
		"a second that does not come":   {after("queue", 2), -1},
		"a group that does not come":    {after("none", 1), -1},
		"a group that no pattern has":   {&After{Mark: "ready", Groups: map[string]string{"scheme": "lock"}, Occurrence: 1}, -1},
		"another name":                  {&After{Mark: "ready", Occurrence: 1}, 4},
		"an occurrence that is not set": {&After{Mark: "ready"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			dated, later := Dated([]Action{{ID: "x", At: 3, After: tc.after}}, marks)
			switch {
			case tc.want < 0 && (len(dated) != 0 || len(later) != 1 || later[0].At != 3):
				t.Errorf("dated %+v, later %+v, want it later and as it was", dated, later)
			case tc.want >= 0 && (len(later) != 0 || len(dated) != 1 || dated[0].At != tc.want):
				t.Errorf("dated %+v, later %+v, want it at %d", dated, later, tc.want)
			case tc.want >= 0 && tc.after != nil && dated[0].MarkAt != tc.want-3:
				t.Errorf("the mark was at %d, want %d", dated[0].MarkAt, tc.want-3)
			}
		})
	}
	dated, _ := Dated([]Action{{ID: "late", At: 25}, {ID: "marked", At: 3, After: after("lock", 1)}}, marks)
	if dated[0].ID != "marked" {
		t.Errorf("the order is %+v, want that of time", dated)
	}
}
