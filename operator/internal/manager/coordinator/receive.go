package coordinator

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// maxReceived bounds the bytes of all request bodies together. A body counts from its first
	// byte until the request is answered. Further requests wait.
	maxReceived = 96 << 20
	// maxOfTrial is the share of maxReceived for the pods of one trial, so that no trial keeps
	// other trials from reporting.
	maxOfTrial = 12 << 20
	// receiveTimeout is how long a request may wait for its share. After that, its body may take as
	// long again to arrive.
	receiveTimeout = 30 * time.Second
)

// errBusy means that the manager has no room for a body now.
var errBusy = errors.New("too much is being received; send it again")

// receive reads a body of at most limit bytes. The body stays in memory until release is called.
// The error is errBusy, a *http.MaxBytesError, or an error of the connection.
func (c *Coordinator) receive(w http.ResponseWriter, r *http.Request, of *semaphore.Weighted, limit int64) (body []byte, release func(), err error) {
	none := func() {}
	if r.ContentLength > limit {
		return nil, none, &http.MaxBytesError{Limit: limit}
	}
	cost := limit
	if r.ContentLength >= 0 {
		cost = r.ContentLength
	}
	ctx, cancel := context.WithTimeout(r.Context(), receiveTimeout)
	defer cancel()
	if of.Acquire(ctx, cost) != nil {
		return nil, none, errBusy
	}
	if c.receiving.Acquire(ctx, cost) != nil {
		of.Release(cost)
		return nil, none, errBusy
	}
	release = func() { c.receiving.Release(cost); of.Release(cost) }
	// A slow sender holds its share at most this long. Connections of tests have no deadlines, and
	// no slow senders.
	control := http.NewResponseController(w)
	dawdles := time.AfterFunc(receiveTimeout, func() { _ = control.SetReadDeadline(time.Unix(1, 0)) })
	if r.ContentLength >= 0 { // a growing buffer takes twice as much
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	}
	if !dawdles.Stop() {
		_ = control.SetReadDeadline(time.Time{})
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		release()
		return nil, none, errBusy
	case err != nil:
		release()
		return nil, none, err
	}
	return body, release, nil
}

// cannotReceive answers a request whose body was not received.
func cannotReceive(w http.ResponseWriter, what string, err error) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errBusy):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case errors.As(err, &tooLarge):
		http.Error(w, what+" takes more bytes than it may", http.StatusRequestEntityTooLarge)
	default:
		http.Error(w, "the body cannot be read: "+err.Error(), http.StatusBadRequest)
	}
}
