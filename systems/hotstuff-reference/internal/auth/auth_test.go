package auth

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
	"assay.dev/assay/systems/hotstuff-reference/internal/replica"
)

func group(t *testing.T, scheme string, n int) []replica.Scheme {
	t.Helper()
	dir := t.TempDir()
	if err := WriteKeys(dir, n); err != nil {
		t.Fatal(err)
	}
	var all []replica.Scheme
	for i := range n {
		s, err := Load(scheme, dir, i, n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func TestSchemes(t *testing.T) {
	for _, scheme := range []string{"ecdsa", "bls"} {
		t.Run(scheme, func(t *testing.T) {
			all := group(t, scheme, 4)
			text := message.VoteText(message.Prepare, 7, message.Genesis.Digest())
			other := message.VoteText(message.Commit, 7, message.Genesis.Digest())
			signers := []uint16{0, 2, 3}
			var shares [][]byte
			for _, s := range signers {
				shares = append(shares, all[s].Sign(text))
			}
			signature, wrong := all[1].Combine(text, signers, shares)
			if len(wrong) > 0 {
				t.Fatalf("the shares of %v are wrong", wrong)
			}
			if !all[1].Verify(text, signers, signature) {
				t.Error("the certificate is rejected")
			}
			for name, accepted := range map[string]bool{
				"another text":     all[1].Verify(other, signers, signature),
				"other signers":    all[1].Verify(text, []uint16{0, 1, 3}, signature),
				"fewer signers":    all[1].Verify(text, []uint16{0, 2}, signature),
				"more signers":     all[1].Verify(text, []uint16{0, 1, 2, 3}, signature),
				"a cut signature":  all[1].Verify(text, signers, signature[:len(signature)-1]),
				"no signature":     all[1].Verify(text, signers, nil),
				"a longer one":     all[1].Verify(text, signers, append(bytes.Clone(signature), 0)),
				"one's for all of": all[1].Verify(text, signers, shares[0]),
			} {
				if accepted {
					t.Errorf("%s: the certificate is accepted", name)
				}
			}
			shares[1] = all[2].Sign(other)
			if signature, wrong := all[1].Combine(text, signers, shares); signature != nil || len(wrong) != 1 || wrong[0] != 2 {
				t.Errorf("the share of replica 2 is wrong: got a signature of %d bytes, and %v wrong", len(signature), wrong)
			}
			shares[1] = []byte("no signature at all")
			if signature, wrong := all[1].Combine(text, signers, shares); signature != nil || len(wrong) != 1 || wrong[0] != 2 {
				t.Errorf("the share of replica 2 is none: got a signature of %d bytes, and %v wrong", len(signature), wrong)
			}
		})
	}
}

func TestNone(t *testing.T) {
	signature, wrong := None{}.Combine(nil, []uint16{0}, [][]byte{None{}.Sign(nil)})
	if len(signature) > 0 || len(wrong) > 0 || !(None{}).Verify(nil, []uint16{0}, signature) {
		t.Errorf("a signature of %d bytes, and %v wrong", len(signature), wrong)
	}
}

func TestKeysThatAreNotThere(t *testing.T) {
	dir := t.TempDir()
	if err := WriteKeys(dir, 2); err != nil {
		t.Fatal(err)
	}
	if err := WriteKeys(dir, 2); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("keys are overwritten: %v", err)
	}
	for _, scheme := range []string{"ecdsa", "bls"} {
		if _, err := Load(scheme, dir, 0, 3); !os.IsNotExist(err) {
			t.Errorf("%s: no key of the third replica: %v", scheme, err)
		}
		for _, name := range []string{"0." + scheme, "1." + scheme + ".pub"} {
			path := filepath.Join(dir, name)
			saved, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(scheme, dir, 0, 2); err == nil || !strings.Contains(err.Error(), "of replica "+name[:1]) {
				t.Errorf("%s is no key: %v", name, err)
			}
			if err := os.WriteFile(path, saved, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Load("rot13", dir, 0, 2); err == nil || !strings.Contains(err.Error(), "bls") {
		t.Errorf("an unknown scheme: %v", err)
	}
}
