package launcher

import (
	"encoding/binary"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The launcher did not count output that a full disk refused. It joined later output with the half
// line before: a wrong number, reported as a right one.
func TestADiskThatIsFullForAWhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.stdout")
	k, err := openKeeper(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer k.file.Close()
	if err := k.write([]byte("10\n")); err != nil {
		t.Fatal(err)
	}
	// The kernel's limit on the size of files stands for a full disk: it also accepts the bytes
	// that fit and refuses the rest.
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 8, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	full := k.write([]byte("20\n345\n"))
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if full == nil {
		t.Error("the error of the disk is not told")
	}
	if err := k.write([]byte("67\n")); err != nil {
		t.Error(err)
	}
	kept, err := os.ReadFile(path)
	if err != nil || string(kept) != "10\n20\n" || k.lost() != int64(len("345\n67\n")) {
		t.Errorf("%q is kept and %d bytes are counted as left out: %v", kept, k.lost(), err)
	}
}

func TestWhenOutputArrivesIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.stdout")
	k, err := openKeeper(path, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer k.file.Close()
	if err := k.write([]byte("1\n")); err != nil { // before arrivals are kept
		t.Fatal(err)
	}
	if err := k.keepArrivals(); err != nil {
		t.Fatal(err)
	}
	before := Monotonic()
	for _, text := range []string{"22\n", "4", "\n55555\n"} { // the last one does not fit
		if err := k.write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path + ArrivalsSuffix)
	if err != nil || len(kept) != 3*ArrivalBytes {
		t.Fatalf("%d bytes, %v; want 3 records", len(kept), err)
	}
	last := before
	for i, size := range []uint64{5, 6, 7} {
		record := kept[i*ArrivalBytes:]
		at := int64(binary.LittleEndian.Uint64(record[8:]))
		if got := binary.LittleEndian.Uint64(record); got != size || at < last || at > Monotonic() {
			t.Errorf("record %d: %d bytes at %d; want %d, at %d or later", i, got, at, size, last)
		}
		last = at
	}
}
