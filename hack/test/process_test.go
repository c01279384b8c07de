package main

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAJobSaysAllItems(t *testing.T) {
	var events, lines, complaints []string
	var ended *end
	script := `echo '{"Action":"run","Package":"p","Test":"TestA"}'; echo no event; echo "a complaint" >&2; printf '{"Action":"pass","Package":"p"}'; exit 3`
	e := runJob(t.Context(), job{dir: ".", command: []string{"sh", "-c", script}}, func(i item) {
		switch {
		case i.end != nil:
			ended = i.end
		case i.complaint:
			complaints = append(complaints, i.line)
		case i.line != "":
			lines = append(lines, i.line)
		default:
			events = append(events, i.event.Action)
			if i.event.at.IsZero() || (i.event.Action == "run") != (i.event.machine.all > 0) {
				t.Errorf("%s came at %s, when the machine had done %v", i.event.Action, i.event.at, i.event.machine)
			}
		}
	})
	if diff := cmp.Diff([][]string{{"run", "pass"}, {"no event\n"}, {"a complaint\n"}}, [][]string{events, lines, complaints}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ended == nil || *ended != e || e.status != 3 || e.err == nil || e.last != "a complaint" {
		t.Errorf("ended %+v, returned %+v", ended, e)
	}
}

// All that a job has started ends with it when it is told to.
func TestAJobIsEndedWithAllItsProcesses(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	began := time.Now()
	e := runJob(ctx, job{dir: ".", command: []string{"sh", "-c", "sleep 1000 & echo begun; sleep 1000"}}, func(i item) {
		if i.line == "begun\n" {
			stop()
		}
	})
	if took := time.Since(began); e.err == nil || took > unheard/2 {
		t.Errorf("it ended with %v after %s: something kept its output", e.err, took)
	}
}

func TestAJobThatCannotBegin(t *testing.T) {
	if e := runJob(t.Context(), job{dir: ".", command: []string{"/no/such/program"}}, func(item) {}); e.err == nil || e.name != "/no/such/program in ." {
		t.Errorf("it ended with %+v", e)
	}
}
