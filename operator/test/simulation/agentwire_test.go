package simulation

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/node/protocol"
)

// zero is t = 0 on the world's clock.
func (a *agent) zero() time.Time {
	return time.Unix(0, a.disk.directive.Run.ZeroUnixNanos).Add(-a.disk.base)
}

// tell makes the agent report soon.
func (a *agent) tell() {
	a.news = true
	a.later(a.between(5*time.Millisecond, 25*time.Millisecond), a.talk)
}

// talk sends a report, if one is due and no other one is on its way.
func (a *agent) talk() {
	if a.talking || !a.news {
		return
	}
	a.talking, a.news = true, false
	a.mem.sequence++
	body, err := json.Marshal(a.report())
	if err != nil {
		panic(err)
	}
	a.ask(http.MethodPost, "/v1/sync", body, false, func(r answer) {
		a.talking = false
		if r.code != http.StatusOK {
			a.news = true
			a.later(a.backoff(), a.talk)
			return
		}
		a.failures = 0
		var d protocol.Directive
		if err := json.Unmarshal(r.body, &d); err != nil {
			panic(err)
		}
		if a.disk.directive == nil || a.disk.directive.Version != d.Version {
			a.disk.directive = &d
			a.tell()
		}
		a.hear(r.manager)
		a.act()
		if a.news {
			a.tell()
		}
	})
}

func (a *agent) backoff() time.Duration {
	a.failures++
	return a.between(10*time.Millisecond, min(20*time.Millisecond<<min(a.failures, 10), time.Second))
}

// hear notes a manager's clock.
func (a *agent) hear(name string) {
	offset, known := a.world.clockOf(name)
	if !known {
		return
	}
	a.mem.lastOffset, a.mem.heard = offset, true
	d := a.disk.directive
	if a.disk.settled {
		if by := (offset - a.disk.base).Abs(); by > time.Millisecond {
			a.disk.stepped = max(a.disk.stepped, by)
			a.tell()
		}
		return
	}
	if d != nil && d.Run != nil {
		a.disk.settled, a.disk.base, a.disk.manager = true, offset, name
	}
}

// noAnswer is how long an agent waits for an answer.
const noAnswer = 20 * time.Second

// ask sends a request to one of the managers behind the address.
func (a *agent) ask(method, path string, body []byte, stores bool, then func(answer)) {
	life := a.life
	answered := false
	reply := func(r answer) {
		a.after(a.between(200*time.Microsecond, 2*time.Millisecond), func() {
			if !answered && a.life == life && a.alive() {
				answered = true
				if !a.node.reachable() || a.world.dropped() {
					r = answer{}
				}
				if r.code/100 != 2 {
					a.manager = nil // and the next connection may reach another
				}
				then(r)
			}
		})
	}
	// A request without an answer is over after a while.
	a.after(noAnswer, func() {
		if !answered {
			reply(answer{})
		}
	})
	if a.manager == nil || a.manager.gone {
		a.manager = a.world.pickManager()
	}
	m := a.manager
	if m == nil || !a.node.reachable() || a.world.dropped() {
		a.after(a.between(time.Millisecond, 2*time.Second), func() { reply(answer{}) })
		return
	}
	request := httptest.NewRequest(method, path, bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+string(a.uid))
	a.after(a.between(200*time.Microsecond, 2*time.Millisecond), func() { m.serve(request, stores, reply) })
}

// send retries until a manager has accepted the content, or has rejected it for good.
func (a *agent) send(path string, packed []byte, then func(ok bool, why string)) {
	a.ask(http.MethodPost, path, packed, true, func(r answer) {
		switch {
		case r.code/100 == 2:
			then(true, "")
		case r.code == http.StatusBadRequest || r.code == http.StatusRequestEntityTooLarge:
			then(false, strings.TrimSpace(string(r.body)))
		default:
			a.later(a.backoff(), func() { a.send(path, packed, then) })
		}
	})
}
