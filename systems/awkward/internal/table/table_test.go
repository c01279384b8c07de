package table

import (
	"bytes"
	"fmt"
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

// Each shard has rows of its own. A directory with another shard, with more than one, or with a
// changed row is not taken for it.
func TestShards(t *testing.T) {
	dir := t.TempDir()
	if err := LoadShards(dir, 8, 3); err != nil {
		t.Fatal(err)
	}
	sums := map[string]bool{}
	for i := range 3 {
		one := filepath.Join(dir, fmt.Sprint("shard-", i))
		if err := VerifyShard(one, i); err != nil {
			t.Error(err)
		}
		if VerifyShard(one, i+1) == nil {
			t.Errorf("shard %d is taken for shard %d", i, i+1)
		}
		sum, err := sumOf(one)
		if err != nil || sums[sum] {
			t.Errorf("shard %d has the sum %s (%v), as another one", i, sum, err)
		}
		sums[sum] = true
	}
	if VerifyShard(dir, 0) == nil {
		t.Error("all shards are taken for the first")
	}
	one := filepath.Join(dir, "shard-0")
	if err := os.Mkdir(filepath.Join(one, "shard-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if VerifyShard(one, 0) == nil {
		t.Error("a shard with another one in it is taken for the shard alone")
	}
	if err := Spoil(filepath.Join(dir, "shard-2")); err != nil {
		t.Fatal(err)
	}
	if VerifyShard(filepath.Join(dir, "shard-2"), 2) == nil {
		t.Error("a spoilt shard is taken for what was loaded")
	}
}
