// Package identity makes and reads the keys of the awkward system. It leaves <i>.priv and <i>.pub
// for every replica i in a directory, as the key tool of a research prototype does. They are made
// once and copied to every process. A process without one of the files does not start.
package identity

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Generate writes the keys of n replicas to dir.
func Generate(dir string, n int, random io.Reader) error {
	if n < 1 {
		return fmt.Errorf("make keys: %d replicas", n)
	}
	for i := range n {
		public, private, err := ed25519.GenerateKey(random)
		if err != nil {
			return fmt.Errorf("make key %d: %w", i, err)
		}
		if err := write(dir, i, "priv", private, 0o600); err != nil {
			return err
		}
		if err := write(dir, i, "pub", public, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func write(dir string, i int, kind string, key []byte, mode os.FileMode) error {
	if err := os.WriteFile(path(dir, i, kind), []byte(hex.EncodeToString(key)+"\n"), mode); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}

func path(dir string, i int, kind string) string {
	return filepath.Join(dir, strconv.Itoa(i)+"."+kind)
}

// Private reads the private key of replica i.
func Private(dir string, i int) (ed25519.PrivateKey, error) {
	key, err := read(path(dir, i, "priv"), ed25519.PrivateKeySize)
	return ed25519.PrivateKey(key), err
}

// Publics reads the public keys of n replicas.
func Publics(dir string, n int) ([]ed25519.PublicKey, error) {
	var all []ed25519.PublicKey
	for i := range n {
		key, err := read(path(dir, i, "pub"), ed25519.PublicKeySize)
		if err != nil {
			return nil, err
		}
		all = append(all, ed25519.PublicKey(key))
	}
	return all, nil
}

func read(file string, size int) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	key := make([]byte, size)
	if n, err := hex.Decode(key, trimNewline(text, size)); err != nil || n != size {
		return nil, fmt.Errorf("read key: %s does not hold %d hexadecimal bytes", file, size)
	}
	return key, nil
}

// trimNewline returns the text without its final newline. It returns nothing if the text does not
// have the length of a key of that size: hex.Decode panics when the destination is too short.
func trimNewline(text []byte, size int) []byte {
	if len(text) != 2*size+1 {
		return nil
	}
	return text[:2*size]
}
