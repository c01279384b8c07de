package recurrence

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// instant reads a day and a time in UTC.
func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func schedule(t *testing.T, r v1alpha1.Recurrence) *Schedule {
	t.Helper()
	s, errs := New(field.NewPath("spec", "recurrence"), &r)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return s
}

func TestWrongRecurrences(t *testing.T) {
	for name, tc := range map[string]struct {
		r           v1alpha1.Recurrence
		field, says string
	}{
		"no cron":               {v1alpha1.Recurrence{Cron: "at night"}, "cron", "minute, hour, day of the month, month, day of the week"},
		"six fields":            {v1alpha1.Recurrence{Cron: "0 0 3 * * *"}, "cron", "expected exactly 5 fields"},
		"an hour of 25":         {v1alpha1.Recurrence{Cron: "0 25 * * *"}, "cron", "above maximum"},
		"each minute":           {v1alpha1.Recurrence{Cron: "* * * * *"}, "cron", "names 60 minutes of an hour; name one"},
		"twice an hour":         {v1alpha1.Recurrence{Cron: "0,30 * * * *"}, "cron", "names 2 minutes"},
		"an interval":           {v1alpha1.Recurrence{Cron: "@every 1h"}, "cron", "@every has no fixed due times"},
		"a zone in cron":        {v1alpha1.Recurrence{Cron: "TZ=Europe/Berlin 0 3 * * *"}, "cron", "name the zone in timeZone"},
		"no such day":           {v1alpha1.Recurrence{Cron: "0 3 30 2 *"}, "cron", "no day is like that"},
		"no such zone":          {v1alpha1.Recurrence{Cron: "@daily", TimeZone: "Europe/Atlantis"}, "timeZone", "IANA"},
		"the zone of a machine": {v1alpha1.Recurrence{Cron: "@daily", TimeZone: "Local"}, "timeZone", "IANA"},
		"within seconds":        {v1alpha1.Recurrence{Cron: "@daily", StartWithin: "10s"}, "startWithin", "from 1m to 24h"},
		"within two days":       {v1alpha1.Recurrence{Cron: "@daily", StartWithin: "48h"}, "startWithin", "from 1m to 24h"},
	} {
		_, errs := New(field.NewPath("spec", "recurrence"), &tc.r)
		if len(errs) != 1 || errs[0].Field != "spec.recurrence."+tc.field || !strings.Contains(errs[0].Error(), tc.says) {
			t.Errorf("%s: %v, want one of %s that says %q", name, errs, tc.field, tc.says)
		}
	}
}

