package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/node/protocol"
)

// desk records the requests, or fails.
type desk struct {
	err   error
	asked []string
}

func (d *desk) Ticket(_ context.Context, pod Pod, u protocol.Upload) (protocol.Ticket, error) {
	d.asked = append(d.asked, fmt.Sprintf("ticket %s %+v", pod.Name, u))
	return protocol.Ticket{URL: "https://store/" + pod.Name + "/" + u.Name}, d.err
}

func (d *desk) Keep(_ context.Context, pod Pod, u protocol.Upload, part int, data []byte) error {
	d.asked = append(d.asked, fmt.Sprintf("keep %s %+v %d %s", pod.Name, u, part, data))
	return d.err
}

func TestHandingOver(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}})
	d := &desk{}
	f.Archive = d
	upload := protocol.Upload{Name: "c.stdout.gz", Size: 5, SHA256: "ab"}
	status, body := f.call(t, http.MethodPost, "/v1/upload", "u1", upload)
	var ticket protocol.Ticket
	if err := json.Unmarshal(body, &ticket); err != nil || status != http.StatusOK || ticket.URL != "https://store/r0/c.stdout.gz" {
		t.Errorf("status %d, %s (%v)", status, body, err)
	}
	if status, body := f.call(t, http.MethodPost, "/v1/keep?name=c.stdout.gz&size=5&sha256=ab&part=1", "u1", []byte("hello")); status != http.StatusNoContent {
		t.Errorf("keep: %d %s", status, body)
	}
	want := "ticket r0 {Name:c.stdout.gz Size:5 SHA256:ab}\nkeep r0 {Name:c.stdout.gz Size:5 SHA256:ab} 1 hello"
	if got := strings.Join(d.asked, "\n"); got != want {
		t.Errorf("asked:\n%s\nwant:\n%s", got, want)
	}
	for name, tc := range map[string]struct {
		token, path string
		body        any
		err         error
		want        int
	}{
		"a stranger":           {"stranger", "/v1/upload", upload, nil, http.StatusUnauthorized},
		"a pod of no trial":    {"u9", "/v1/upload", upload, nil, http.StatusForbidden},
		"keep for no trial":    {"u9", "/v1/keep?size=1&part=0", []byte("x"), nil, http.StatusForbidden},
		"no store":             {"u1", "/v1/upload", upload, fmt.Errorf("x: %w", ErrNoStore), http.StatusNotFound},
		"no room":              {"u1", "/v1/keep?size=1&part=0", []byte("x"), fmt.Errorf("x: %w", ErrNoRoom), http.StatusInsufficientStorage},
		"no ticket":            {"u1", "/v1/upload", upload, fmt.Errorf("x: %w", ErrNoTicket), http.StatusFailedDependency},
		"a name of its own":    {"u1", "/v1/upload", upload, fmt.Errorf("x: %w", ErrRefused), http.StatusBadRequest},
		"the API server fails": {"u1", "/v1/upload", upload, errors.New("no"), http.StatusServiceUnavailable},
		"nonsense":             {"u1", "/v1/upload", []byte("{"), nil, http.StatusBadRequest},
		"no size":              {"u1", "/v1/keep?part=0", []byte("x"), nil, http.StatusBadRequest},
		"too large a part":     {"u1", "/v1/keep?size=1&part=0", make([]byte, protocol.PartLimit+1), nil, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			d.err = tc.err
			if got, body := f.call(t, http.MethodPost, tc.path, tc.token, tc.body); got != tc.want {
				t.Errorf("status %d (%s), want %d", got, body, tc.want)
			}
		})
	}
	d.err = nil
	last := 0
	for range maxTickets + 1 {
		last, _ = f.call(t, http.MethodPost, "/v1/upload", "u1", upload)
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("status %d after too many tickets", last)
	}
}
