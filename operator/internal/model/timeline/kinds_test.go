package timeline

import "testing"

// The end of an action is a kind, too, and the actor of the action carries it out.
func TestEndsAreKinds(t *testing.T) {
	begun := 0
	for k := range kinds {
		end, ok := k.End()
		if !ok {
			continue
		}
		begun++
		if _, known := kinds[end]; !known || !end.Ends() || end.By() != k.By() {
			t.Errorf("%s ends %s: known %v, an end %v, by %v and not %v", end, k, known, end.Ends(), end.By(), k.By())
		}
		if k.Ends() {
			t.Errorf("%s is ended by %s, and ends another one", k, end)
		}
	}
	if begun < 5 {
		t.Errorf("only %d kinds have an end", begun)
	}
}

func TestTraits(t *testing.T) {
	for k, want := range map[Kind]struct{ late, dueWhenBegun, silences, onLinks, filters bool }{
		Kill:    {silences: true, filters: true},
		Revive:  {dueWhenBegun: true},
		Pause:   {},
		Resume:  {dueWhenBegun: true},
		Cut:     {onLinks: true, filters: true},
		Heal:    {dueWhenBegun: true},
		Degrade: {onLinks: true},
		Restore: {dueWhenBegun: true},
		Reset:   {late: true, dueWhenBegun: true, silences: true},
		Inject:  {late: true, silences: true},
		Recover: {late: true, dueWhenBegun: true},
		Execute: {late: true, dueWhenBegun: true},
	} {
		got := want
		got.late, got.dueWhenBegun, got.silences, got.onLinks, got.filters = k.ConfirmedLate(), k.DueWhenBegun(), k.Silences(), k.OnLinks(), k.Filters()
		if got != want {
			t.Errorf("%s: %+v, want %+v", k, got, want)
		}
	}
}
