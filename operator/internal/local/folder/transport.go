package folder

import (
	"context"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// Config is a connection to a server in this process, without a socket.
func Config(s *Server) *rest.Config {
	return &rest.Config{
		Host: "http://one-machine", Transport: transport{s}, QPS: -1,
		// The server has only JSON.
		ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
	}
}

// transport passes requests to a handler.
type transport struct{ to http.Handler }

// RoundTrip returns when the handler has sent the headers. The body follows as the handler writes
// it.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, out := io.Pipe()
	ctx, cancel := context.WithCancel(r.Context())
	w := &response{header: http.Header{}, out: out, began: make(chan struct{})}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	go func() {
		defer cancel()
		t.to.ServeHTTP(w, r.WithContext(ctx))
		w.WriteHeader(http.StatusOK)
		_ = out.Close()
	}()
	// When the request ends, so does its watch, also if the reader waits.
	stop := context.AfterFunc(ctx, func() { _ = out.CloseWithError(io.ErrUnexpectedEOF) })
	<-w.began
	return &http.Response{
		Status: http.StatusText(w.code), StatusCode: w.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.header, Request: r, ContentLength: -1,
		Body: &cancelBody{ReadCloser: body, cancel: cancel, stop: stop},
	}, nil
}

// response gets the output of the handler.
type response struct {
	header http.Header
	out    *io.PipeWriter
	once   sync.Once
	code   int
	began  chan struct{}
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(code int) {
	w.once.Do(func() {
		w.code, w.header = code, w.header.Clone()
		close(w.began)
	})
}

func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(p)
}

func (w *response) Flush() {}

// cancelBody ends the handler when the client reads no more.
type cancelBody struct {
	io.ReadCloser
	cancel context.CancelFunc
	stop   func() bool
}

func (b *cancelBody) Close() error {
	b.stop()
	err := b.ReadCloser.Close()
	b.cancel()
	return err
}
