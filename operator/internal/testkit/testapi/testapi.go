// Package testapi connects tests to the API server of a cluster on a busy machine. It is for tests
// only.
package testapi

import (
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// Insist makes clients with this configuration retry requests without an answer of the API server.
// It retries only requests that change nothing and that the API server does not pass on to other
// programs.
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
