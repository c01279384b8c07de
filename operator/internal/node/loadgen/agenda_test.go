package loadgen

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

// newTestAgenda has a request every 10 ms, from -20 ms to 40 ms. A request waits for at most 25 ms.
// The test can set the returned clock.
func newTestAgenda(clients int) (a *agenda, now *time.Duration, unsent *[]time.Duration) {
	now, unsent = new(time.Duration), new([]time.Duration)
	*now = -100 * ms
	a = newAgenda(func() time.Duration { return *now }, &constantPacer{rate: 100}, -20*ms, 50*ms, 25*ms, clients,
		func(at time.Duration) { *unsent = append(*unsent, at) })
	return a, now, unsent
}

func newTestClient() *client { return &client{ticket: make(chan time.Duration, 1)} }

func TestAgendaGivesDueRequestsInOrder(t *testing.T) {
	a, _, unsent := newTestAgenda(2)
	c := newTestClient()
	var got []time.Duration
	for _, now := range []time.Duration{-20 * ms, 0, 0, 15 * ms, 49 * ms, 49 * ms, 49 * ms} {
		intended, ok := a.take(c, now)
		if !ok {
			break
		}
		got = append(got, intended)
	}
	// At 49 ms the request of 20 ms has waited for 29 ms, longer than it may.
	if diff := cmp.Diff([]time.Duration{-20 * ms, -10 * ms, 0, 10 * ms, 30 * ms, 40 * ms}, got); diff != "" {
		t.Errorf("given (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{20 * ms}, *unsent); diff != "" {
		t.Errorf("unsent (-want +got):\n%s", diff)
	}
}

func TestAgendaExpiresAtTheTimeout(t *testing.T) {
	a, _, _ := newTestAgenda(1)
	if got, _ := a.take(newTestClient(), 5*ms-1); got != -20*ms {
		t.Errorf("1 ns before its timeout, the request of -20ms is not given, but that of %v", got)
	}
	a, _, unsent := newTestAgenda(1)
	if got, _ := a.take(newTestClient(), 5*ms); got != -10*ms || len(*unsent) != 1 {
		t.Errorf("at its timeout, the request of -20ms is not dropped: given %v, unsent %v", got, *unsent)
	}
}

// idle lets clients wait for requests, and returns once they wait in the agenda.
func idle(t *testing.T, a *agenda, now time.Duration, clients ...*client) (taken chan *client) {
	t.Helper()
	taken = make(chan *client, len(clients))
	for i, c := range clients {
		go func() {
			if _, ok := a.take(c, now); ok {
				taken <- c
			} else {
				taken <- nil
			}
		}()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			a.mu.Lock()
			n := a.size
			a.mu.Unlock()
			if n == i+1 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d clients are idle, want %d", n, i+1)
			}
		}
	}
	return taken
}

func TestHandOutWakesTheLongestIdle(t *testing.T) {
	a, now, _ := newTestAgenda(3)
	first, second, third := newTestClient(), newTestClient(), newTestClient()
	taken := idle(t, a, -100*ms, first, second, third)

	*now = -21 * ms
	if wait, starved, over := a.handOut(); wait != ms || starved || over {
		t.Errorf("1 ms before the first request: wait %v, starved %v, over %v; want 1ms", wait, starved, over)
	}
	*now = -10 * ms // two requests are due
	if wait, starved, over := a.handOut(); wait != 10*ms || starved || over {
		t.Errorf("wait %v, starved %v, over %v; want 10ms", wait, starved, over)
	}
	if got := map[*client]bool{<-taken: true, <-taken: true}; !got[first] || !got[second] {
		t.Error("the two clients that were idle for longest are not the ones that were woken")
	}
	*now = 10 * ms // two requests are due again, and one client is idle
	if _, starved, over := a.handOut(); !starved || over {
		t.Errorf("no client is idle: starved %v, over %v", starved, over)
	}
	if <-taken != third {
		t.Error("the third client was not woken")
	}
}

func TestPacerResumesWhenAClientIsFree(t *testing.T) {
	a, now, _ := newTestAgenda(1)
	*now = -20 * ms
	if _, starved, _ := a.handOut(); !starved {
		t.Fatal("not starved without a client")
	}
	c := newTestClient()
	if intended, ok := a.take(c, -20*ms); !ok || intended != -20*ms {
		t.Fatalf("take gives %v, %v", intended, ok)
	}
	select {
	case <-a.freed:
		t.Fatal("the pacer is woken though the client is busy")
	default:
	}
	idle(t, a, -19*ms, c)
	select {
	case <-a.freed:
	case <-time.After(time.Minute):
		t.Fatal("the pacer is not woken when the client idles")
	}
}

func TestCloseEndsClientsAndCountsTheRest(t *testing.T) {
	a, _, unsent := newTestAgenda(2)
	taken := idle(t, a, -100*ms, newTestClient(), newTestClient())
	a.close()
	for range 2 {
		if c := <-taken; c != nil {
			t.Error("a client got a request of a closed agenda")
		}
	}
	if len(*unsent) != 7 {
		t.Errorf("%d requests are unsent, want all 7", len(*unsent))
	}
	if _, ok := a.take(newTestClient(), 0); ok {
		t.Error("a closed agenda gives requests")
	}
	a.close() // a second close does no harm
	if _, _, over := a.handOut(); !over {
		t.Error("a closed agenda is not over")
	}
}
