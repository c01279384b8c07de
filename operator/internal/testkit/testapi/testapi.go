// Package testapi connects tests to the API server of a cluster that is as busy as they are. For
// tests only.
package testapi

import (
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// Insist has clients of the configuration ask again when the API server did not answer a request
// that changes nothing, nor what it passes on to others.
func Insist(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return insistent{next, time.Second} })
}

type insistent struct {
	next  http.RoundTripper
	pause time.Duration // between two attempts
}

func (i insistent) RoundTrip(req *http.Request) (*http.Response, error) {
	const attempts = 8
	for attempt := 1; ; attempt++ {
		resp, err := i.next.RoundTrip(req)
		answered := err == nil && resp.StatusCode < http.StatusInternalServerError && resp.StatusCode != http.StatusTooManyRequests
		if answered || req.Method != http.MethodGet || attempt == attempts {
			return resp, err
		}
		if err == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
			_ = resp.Body.Close()
		}
		select {
		case <-req.Context().Done():
			return nil, req.Context().Err()
		case <-time.After(i.pause):
		}
	}
}
