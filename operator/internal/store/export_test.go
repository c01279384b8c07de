package store

import (
	"context"
	"net"
	"net/http"
)

// DialTo has the store dial an address whatever the host's name is: no resolver of a test knows the names of buckets.
func (s *S3) DialTo(address string) {
	client := s.client.Options().HTTPClient.(*http.Client)
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}
