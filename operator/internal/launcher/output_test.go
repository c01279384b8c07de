package launcher

import (
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What a full disk did not take was not counted, and what came later was joined with the half line before: a wrong number, reported as a right one.
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
	// A limit of the kernel on the size of files stands for the disk: it, too, takes what fits and refuses the rest.
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
