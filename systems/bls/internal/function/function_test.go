package function

import (
	"strings"
	"testing"
)

func TestFunctionsAreRight(t *testing.T) {
	for _, name := range Names {
		for _, signatures := range []int{1, 4} {
			run, err := New(name, signatures, 9)
			if err != nil {
				t.Fatalf("%s of %d: %v", name, signatures, err)
			}
			if err := run(); err != nil {
				t.Errorf("%s of %d: %v", name, signatures, err)
			}
		}
	}
}

// The seed determines the keys.
func TestSeed(t *testing.T) {
	sum := func(seed uint64) string {
		s, err := newSigners(2, seed)
		if err != nil {
			t.Fatal(err)
		}
		return string(s.sum)
	}
	if once, again, other := sum(1), sum(1), sum(2); once != again || once == other {
		t.Error("signatures do not follow from the seed")
	}
}

func TestNewRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		name       string
		signatures int
		want       string
	}{
		"function": {"encrypt", 1, "--operation"},
		"none":     {"sign", 0, "--signatures"},
		"too many": {"aggregate", MaxSignatures + 1, "--signatures"},
	} {
		if _, err := New(tc.name, tc.signatures, 1); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error about %s", name, err, tc.want)
		}
	}
}

// The test compares the library's results: another sum of signatures, or one of other signers, is
// wrong.
func TestWrongResultsAreSeen(t *testing.T) {
	s, err := newSigners(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	other, err := newSigners(4, 2)
	if err != nil {
		t.Fatal(err)
	}
	s.together = s.keys[0].PublicKey()
	s.sum = s.signatures[0]
	if err := s.check(); err == nil || !strings.Contains(err.Error(), "one signature for all") {
		t.Errorf("one key in the place of all: %v", err)
	}
	s.signatures[1] = s.signatures[0]
	if err := s.check(); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("a signature of the first key in the place of the second: %v", err)
	}
	s.message = append(s.message, '!')
	s.signatures[0] = other.signatures[0]
	if err := s.check(); err != nil {
		t.Errorf("nothing wrong is accepted, but: %v", err)
	}
}
