package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secret. cert-manager also writes the first three.
const (
	keyTrusted     = "ca.crt" // all trusted authorities; the one that signs is first
	keyCert        = corev1.TLSCertKey
	keyKey         = corev1.TLSPrivateKeyKey
	keySigning     = "signing.crt"
	keySigningKey  = "signing.key"
	keyUpcoming    = "upcoming.crt" // is trusted, but does not sign yet
	keyUpcomingKey = "upcoming.key"
)

// Lifetimes of new certificates and authorities. A certificate that was made for longer, under
// other settings, is replaced as if it had this lifetime.
type Lifetimes struct {
	Authority, Certificate time.Duration
}

// shortest is the least lifetime of a certificate, since managers look at the Secret at most once a
// second.
const shortest = 30 * time.Second

// Validate returns the mistake in lifetimes.
func (l Lifetimes) Validate() error {
	switch {
	case l.Certificate < shortest:
		return fmt.Errorf("certificates live for %s; make it %s or more", l.Certificate, shortest)
	case l.Authority < 4*l.Certificate:
		return fmt.Errorf("authorities live for %s; make it four times the lifetime of certificates (%s) or more", l.Authority, l.Certificate)
	}
	return nil
}

// look is how often a manager looks at the Secret. All managers must have a renewed certificate
// well before the old one ends.
func (l Lifetimes) look() time.Duration { return min(time.Minute, max(time.Second, l.Certificate/30)) }

// lookBefore is how soon to look again at a certificate that ends at an instant. It may have been
// made under shorter lifetimes than the present ones.
func lookBefore(end, now time.Time) time.Duration { return max(time.Second, end.Sub(now)/10) }

// lives returns how long a certificate lives, with the time before it was made.
func lives(c *x509.Certificate, lifetime time.Duration) time.Duration {
	return min(c.NotAfter.Sub(c.NotBefore), lifetime+backdate(lifetime))
}

// age returns the age of a certificate as a share of its lifetime, which may exceed 1.
func age(c *x509.Certificate, now time.Time, lifetime time.Duration) float64 {
	return float64(now.Sub(c.NotBefore)) / float64(lives(c, lifetime))
}

// toldFor is the share of an authority's lifetime for which clients get its successor before the
// successor signs. The shorter of the two lifetimes counts. An authority that was made before its
// lifetime was set to years would end before a fifth of these years is over.
const toldFor = 0.2

// mayFollow reports whether clients have had the upcoming authority for long enough.
func (s *state) mayFollow(l Lifetimes, now time.Time) bool {
	told := now.Sub(made(s.upcoming.cert))
	return float64(told) >= toldFor*float64(min(lives(s.signing.cert, l.Authority), lives(s.upcoming.cert, l.Authority)))
}

// state is the decoded Secret.
type state struct {
	signing, upcoming *authority
	trusted           []*x509.Certificate
	leaf              *tls.Certificate
}

// read decodes the Secret of managers that make certificates themselves. It fails if no server
// could use it, or if no manager could renew it.
func read(data map[string][]byte, names []string, now time.Time) (*state, error) {
	s := &state{}
	var err error
	if s.leaf, s.trusted, err = served(data); err != nil {
		return nil, err
	}
	if s.signing, err = decodeAuthority(data[keySigning], data[keySigningKey]); err != nil {
		return nil, fmt.Errorf("%s: %w", keySigning, err)
	}
	if s.signing == nil {
		return nil, fmt.Errorf("%s is missing", keySigning)
	}
	if s.upcoming, err = decodeAuthority(data[keyUpcoming], data[keyUpcomingKey]); err != nil {
		return nil, fmt.Errorf("%s: %w", keyUpcoming, err)
	}
	roots := x509.NewCertPool()
	for _, c := range s.trusted {
		roots.AddCert(c)
	}
	for _, name := range names {
		if _, err := s.leaf.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return nil, fmt.Errorf("%s: %w", keyCert, err)
		}
	}
	if now.After(s.signing.cert.NotAfter) {
		return nil, fmt.Errorf("%s expired at %s", keySigning, s.signing.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return s, nil
}

// served returns the part of the Secret that servers and their clients need, whichever program
// makes it.
func served(data map[string][]byte) (*tls.Certificate, []*x509.Certificate, error) {
	for _, key := range []string{keyCert, keyKey, keyTrusted} {
		if len(data[key]) == 0 {
			return nil, nil, fmt.Errorf("%s is missing", key)
		}
	}
	leaf, err := tls.X509KeyPair(data[keyCert], data[keyKey])
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", keyCert, err)
	}
	trusted, err := decodeCerts(data[keyTrusted])
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", keyTrusted, err)
	}
	if len(trusted) == 0 {
		return nil, nil, errors.New(keyTrusted + " holds no certificate")
	}
	return &leaf, trusted, nil
}

