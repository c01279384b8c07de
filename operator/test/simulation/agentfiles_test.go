package simulation

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/store"
)

// finish ends the process, and hands the pod's files over.
func (a *agent) finish(d *protocol.Directive) {
	a.once("finish", a.between(20*time.Millisecond, 500*time.Millisecond), func() {
		a.dies(143, true)
		if a.process.state == protocol.StateHeld {
			a.process.state = protocol.StateExited
		}
		a.mem.finished = true
		if d.HandOver {
			a.handOver(a.filesOf(d), true, a.now.Add(uploadLimit))
			return
		}
		if d.Collect == nil {
			a.mem.handedOver = true
			return
		}
		a.send("/v1/collected", []byte("packed files of "+a.key.Name), func(bool, string) {
			a.mem.handedOver = true
			a.tell()
		})
	})
}

// uploadLimit is how long the agent may hand over its files.
const uploadLimit = 75 * time.Second

// filesOf the pod that go to the store, by name.
func (a *agent) filesOf(d *protocol.Directive) []string {
	if a.disk.failure != "" && !a.disk.unreadable {
		return nil // there is no room to pack them
	}
	var names []string
	if d.Collect != nil && len(d.Collect.Patterns) > 0 {
		names = append(names, protocol.CollectedFile)
	}
	if d.Client != nil && a.disk.sent {
		names = append(names, protocol.ClientResultFile)
	}
	for _, c := range d.Containers {
		names = append(names, c.Name+".stdout.gz")
	}
	return append(names, "agent.log.gz")
}

// handOver gives the files to the store, one by one. If the store rejects one, the manager gets
// that file and all later ones.
func (a *agent) handOver(names []string, direct bool, by time.Time) {
	if len(names) == 0 || !a.now.Before(by) {
		a.mem.handedOver = true
		a.tell()
		return
	}
	data := []byte("packed " + names[0] + " of " + a.key.Name)
	o := store.Describe("", data)
	u := protocol.Upload{Name: names[0], Size: o.Size, SHA256: o.SHA256}
	kept := func(safe, direct bool) {
		if safe {
			a.noteHanded(u)
		}
		a.handOver(names[1:], direct, by)
	}
	if !direct {
		a.keep(u, data, by, func(safe bool) { kept(safe, false) })
		return
	}
	a.putOnce(u, data, func(taken bool) {
		if taken {
			kept(true, true)
			return
		}
		a.keep(u, data, by, func(safe bool) { kept(safe, false) })
	})
}

// known is the managers' name of the pod: without the suffix, if a Job made the pod.
func (a *agent) known() string {
	if a.part == v1alpha1.PodTypeReplica {
		return a.key.Name
	}
	return a.key.Name[:strings.LastIndex(a.key.Name, "-")]
}

func (a *agent) noteHanded(u protocol.Upload) {
	if t := a.world.trialNamed(types.NamespacedName{Namespace: a.key.Namespace, Name: a.trial}); t != nil && t.UID == a.of {
		if f, err := store.TrialFolder(t); err == nil {
			a.truth.handed = append(a.truth.handed, handed{store.Object{Key: f.PodFile(a.known(), u.Name), Size: u.Size, SHA256: u.SHA256}, a.now})
		}
	}
}

// putOnce asks for a ticket, and uses it to put a file into the store.
func (a *agent) putOnce(u protocol.Upload, data []byte, then func(taken bool)) {
	body, err := json.Marshal(u)
	if err != nil {
		panic(err)
	}
	a.ask(http.MethodPost, "/v1/upload", body, false, func(r answer) {
		var ticket protocol.Ticket
		if r.code != http.StatusOK || json.Unmarshal(r.body, &ticket) != nil {
			then(false)
			return
		}
		a.world.bucket.put(a, store.Object{Key: ticket.URL, Size: u.Size, SHA256: u.SHA256}, data, then)
	})
}

// keep lets the manager keep a file, which is small enough for one part.
func (a *agent) keep(u protocol.Upload, data []byte, by time.Time, then func(safe bool)) {
	query := url.Values{"name": {u.Name}, "sha256": {u.SHA256}, "size": {strconv.FormatInt(u.Size, 10)}, "part": {"0"}}
	a.ask(http.MethodPost, "/v1/keep?"+query.Encode(), data, true, func(r answer) {
		switch {
		case r.code/100 == 2:
			then(true)
		case r.code == http.StatusBadRequest || r.code == http.StatusInsufficientStorage || !a.now.Before(by):
			then(false)
		default:
			a.later(a.backoff(), func() { a.keep(u, data, by, then) })
		}
	})
}
