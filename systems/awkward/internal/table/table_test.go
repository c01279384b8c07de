package table

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Two loads give the same bytes, and Verify notices a changed byte.
func TestLoadsAreIdentical(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		if err := Load(dir, fileRows+10); err != nil {
			t.Fatal(err)
		}
		if err := Verify(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"SUM", "rows-00001"} {
		one, errA := os.ReadFile(filepath.Join(a, name))
		other, errB := os.ReadFile(filepath.Join(b, name))
		if errA != nil || errB != nil || !bytes.Equal(one, other) {
			t.Errorf("%s differs (%v, %v)", name, errA, errB)
		}
	}
	if info, err := os.Stat(filepath.Join(a, "rows-00001")); err != nil || info.Size() != 10*RowSize {
		t.Errorf("the last file has %v (%v), want 10 rows", info, err)
	}
	if err := Spoil(a); err != nil {
		t.Fatal(err)
	}
	if Verify(a) == nil {
		t.Error("a spoilt table is taken for what was loaded")
	}
}