// begin makes a Secret's first content.
func begin(names []string, l Lifetimes, now time.Time) (map[string][]byte, error) {
	a, err := newAuthority(now, l.Authority)
	if err != nil {
		return nil, err
	}
	s := &state{signing: a, trusted: []*x509.Certificate{a.cert}}
	return s.encode(names, l, now)
}

// renew returns the Secret's next content and the reason for it. There is no reason if the present
// content is good. Each call makes one step.
func renew(data map[string][]byte, names []string, l Lifetimes, now time.Time) (next map[string][]byte, why string, err error) {
	s, err := read(data, names, now)
	if err != nil {
		next, beginErr := begin(names, l, now)
		return next, "there is no usable one: " + err.Error(), beginErr
	}
	signingAge := age(s.signing.cert, now, l.Authority)
	switch {
	case s.upcoming != nil && signingAge >= 0.75 && s.mayFollow(l, now):
		why = "the authority that was announced signs from now on"
		s.trusted = []*x509.Certificate{s.upcoming.cert, s.signing.cert}
		s.signing, s.upcoming = s.upcoming, nil
	case s.upcoming == nil && signingAge >= 0.5:
		why = "the authority's lifetime is half over: its successor is announced"
		if s.upcoming, err = newAuthority(now, l.Authority); err != nil {
			return nil, "", err
		}
		// No certificate in use is signed by an authority older than the signing one.
		s.trusted = []*x509.Certificate{s.signing.cert, s.upcoming.cert}
		next, err = s.with(data)
		return next, why, err
	case age(s.leaf.Leaf, now, l.Certificate) >= 2.0/3:
		why = "two thirds of the certificate's lifetime are over"
	case s.leaf.Leaf.CheckSignatureFrom(s.signing.cert) != nil:
		why = "the certificate is of another authority than the one that signs"
	default:
		return nil, "", nil
	}
	next, err = s.encode(names, l, now)
	return next, why, err
}

// encode writes the state with a new certificate.
func (s *state) encode(names []string, l Lifetimes, now time.Time) (map[string][]byte, error) {
	cert, key, err := s.signing.issue(names, now, l.Certificate)
	if err != nil {
		return nil, err
	}
	return s.with(map[string][]byte{keyCert: cert, keyKey: key})
}

// with writes the state's authorities, and keeps the certificate in data.
func (s *state) with(data map[string][]byte) (map[string][]byte, error) {
	out := maps.Clone(data)
	out[keyTrusted] = encodeCerts(s.trusted...)
	for _, a := range []struct {
		cert, key string
		of        *authority
	}{{keySigning, keySigningKey, s.signing}, {keyUpcoming, keyUpcomingKey, s.upcoming}} {
		if a.of == nil {
			delete(out, a.cert)
			delete(out, a.key)
			continue
		}
		key, err := encodeKey(a.of.key)
		if err != nil {
			return nil, err
		}
		out[a.cert], out[a.key] = encodeCerts(a.of.cert), key
	}
	return out, nil
}
