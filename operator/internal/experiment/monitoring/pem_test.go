package monitoring

import (
	"encoding/pem"
	"net/http/httptest"
)

// pemOf returns the certificate of a test's server.
func pemOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}
