package s3

import (
	"context"
	"net"
	"net/http"
	"time"
)

// DialTo has the store dial an address whatever the host's name is: no resolver of a test knows the
// names of buckets.
func (s *Bucket) DialTo(address string) {
	client := s.client.Options().HTTPClient.(*http.Client)
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

// Hurry has the store wait for d where it would wait for half a minute.
func (s *Bucket) Hurry(d time.Duration) {
	s.patience = d
	s.client.Options().HTTPClient.(*http.Client).Transport.(*http.Transport).ResponseHeaderTimeout = d
}
