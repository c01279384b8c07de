package timeline

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/shaping"
)

func TestWindowsOfASchedule(t *testing.T) {
	w := FromSchedule(v1alpha1.Schedule{WarmUp: "1s", Measure: "20s", CoolDown: "300ms", Drain: "4ms"})
	if w != (Windows{WarmUp: time.Second, Measure: 20 * time.Second, CoolDown: 300 * time.Millisecond, Drain: 4 * time.Millisecond}) {
		t.Errorf("the windows are %+v", w)
	}
	if w.LastRequest() != 20300*time.Millisecond || w.End() != 20304*time.Millisecond {
		t.Errorf("the last request is sent at %v, and the drain is over at %v", w.LastRequest(), w.End())
	}
}

func TestWhatIsInForceOnASideOfLinks(t *testing.T) {
	link := func(peer string, side shaping.Side) LinkChange { return LinkChange{Peer: peer, Side: side} }
	all := []Action{
		{ID: "kill", Kind: Kill, Pod: "a"}, {ID: "both", Kind: Degrade, Pod: "a", Links: []LinkChange{link("b", shaping.Egress), link("c", shaping.Ingress)}},
		{ID: "in", Kind: Degrade, Pod: "b", Links: []LinkChange{link("a", shaping.Ingress)}}, {ID: "both-end", Ends: "both", Kind: Restore, Pod: "a"}, {ID: "in-end", Ends: "in", Kind: Restore, Pod: "b"},
	}
	for side, want := range map[shaping.Side][]string{shaping.Egress: {"kill", "both:b", "both-end"}, shaping.Ingress: {"kill", "both:c", "in:a", "both-end", "in-end"}, "": {"kill"}} {
		var got []string
		for _, a := range InForce(slices.Clone(all), side) {
			id := a.ID
			for _, l := range a.Links {
				id += ":" + l.Peer
			}
			got = append(got, id)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("side %q (-want +got):\n%s", side, diff)
		}
	}
	if got := OfPod(all, "b"); len(got) != 2 || got[0].ID != "in" || got[1].ID != "in-end" {
		t.Errorf("of pod b: %+v", got)
	}
	if diff := cmp.Diff([]string{"x", "y", "b", "c"}, Action{Out: []string{"x"}, In: []string{"y"}, Links: all[1].Links}.LinkedTo()); diff != "" {
		t.Errorf("linked (-want +got):\n%s", diff)
	}
}

func TestActionsThatCountFromMarks(t *testing.T) {
	marks := []Mark{{Name: "row", Groups: map[string]string{"n": "1"}, At: 2 * time.Second}, {Name: "row", Groups: map[string]string{"n": "2"}, At: 5 * time.Second}, {Name: "end", At: 9 * time.Second}}
	for name, tc := range map[string]struct {
		after After
		at    time.Duration // 0: the mark has not come
		text  string
	}{
		"the first": {After{Mark: "row"}, 2 * time.Second, "row"}, "the second": {After{Mark: "row", Occurrence: 2}, 5 * time.Second, "row, time 2"}, "the third": {After{Mark: "row", Occurrence: 3}, 0, "row, time 3"},
		"one with groups": {After{Mark: "row", Groups: map[string]string{"n": "2"}, Occurrence: 1}, 5 * time.Second, "row n=2"}, "a second such": {After{Mark: "row", Groups: map[string]string{"n": "2"}, Occurrence: 2}, 0, "row n=2, time 2"},
		"other groups": {After{Mark: "row", Groups: map[string]string{"m": "2", "a": "b"}}, 0, "row a=b m=2"}, "another": {After{Mark: "end"}, 9 * time.Second, "end"},
	} {
		m, come := tc.after.In(marks)
		if come != (tc.at > 0) || m.At != tc.at || tc.after.String() != tc.text {
			t.Errorf("%s: %q is at %v, come: %t; want %q at %v", name, tc.after, m.At, come, tc.text, tc.at)
		}
	}
	if got := marks[1].String(); got != "row n=2" {
		t.Errorf("a mark is %q", got)
	}
	dated, later := Dated([]Action{
		{ID: "z", At: 4 * time.Second, Pod: "b"}, {ID: "m", At: time.Second, After: &After{Mark: "row"}}, {ID: "y", At: 4 * time.Second, Pod: "b"}, {ID: "n", After: &After{Mark: "gone"}}, {ID: "x", At: 4 * time.Second, Pod: "a"},
	}, marks)
	var got []string
	for _, a := range dated {
		got = append(got, a.ID+" "+a.At.String()+" "+a.MarkAt.String())
	}
	if diff := cmp.Diff([]string{"m 3s 2s", "x 4s 0s", "y 4s 0s", "z 4s 0s"}, got); diff != "" || len(later) != 1 || later[0].ID != "n" {
		t.Errorf("later %+v (-want +got):\n%s", later, diff)
	}
	if l := (Span{From: 2, To: 5}).Length(); l != 3 {
		t.Errorf("a span from 2 to 5 is %d long", l)
	}
}
