package launcher

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func listing(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestAKillEmptiesVolumes(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.start(`mkdir -p $DIR/data/deep/er $DIR/other/dir $DIR/closed/in && echo x > $DIR/data/deep/er/file && echo x > $DIR/data/.hidden &&
		echo x > $DIR/other/file && echo x > $DIR/other/dir/file && ln -s $DIR/other/dir $DIR/data/folder && ln -s ../other/file $DIR/data/link &&
		ln -s nowhere $DIR/data/dangling && echo x > $DIR/closed/in/file && chmod 0500 $DIR/closed/in && touch $DIR/grown; exec sleep 1000`)
	b.awaitFile("grown")
	kill := Kill{ID: "k", Empty: []string{filepath.Join(b.dir, "data"), filepath.Join(b.dir, "closed")}}
	if result := b.call(Request{Kill: &kill}).Kill; result.Error != "" || result.ConfirmedAt == 0 {
		t.Fatalf("the kill: %+v", result)
	}
	for folder, want := range map[string][]string{"data": nil, "closed": nil, "other": {"dir", "file"}, "other/dir": {"file"}} {
		if got := listing(t, filepath.Join(b.dir, folder)); !slices.Equal(got, want) {
			t.Errorf("%s holds %v, want %v", folder, got, want)
		}
	}
}

func TestAKillWhoseVolumeCannotBeEmptiedSaysSo(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.start(`exec sleep 1000`)
	missing := filepath.Join(b.dir, "missing")
	result := b.call(Request{Kill: &Kill{ID: "k", Empty: []string{missing, "/", "data"}}}).Kill
	if result.ConfirmedAt == 0 || !strings.Contains(result.Error, missing) || strings.Count(result.Error, "is absolute and not /") != 2 {
		t.Errorf("the kill: %+v, want it confirmed and an error for each directory", result)
	}
}

// The rest needs two users and mounts, so root, on a thread that is not used again.
func TestOnlyTheVolumeItselfIsEmptied(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounts need root")
	}
	folder := t.TempDir()
	volume, inner, outside := folder+"/volume", folder+"/volume/a/inner", folder+"/outside"
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its mounts
		done <- func() error {
			if err := errors.Join(syscall.Unshare(syscall.CLONE_NEWNS), syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")); err != nil {
				return err
			}
			for _, made := range []string{inner, outside, volume + "/lost+found", volume + "/roots"} {
				if err := os.MkdirAll(made, 0o755); err != nil {
					return err
				}
			}
			for _, file := range []string{outside + "/kept", volume + "/gone", volume + "/a/gone", volume + "/roots/file"} {
				if err := os.WriteFile(file, nil, 0o644); err != nil {
					return err
				}
			}
			return syscall.Mount(outside, inner, "", syscall.MS_BIND, "")
		}()
		// The launcher of another user sees the same: /proc/self is the process, so its table of
		// mounts is that of this thread only here.
		mounts := map[string]bool{inner: true}
		done <- emptyFolder(volume, mounts)
	}()
	must(t, <-done)
	must(t, <-done)
	if got, want := listing(t, outside), []string{"kept"}; !slices.Equal(got, want) {
		t.Errorf("the other volume holds %v, want %v", got, want)
	}
	if got, want := listing(t, volume), []string{"a", "lost+found"}; !slices.Equal(got, want) {
		t.Errorf("the volume holds %v, want %v", got, want)
	}
	if got, want := listing(t, volume+"/a"), []string{"inner"}; !slices.Equal(got, want) {
		t.Errorf("beside the mount point there is %v, want %v", got, want)
	}
	mounts, err := mountPoints()
	must(t, err)
	if !mounts["/proc"] {
		t.Errorf("the mount points are %v, without /proc", mounts)
	}
}

func TestAnotherUsersFilesAreReported(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("two users need root")
	}
	folder := t.TempDir()
	must(t, os.Chmod(folder, 0o755), os.Chmod(filepath.Dir(folder), 0o755), os.Mkdir(folder+"/volume", 0o755), os.Chown(folder+"/volume", 65532, 65532),
		os.Mkdir(folder+"/volume/roots", 0o755), os.WriteFile(folder+"/volume/roots/file", nil, 0o644),
		os.WriteFile(folder+"/volume/own", nil, 0o644), os.Chown(folder+"/volume/own", 65532, 65532))
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its identity
		_, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, 65532, 65532, 65532)
		if errno != 0 {
			done <- errno
			return
		}
		done <- emptyFolder(folder+"/volume", nil)
	}()
	err := <-done
	if err == nil || !strings.Contains(err.Error(), "roots/file") || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("the error is %v, want it to name the file", err)
	}
	if got, want := listing(t, folder+"/volume"), []string{"roots"}; !slices.Equal(got, want) {
		t.Errorf("the volume holds %v, want %v", got, want)
	}
}
