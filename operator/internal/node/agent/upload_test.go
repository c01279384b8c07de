package agent_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/node/protocol"
)

// archive plays the manager's desk, and a store with its own CA that can be down.
type archive struct {
	t      *testing.T
	store  *httptest.Server
	mu     sync.Mutex
	down   bool
	full   bool // the cluster has no room either
	stored map[string][]byte
	kept   map[string][]byte
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	a := &archive{t: t, stored: map[string][]byte{}, kept: map[string][]byte{}}
	a.store = httptest.NewTLSServer(http.HandlerFunc(a.put))
	t.Cleanup(a.store.Close)
	return a
}

func (a *archive) put(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.down:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "<Error><Code>SlowDown</Code></Error>")
	case err != nil || r.Method != http.MethodPut || r.Header.Get("X-Amz-Meta-Sha256") != sum(content) || r.URL.Query().Get("signature") != "secret":
		w.WriteHeader(http.StatusForbidden)
	default:
		a.stored[strings.TrimPrefix(r.URL.Path, "/bucket/")] = content
	}
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// ServeHTTP is the coordinator's side.
func (a *archive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/upload" {
		var u protocol.Upload
		if err := json.NewDecoder(r.Body).Decode(&u); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(protocol.Ticket{
			Method: http.MethodPut, URL: a.store.URL + "/bucket/" + u.Name + "?signature=secret", Header: map[string]string{"x-amz-meta-sha256": u.SHA256},
			CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.store.Certificate().Raw})),
		})
		return
	}
	data, err := io.ReadAll(r.Body)
	q := r.URL.Query()
	part, errPart := strconv.Atoi(q.Get("part"))
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.full:
		http.Error(w, "no room", http.StatusInsufficientStorage)
	case err != nil || errPart != nil || len(data) > protocol.PartLimit || part*protocol.PartLimit != len(a.kept[q.Get("name")]):
		http.Error(w, "not in order", http.StatusBadRequest)
	default:
		a.kept[q.Get("name")] = append(a.kept[q.Get("name")], data...)
		if got := a.kept[q.Get("name")]; strconv.Itoa(len(got)) == q.Get("size") && sum(got) != q.Get("sha256") {
			a.t.Errorf("%s is kept with another checksum than it was announced with", q.Get("name"))
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func (a *archive) is(down, full bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down, a.full = down, full
}

func (a *archive) names() (stored, kept []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.stored)), slices.Sorted(maps.Keys(a.kept))
}

func unpacked(t *testing.T, packed []byte) string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// finished runs a replica that prints, ends it, and waits until its files are handed over.
func finished(t *testing.T, a *archive, script string) *fakeCoordinator {
	t.Helper()
	c := newFakeCoordinator(t, "127.0.0.1:0")
	c.handOver = a
	p := newPod(t, c)
	p.launch("replica")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell(script)}}
		d.Stop, d.Start, d.HandOver = protocol.Stop{Signal: "SIGTERM", Grace: patience}, true, true
		d.Gates = []protocol.Gate{{Log: "^done", Stream: "Stderr", Container: "replica"}}
	})
	if r := c.await("is ready", func(r protocol.Report) bool { return r.Ready }); r.HandedOver {
		t.Error("files are handed over before the end")
	}
	p.write("out/agent.log", []byte("{}\n"))
	c.direct(func(d *protocol.Directive) { d.Finish = true })
	c.await("has handed over", func(r protocol.Report) bool { return r.Finished && r.HandedOver })
	return c
}

func TestFilesAreHandedOverToTheStore(t *testing.T) {
	a := newArchive(t)
	finished(t, a, `echo to stdout; echo done >&2; exec sleep 1000`)
	stored, kept := a.names()
	if diff := cmp.Diff([]string{"agent.log.gz", "replica.stderr.gz", "replica.stdout.gz"}, stored); diff != "" || len(kept) > 0 {
		t.Errorf("kept: %v; stored (-want +got):\n%s", kept, diff)
	}
	if got := unpacked(t, a.stored["replica.stdout.gz"]); got != "to stdout\n" {
		t.Errorf("the log says %q", got)
	}
}

func TestFilesAreKeptWhenTheStoreIsDown(t *testing.T) {
	a := newArchive(t)
	a.is(true, false)
	finished(t, a, `echo to stdout; echo done >&2; exec sleep 1000`)
	stored, kept := a.names()
	if diff := cmp.Diff([]string{"agent.log.gz", "replica.stderr.gz", "replica.stdout.gz"}, kept); diff != "" || len(stored) > 0 {
		t.Errorf("stored: %v; kept (-want +got):\n%s", stored, diff)
	}
	if got := unpacked(t, a.kept["replica.stderr.gz"]); got != "done\n" {
		t.Errorf("the log says %q", got)
	}
}

// A pod ends even if neither the store nor the cluster has room.
func TestFilesThatFindNoRoomAreLeft(t *testing.T) {
	a := newArchive(t)
	a.is(true, true)
	c := finished(t, a, `echo done >&2; exec sleep 1000`)
	if stored, kept := a.names(); len(stored)+len(kept) > 0 || c.report.Failure != "" {
		t.Errorf("stored %v, kept %v, failure %q", stored, kept, c.report.Failure)
	}
}

// A system's process may leave a link or a pipe in place of its log. The link leads to no file of
// the agent, and the pipe delays no upload.
func TestOnlyFilesOfTheVolumesAreHandedOver(t *testing.T) {
	a := newArchive(t)
	// The log exists until the gate has read it, which a busy machine does late.
	finished(t, a, `cd "$OUT"; rm replica.stdout; ln -s ../token replica.stdout; trap 'rm replica.stderr; mkfifo replica.stderr; exit' TERM; echo done >&2; while :; do sleep 0.1; done`)
	stored, kept := a.names()
	if diff := cmp.Diff([]string{"agent.log.gz"}, stored); diff != "" || len(kept) > 0 {
		t.Errorf("kept: %v; stored (-want +got):\n%s", kept, diff)
	}
}
