package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

// authority can sign certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// backdate is how long before it was made a certificate is valid: clocks in a cluster differ a
// little.
func backdate(lifetime time.Duration) time.Duration { return min(time.Hour, lifetime/20) }

// made returns when a backdated certificate was made.
func made(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(min(time.Hour, c.NotAfter.Sub(c.NotBefore)/21))
}

// newAuthority makes a self-signed authority.
func newAuthority(now time.Time, lifetime time.Duration) (*authority, error) {
	key, serial, err := newKey()
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		// The name contains the serial number: of two authorities with one name, a client might try
		// the wrong one.
		SerialNumber: serial, Subject: pkix.Name{CommonName: fmt.Sprintf("assay %x", serial.Bytes()[:4])},
		NotBefore: now.Add(-backdate(lifetime)), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	cert, err := sign(t, t, key, key)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key}, nil
}

// issue makes a server's certificate, which does not outlive the authority. It returns certificate
// and key as PEM.
func (a *authority) issue(names []string, now time.Time, lifetime time.Duration) (cert, key []byte, err error) {
	if len(names) == 0 {
		return nil, nil, errors.New("a certificate needs at least one DNS name")
	}
	k, serial, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	end := now.Add(lifetime)
	if end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	c, err := sign(&x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "assay-manager"}, DNSNames: names,
		NotBefore: now.Add(-backdate(lifetime)), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert, k, a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(k)
	return encodeCerts(c), key, err
}

func newKey() (*ecdsa.PrivateKey, *big.Int, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	serial := make([]byte, 16)
	if _, err := rand.Read(serial); err != nil {
		return nil, nil, fmt.Errorf("make a serial number: %w", err)
	}
	serial[0] = serial[0]&0x7f | 0x40 // positive, and of full length
	return key, new(big.Int).SetBytes(serial), nil
}

func sign(template, parent *x509.Certificate, of *ecdsa.PrivateKey, by crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, of.Public(), by)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func encodeCerts(certs ...*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, c := range certs {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: c.Raw}))
	}
	return out.Bytes()
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}), nil
}

func decodeCerts(text []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return certs, nil
		}
		if block.Type != pemCertificate {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, c)
	}
}

// decodeAuthority reads an authority, or returns nil if there is none.
func decodeAuthority(cert, key []byte) (*authority, error) {
	if len(cert) == 0 || len(key) == 0 {
		return nil, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("it cannot sign certificates")
	}
	return &authority{cert: pair.Leaf, key: signer}, nil
}
