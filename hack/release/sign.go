package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// signature of checksums.txt: the base64 of an ECDSA signature (P-256, ASN.1) of its SHA-256, as
// cosign verify-blob --key reads it, and openssl dgst -sha256 -verify after base64 -d.
const signature = checksums + ".sig"

// makeKey writes a new private key (PKCS #8, PEM), and the public one beside it as FILE.pub.
func makeKey(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
		os.WriteFile(file+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644)) // #nosec G306 -- public
}

// sign the checksums of a release by a private key that makeKey or openssl wrote.
func sign(dir, keyFile string) error {
	text, err := os.ReadFile(keyFile) // #nosec G304 -- the caller names it
	if err != nil {
		return err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("%s is no PEM file", keyFile)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", keyFile, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return fmt.Errorf("%s holds a %T, want an ECDSA key of the curve P-256", keyFile, parsed)
	}
	listed, err := os.ReadFile(filepath.Join(dir, checksums)) // #nosec G304 -- the caller names it
	if err != nil {
		return err
	}
	digest := sha256.Sum256(listed)
	signed, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, signature), []byte(base64.StdEncoding.EncodeToString(signed)), 0o644) // #nosec G306 -- for everybody
}
