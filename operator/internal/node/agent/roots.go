package agent

import (
	"crypto/x509"
	"sync"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trustInternet has this process trust the authorities that browsers trust: the agent's image has
// none, and a store may be on the Internet. Package x509roots/fallback does the same in each
// process that links it, at its start. An agent starts twice in each pod, and few agents upload
// anything.
var trustInternet = sync.OnceFunc(func() {
	pool := x509.NewCertPool()
	for root := range bundle.Roots() {
		cert, err := x509.ParseCertificate(root.Certificate)
		switch {
		case err != nil: // as if the bundle did not have it: uploads that need it fail and say so
		case root.Constraint == nil:
			pool.AddCert(cert)
		default:
			pool.AddCertWithConstraint(cert, root.Constraint)
		}
	}
	x509.SetFallbackRoots(pool)
})
