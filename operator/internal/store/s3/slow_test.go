package s3_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/store/s3"
	"assay.dev/assay/operator/internal/testkit/tests3"
)

const (
	// hurry is the patience of the stores in these tests. A store must give up within notForever,
	// which is long enough for a slow machine. With the default patience, or with the time of the
	// object at the slowest rate, it would take far longer.
	hurry      = 500 * time.Millisecond
	notForever = 20 * time.Second
)

// inTime fails the test unless do ends in time, with the reason that the store does not answer.
func inTime(t *testing.T, name string, do func() error) {
	t.Helper()
	began := time.Now()
	wantProblem(t, name, do(), v1alpha1.ReasonStoreUnreachable)
	if took := time.Since(began); took > notForever {
		t.Errorf("%s: it took %v to see that nobody answers", name, took)
	}
}

func hurried(t *testing.T, c s3.Config) *s3.Bucket {
	t.Helper()
	s, err := s3.NewWith(c, tests3.Keys(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Hurry(hurry)
	return s
}

// A server that takes connections and never answers holds no request for long. Earlier, an object
// of 100 MB waited for minutes, the time that it takes at the slowest rate. If its content stopped
// coming, the error looked like the manager's own failure, "context canceled".
func TestServerThatHangs(t *testing.T) {
	t.Parallel()
	server := tests3.Start(t, tests3.Options{})
	s, patient := hurried(t, server.Config()), server.Store(t) // hurried is only what has to give up
	small, big := []byte("v"), large(100<<20)
	before := put(t, patient, "before", small)
	server.Freeze(t)
	for name, do := range map[string]func() error{
		"check":        func() error { return s.Check(t.Context()) },
		"list":         func() error { _, err := s.List(t.Context(), ""); return err },
		"get":          func() error { _, _, err := s.Get(t.Context(), "before"); return err },
		"confirm":      func() error { return s.Confirm(t.Context(), before) },
		"put":          func() error { return s.Put(t.Context(), store.Describe("k", small), bytes.NewReader(small)) },
		"put in parts": func() error { return s.Put(t.Context(), store.Describe("big", big), bytes.NewReader(big)) },
	} {
		t.Run(name, func(t *testing.T) { inTime(t, name, do) })
	}
	server.Thaw(t)
	if _, _, err := read(t.Context(), patient, "before"); err != nil {
		t.Errorf("after it: %v", err)
	}
	put(t, patient, "k", small)
}

// The server answers, and hangs in the middle of an upload.
func TestServerThatHangsInTheMiddle(t *testing.T) {
	server := tests3.Start(t, tests3.Options{})
	s, patient := hurried(t, server.Config()), server.Store(t) // hurried is only what has to give up
	content := large(64 << 20)
	reader := &stopping{Reader: bytes.NewReader(content), at: 20 << 20, stop: func() { server.Freeze(t) }}
	inTime(t, "put", func() error { return s.Put(t.Context(), store.Describe("k", content), reader) })
	server.Thaw(t)
	if _, _, err := patient.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("half an object is there: %v", err)
	}
}

// The server hangs in the middle of a download, or sends one byte after the other, for ever.
func TestContentThatStopsComing(t *testing.T) {
	for name, tc := range map[string]struct {
		size  int
		every time.Duration // 0: nothing comes after the first half
	}{
		"it hangs":                 {64 << 20, 0},
		"it comes in single bytes": {1 << 10, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(tc.size))
				w.Header().Set("X-Amz-Meta-Sha256", "0")
				send := func(p []byte) {
					_, _ = w.Write(p) // the client may have gone
					_ = http.NewResponseController(w).Flush()
				}
				send(make([]byte, tc.size/2))
				for tc.every > 0 {
					select {
					case <-over:
						return
					case <-time.After(tc.every):
						send([]byte("x"))
					}
				}
				<-over
			}))
			t.Cleanup(server.Close)
			t.Cleanup(func() { close(over) })
			s := hurried(t, s3.Config{Settings: store.Settings{Name: "slow"}, Endpoint: server.URL, Bucket: "bucket", PathStyle: true})
			inTime(t, name, func() error {
				_, content, err := s.Get(t.Context(), "k")
				if err != nil {
					t.Errorf("it is not even opened: %v", err)
					return err
				}
				defer content.Close()
				_, err = io.Copy(io.Discard, content)
				return err
			})
		})
	}
}
