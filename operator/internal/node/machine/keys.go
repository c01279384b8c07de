package machine

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
)

// The files of a trial's keys.
const (
	userKeyFile = "user_ed25519"
	hostKeyFile = "host_ed25519"
)

// Keys of a trial: the user's key, which every machine accepts, and the host key of every machine.
type Keys struct {
	User, Host ssh.Signer
	// UserPEM is the user's private key, as OpenSSH reads it.
	UserPEM []byte
}

// MakeKeys writes new keys into a directory.
func MakeKeys(dir string) error {
	for _, name := range []string{userKeyFile, hostKeyFile} {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return fmt.Errorf("make a key: %w", err)
		}
		block, err := ssh.MarshalPrivateKey(private, "assay")
		if err != nil {
			return fmt.Errorf("encode a key: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return fmt.Errorf("write a key: %w", err)
		}
	}
	return nil
}

// ReadKeys reads the files of MakeKeys.
func ReadKeys(dir string) (Keys, error) {
	var k Keys
	for name, to := range map[string]*ssh.Signer{userKeyFile: &k.User, hostKeyFile: &k.Host} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return k, fmt.Errorf("read a key of the trial: %w", err)
		}
		if *to, err = ssh.ParsePrivateKey(text); err != nil {
			return k, fmt.Errorf("read the key %s of the trial: %w", name, err)
		}
		if name == userKeyFile {
			k.UserPEM = text
		}
	}
	return k, nil
}

// authorized is a public key in OpenSSH's file format, without a comment.
func authorized(key ssh.PublicKey) string { return string(ssh.MarshalAuthorizedKey(key)) }
