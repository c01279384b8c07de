package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/internal/node/protocol"
)

// maxTickets bounds a pod's requests. A pod has two streams for each container, its agent's log and
// its results, and asks for each of them a few times.
const maxTickets = 256

var (
	// ErrNoStore means that the trial has no store, so that there is nothing to hand over.
	ErrNoStore = errors.New("the trial has no result store")
	// ErrNoRoom means that the cluster has no room for the file.
	ErrNoRoom = errors.New("the cluster has no room for it")
	// ErrNoTicket means that pods cannot put files into the store at present. The manager keeps the
	// files instead.
	ErrNoTicket = errors.New("the store cannot be used")
	// ErrRefused means that the request is not allowed.
	ErrRefused = errors.New("it is refused")
)

// Archive lets agents hand over their pods' files. After any error but the four above, agents try
// again.
type Archive interface {
	// Ticket allows the pod to put one object into its trial's store.
	Ticket(ctx context.Context, pod Pod, u protocol.Upload) (protocol.Ticket, error)
	// Keep keeps a part of a file in the cluster, and returns once it is safe.
	Keep(ctx context.Context, pod Pod, u protocol.Upload, part int, data []byte) error
}

// podOf returns the pod of a session. If ticket is set, it counts a ticket.
func (c *Coordinator) podOf(uid types.UID, ticket bool) (pod Pod, known, tooMany bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[uid]
	if s == nil {
		return Pod{}, false, false
	}
	if ticket {
		s.tickets++
	}
	return s.pod, true, s.tickets > maxTickets
}

func (c *Coordinator) upload(w http.ResponseWriter, r *http.Request, uid types.UID) {
	pod, known, tooMany := c.podOf(uid, true)
	if !known {
		forbidden(w)
		return
	}
	if tooMany {
		http.Error(w, "the pod has asked for too many files", http.StatusTooManyRequests)
		return
	}
	var u protocol.Upload
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&u); err != nil {
		http.Error(w, "the description cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	ticket, err := c.Archive.Ticket(r.Context(), pod, u)
	if err != nil {
		c.refuse(w, pod, err)
		return
	}
	answer(w, ticket)
}

func (c *Coordinator) keepPart(w http.ResponseWriter, r *http.Request, uid types.UID) {
	pod, known, _ := c.podOf(uid, false)
	if !known {
		forbidden(w)
		return
	}
	u, part, err := describe(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s, _, _ := c.reader(uid)
	if s == nil {
		forbidden(w)
		return
	}
	data, release, err := c.receive(w, r, s.trial, protocol.PartLimit)
	if err != nil {
		cannotReceive(w, "a part", err)
		return
	}
	defer release()
	if err := c.Archive.Keep(r.Context(), pod, u, part, data); err != nil {
		c.refuse(w, pod, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func describe(q url.Values) (u protocol.Upload, part int, err error) {
	u = protocol.Upload{Name: q.Get("name"), SHA256: q.Get("sha256")}
	u.Size, err = strconv.ParseInt(q.Get("size"), 10, 64)
	if err == nil {
		part, err = strconv.Atoi(q.Get("part"))
	}
	return u, part, err
}

func (c *Coordinator) refuse(w http.ResponseWriter, pod Pod, err error) {
	switch {
	case errors.Is(err, ErrNoStore):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, ErrNoRoom):
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
	case errors.Is(err, ErrNoTicket):
		http.Error(w, err.Error(), http.StatusFailedDependency)
	case errors.Is(err, ErrRefused):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		c.Log.Error(err, "Taking over a pod's file failed", "trial", pod.Trial, "pod", pod.Name)
		http.Error(w, "it cannot be taken over now; try again", http.StatusServiceUnavailable)
	}
}