// Summer time begins in Berlin on 2026-03-29 at 01:00 UTC and ends on 2026-10-25 at 01:00 UTC.
func TestDueTimesInAZone(t *testing.T) {
	for name, tc := range map[string]struct {
		cron, zone, since string
		want              []string
	}{
		"UTC":                     {"0 3 * * *", "", "2026-03-28 12:00", []string{"2026-03-29 03:00", "2026-03-30 03:00"}},
		"a local hour moves":      {"0 4 * * *", "Europe/Berlin", "2026-03-28 00:00", []string{"2026-03-28 03:00", "2026-03-29 02:00", "2026-03-30 02:00"}},
		"an hour that is skipped": {"30 2 * * *", "Europe/Berlin", "2026-03-28 00:00", []string{"2026-03-28 01:30", "2026-03-30 00:30"}},
		"an hour that is twice":   {"30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", []string{"2026-10-25 00:30", "2026-10-25 01:30", "2026-10-26 01:30"}},
		"a short form":            {"@weekly", "", "2026-11-26 12:00", []string{"2026-11-29 00:00", "2026-12-06 00:00"}},
		"days of both kinds":      {"0 3 1 * 1", "", "2026-11-26 12:00", []string{"2026-11-30 03:00", "2026-12-01 03:00", "2026-12-07 03:00"}},
		"a leap day":              {"0 3 29 2 *", "", "2026-11-26 12:00", []string{"2028-02-29 03:00"}},
	} {
		s := schedule(t, v1alpha1.Recurrence{Cron: tc.cron, TimeZone: tc.zone})
		var got []string
		at := instant(t, tc.since)
		for range tc.want {
			at = s.Next(State{Since: at, Now: at}).Next
			got = append(got, at.UTC().Format("2006-01-02 15:04"))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDecisions(t *testing.T) {
	going := []Run{{Name: "nightly-2611250300", Going: true}}
	for name, tc := range map[string]struct {
		at   State
		now  string
		want Step
	}{
		"not due yet": {State{}, "2026-11-27 02:59", Step{}},
		"due":         {State{}, "2026-11-27 03:00", Step{Due: instant(t, "2026-11-27 03:00"), Create: "nightly-2611270300"}},
		"a little late": {State{}, "2026-11-27 03:59",
			Step{Due: instant(t, "2026-11-27 03:00"), Create: "nightly-2611270300"}},
		"too late": {State{}, "2026-11-27 04:01",
			Step{Due: instant(t, "2026-11-27 03:00"), Reason: "Missed", Message: "No run could be made within 1h of it."}},
		"the last of three": {State{}, "2026-11-29 03:10",
			Step{Due: instant(t, "2026-11-29 03:00"), Missed: 2, Create: "nightly-2611290300"}},
		"a run goes on": {State{Runs: going}, "2026-11-27 03:00",
			Step{Due: instant(t, "2026-11-27 03:00"), Reason: "StillGoing", Message: "Run nightly-2611250300 is not over."}},
		"suspended": {State{Suspended: true, Runs: going}, "2026-11-27 03:00",
			Step{Due: instant(t, "2026-11-27 03:00"), Reason: "Suspended", Message: "The experiment is suspended."}},
		"refused": {State{Refused: "System kv does not exist."}, "2026-11-27 03:00",
			Step{Due: instant(t, "2026-11-27 03:00"), Reason: "NotAccepted", Message: "System kv does not exist."}},
		"made, and the status was not written": {State{Runs: []Run{{Name: "nightly-2611270300", Going: true}}}, "2026-11-27 05:00",
			Step{Due: instant(t, "2026-11-27 03:00"), Create: "nightly-2611270300"}},
		"a clock that went back": {State{}, "2026-11-20 00:00", Step{}},
	} {
		s := schedule(t, v1alpha1.Recurrence{Cron: "0 3 * * *"})
		tc.at.Name, tc.at.Since, tc.at.Now = "nightly", instant(t, "2026-11-26 03:00"), instant(t, tc.now)
		got := s.Next(tc.at)
		if !got.Next.After(tc.at.Now) {
			t.Errorf("%s: the next run is due at %v", name, got.Next)
		}
		got.Next = time.Time{}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The runs come in any order, as from a cache. The oldest go first, and those that must stay count
// for nothing.
func TestTheOldestRunsAreDeleted(t *testing.T) {
	s := schedule(t, v1alpha1.Recurrence{Cron: "0 3 * * *", Keep: 2})
	runs := []Run{
		{Name: "nightly-2611250300", Disposable: true}, {Name: "nightly-2611220300"}, {Name: "nightly-2611230300", Disposable: true},
		{Name: "nightly-2611260300", Disposable: true}, {Name: "nightly-2611240300", Disposable: true},
	}
	at := instant(t, "2026-11-26 12:00")
	want := []string{"nightly-2611230300", "nightly-2611240300"}
	if diff := cmp.Diff(want, s.Next(State{Name: "nightly", Since: at, Now: at, Runs: runs}).Delete); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// In a year of hours no due time has two runs, and no two runs overlap, for any length of runs and
// absence of managers.
func TestAYearOfRuns(t *testing.T) {
	s := schedule(t, v1alpha1.Recurrence{Cron: "15 * * * *", TimeZone: "Australia/Lord_Howe", Keep: 5})
	at, ends := instant(t, "2026-01-01 00:00"), map[string]time.Time{}
	state := State{Name: "hourly", Since: at}
	made, skipped := map[string]bool{}, map[string]int{}
	for i := 0; at.Before(instant(t, "2027-01-01 00:00")); i++ {
		at = at.Add(time.Duration(1+i*7919%200) * time.Minute) // away for up to 200 minutes
		state.Now, state.Runs = at, nil
		goes := 0
		for name, end := range ends {
			run := Run{Name: name, Going: end.After(at), Disposable: !end.After(at)}
			if state.Runs = append(state.Runs, run); run.Going {
				goes++
			}
		}
		if goes > 1 {
			t.Fatalf("at %v there are %d runs at once", at, goes)
		}
		step := s.Next(state)
		for _, name := range step.Delete {
			delete(ends, name)
		}
		skipped["Missed"] += step.Missed
		switch {
		case step.Due.IsZero():
			continue
		case step.Create == "":
			skipped[step.Reason]++
		case made[step.Create]:
			t.Fatalf("%s is made twice", step.Create)
		default:
			made[step.Create], ends[step.Create] = true, at.Add(time.Duration(i*104729%150)*time.Minute)
		}
		state.Since = step.Due
	}
	if len(ends) > 6 {
		t.Errorf("%d runs are left, want 5 and the one that goes on", len(ends))
	}
	if len(made) < 1000 || skipped["StillGoing"] == 0 || skipped["Missed"] == 0 {
		t.Errorf("%d runs were made; skipped: %v", len(made), skipped)
	}
	t.Logf("%d runs were made; skipped: %v", len(made), skipped)
}
