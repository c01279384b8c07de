package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/cloudflare/circl/sign/bls"

	"assay.dev/assay/systems/hotstuff-reference/internal/replica"
)

// Schemes are the names of signatures.
var Schemes = []string{"none", "ecdsa", "bls"}

// WriteKeys makes the keys of n replicas, for all schemes: INDEX.ecdsa and INDEX.bls, with the
// suffix .pub for the public ones. It overwrites none.
func WriteKeys(dir string, replicas int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the keys: %w", err)
	}
	for i := range replicas {
		if err := errors.Join(writeECDSA(dir, i), writeBLS(dir, i)); err != nil {
			return fmt.Errorf("keys of replica %d: %w", i, err)
		}
	}
	return nil
}

func writeECDSA(dir string, i int) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	return errors.Join(err, writePair(dir, i, "ecdsa", private, public))
}

func writeBLS(dir string, i int) error {
	material := make([]byte, 32)
	if _, err := rand.Read(material); err != nil {
		return err
	}
	key, err := bls.KeyGen[bls.KeyG1SigG2](material, nil, nil)
	if err != nil {
		return err
	}
	private, err := key.MarshalBinary()
	if err != nil {
		return err
	}
	public, err := key.PublicKey().MarshalBinary()
	return errors.Join(err, writePair(dir, i, "bls", private, public))
}

func writePair(dir string, i int, scheme string, private, public []byte) error {
	return errors.Join(writeNew(file(dir, i, scheme), private, 0o600), writeNew(file(dir, i, scheme+".pub"), public, 0o644))
}

func file(dir string, i int, kind string) string {
	return filepath.Join(dir, strconv.Itoa(i)+"."+kind)
}

func writeNew(name string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Load returns the scheme of a replica, with keys from a folder that WriteKeys has filled.
func Load(scheme, dir string, self, replicas int) (replica.Scheme, error) {
	switch scheme {
	case "none":
		return None{}, nil
	case "ecdsa":
		return loadECDSA(dir, self, replicas)
	case "bls":
		return loadBLS(dir, self, replicas)
	}
	return nil, fmt.Errorf("%q is no scheme; want one of %q", scheme, Schemes)
}

func loadECDSA(dir string, self, replicas int) (*ECDSA, error) {
	data, err := os.ReadFile(file(dir, self, "ecdsa"))
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("key of replica %d: %w", self, err)
	}
	private, is := parsed.(*ecdsa.PrivateKey)
	if !is {
		return nil, fmt.Errorf("key of replica %d: a %T; want an ECDSA key", self, parsed)
	}
	e := &ECDSA{Private: private}
	for i := range replicas {
		data, err := os.ReadFile(file(dir, i, "ecdsa.pub"))
		if err != nil {
			return nil, err
		}
		parsed, err := x509.ParsePKIXPublicKey(data)
		if err != nil {
			return nil, fmt.Errorf("public key of replica %d: %w", i, err)
		}
		public, is := parsed.(*ecdsa.PublicKey)
		if !is {
			return nil, fmt.Errorf("public key of replica %d: a %T; want an ECDSA key", i, parsed)
		}
		e.Public = append(e.Public, public)
	}
	return e, nil
}

func loadBLS(dir string, self, replicas int) (*BLS, error) {
	data, err := os.ReadFile(file(dir, self, "bls"))
	if err != nil {
		return nil, err
	}
	private := new(blsPrivate)
	if err := private.UnmarshalBinary(data); err != nil {
		return nil, fmt.Errorf("key of replica %d: %w", self, err)
	}
	var all []*blsPublic
	for i := range replicas {
		data, err := os.ReadFile(file(dir, i, "bls.pub"))
		if err != nil {
			return nil, err
		}
		public := new(blsPublic)
		if err := public.UnmarshalBinary(data); err != nil {
			return nil, fmt.Errorf("public key of replica %d: %w", i, err)
		}
		all = append(all, public)
	}
	return NewBLS(private, all), nil
}
