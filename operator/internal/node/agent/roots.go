package agent

import (
	"crypto/x509"
	"sync"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trustInternet has this process trust the authorities that browsers trust: the agent's image has
// none, and a store may be on the Internet. Package x509roots/fallback would do the same at the
// start of each process, and an agent starts twice in each pod. Few agents upload anything, so the
// agent does it only when needed.
var trustInternet = sync.OnceFunc(func() {
	pool := x509.NewCertPool()
	for root := range bundle.Roots() {
		cert, err := x509.ParseCertificate(root.Certificate)
		switch {
		case err != nil: // as if the bundle did not have this certificate: uploads that need it fail with an error
		case root.Constraint == nil:
			pool.AddCert(cert)
		default:
			pool.AddCertWithConstraint(cert, root.Constraint)
		}
	}
	x509.SetFallbackRoots(pool)
})
