package testapi

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestInsistent(t *testing.T) {
	for name, tc := range map[string]struct {
		method       string
		failures     int32
		status       int // of the failures
		wantRequests int32
		wantStatus   int
	}{
		"answered":              {http.MethodGet, 0, 0, 1, http.StatusOK},
		"answered in the end":   {http.MethodGet, 3, http.StatusServiceUnavailable, 4, http.StatusOK},
		"too many requests":     {http.MethodGet, 1, http.StatusTooManyRequests, 2, http.StatusOK},
		"never answered":        {http.MethodGet, 100, http.StatusInternalServerError, 8, http.StatusInternalServerError},
		"refused":               {http.MethodGet, 1, http.StatusForbidden, 1, http.StatusForbidden},
		"may have been carried": {http.MethodPost, 1, http.StatusInternalServerError, 1, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if requests.Add(1) <= tc.failures {
					w.WriteHeader(tc.status)
				}
			}))
			defer server.Close()
			req, err := http.NewRequestWithContext(t.Context(), tc.method, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := insistent{http.DefaultTransport, time.Millisecond}.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if got := requests.Load(); got != tc.wantRequests || resp.StatusCode != tc.wantStatus {
				t.Errorf("%d requests, status %d; want %d and %d", got, resp.StatusCode, tc.wantRequests, tc.wantStatus)
			}
		})
	}
}
