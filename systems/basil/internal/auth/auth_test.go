package auth

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"assay.dev/assay/systems/basil/internal/wire"
)

func TestMerkle(t *testing.T) {
	for n := 1; n <= 33; n++ {
		var leaves [][32]byte
		for i := range n {
			leaves = append(leaves, Leaf(fmt.Appendf(nil, "statement %d", i)))
		}
		root, paths := Tree(leaves)
		for i, leaf := range leaves {
			if Root(leaf, uint16(i), paths[i]) != root {
				t.Fatalf("%d leaves: path of leaf %d does not lead to the root", n, i)
			}
			if Root(Leaf([]byte("other")), uint16(i), paths[i]) == root {
				t.Fatalf("%d leaves: another statement has the path of leaf %d", n, i)
			}
			if n > 1 && Root(leaf, uint16(i^1), paths[i]) == root {
				t.Fatalf("%d leaves: leaf %d is valid at its sibling's place", n, i)
			}
		}
	}
}

// The two lowest leaves joined are 64 bytes, so they could be a statement. The prefixes prevent
// that the statement has the hash of the inner node.
func TestInnerNodeIsNoStatement(t *testing.T) {
	a, b := Leaf([]byte("a")), Leaf([]byte("b"))
	if Leaf(append(append([]byte{}, a[:]...), b[:]...)) == inner(a, b) {
		t.Error("an inner node passes for a statement")
	}
}

func proofFor(t *testing.T, s Signer, replica int, statements ...string) []wire.Proof {
	t.Helper()
	var leaves [][32]byte
	for _, x := range statements {
		leaves = append(leaves, Leaf([]byte(x)))
	}
	root, paths := Tree(leaves)
	sig := s.Sign(root)
	var out []wire.Proof
	for i := range statements {
		out = append(out, wire.Proof{Replica: uint16(replica), Index: uint16(i), Path: paths[i], Sig: sig})
	}
	return out
}

func TestVerifier(t *testing.T) {
	privs, pubs, err := Ephemeral(2)
	if err != nil {
		t.Fatal(err)
	}
	proofs := proofFor(t, privs[0], 0, "a", "b", "c")
	for name, tc := range map[string]struct {
		statement string
		change    func(*wire.Proof)
		want      bool
	}{
		"valid":             {"b", func(*wire.Proof) {}, true},
		"other statement":   {"x", func(*wire.Proof) {}, false},
		"other replica":     {"b", func(p *wire.Proof) { p.Replica = 1 }, false},
		"no such replica":   {"b", func(p *wire.Proof) { p.Replica = 2 }, false},
		"wrong place":       {"b", func(p *wire.Proof) { p.Index = 0 }, false},
		"missing signature": {"b", func(p *wire.Proof) { p.Sig = nil }, false},
		"forged signature":  {"b", func(p *wire.Proof) { p.Sig = make([]byte, ed25519.SignatureSize) }, false},
		"cut path":          {"b", func(p *wire.Proof) { p.Path = p.Path[:1] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := proofs[1]
			tc.change(&p)
			if got := NewVerifier(pubs, 2).Verify(&p, []byte(tc.statement)); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestVerifierChecksEachRootOnce(t *testing.T) {
	privs, pubs, err := Ephemeral(1)
	if err != nil {
		t.Fatal(err)
	}
	v := NewVerifier(pubs, 1)
	statements := []string{"a", "b", "c", "d"}
	for i, p := range proofFor(t, privs[0], 0, statements...) {
		if !v.Verify(&p, []byte(statements[i])) {
			t.Fatalf("statement %d refused", i)
		}
	}
	if v.checked != 1 {
		t.Errorf("%d signatures checked for one batch", v.checked)
	}
}

func TestCryptoOff(t *testing.T) {
	v := NewVerifier(nil, 6)
	if !v.Verify(&wire.Proof{Replica: 5}, []byte("x")) || v.Verify(&wire.Proof{Replica: 6}, []byte("x")) {
		t.Error("want every statement of an existing replica accepted")
	}
}

func TestKeyFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if err := WriteKeys(dir, 2); err != nil {
		t.Fatal(err)
	}
	priv, err := LoadPrivate(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	pubs, err := LoadPublic(dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	p := proofFor(t, priv, 1, "x")[0]
	if !NewVerifier(pubs, 2).Verify(&p, []byte("x")) {
		t.Error("the key pair does not fit")
	}
	if info, _ := os.Stat(filepath.Join(dir, "1.priv")); info.Size() != 32 || info.Mode().Perm() != 0o600 {
		t.Errorf("private key: %d bytes, mode %v", info.Size(), info.Mode())
	}
	if err := WriteKeys(dir, 3); err == nil {
		t.Error("existing keys were overwritten")
	}
	if _, err := LoadPublic(dir, 4); err == nil {
		t.Error("a missing key was not noticed")
	}
}

func BenchmarkVerify(b *testing.B) {
	privs, pubs, _ := Ephemeral(1)
	var root [32]byte
	sig := privs[0].Sign(root)
	for b.Loop() {
		if !pubs.VerifyRoot(0, root, sig) {
			b.Fatal("refused")
		}
	}
}
