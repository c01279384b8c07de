package node

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"k8s.io/utils/clock"
)

// imageOf makes an image of files, in layers.
func imageOf(t *testing.T, layers ...[]tar.Header) v1.Image {
	t.Helper()
	var img v1.Image = empty.Image
	for _, files := range layers {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range files {
			h.Uid, h.Gid = os.Getuid(), os.Getgid()
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if h.Size > 0 {
				if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if img, err = mutate.AppendLayers(img, static.NewLayer(b.Bytes(), types.DockerUncompressedLayer)); err != nil {
			t.Fatal(err)
		}
	}
	img, err := mutate.Config(img, v1.Config{Entrypoint: []string{"/bin/run"}})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestImagesAreFoundInArchivesAndLayouts(t *testing.T) {
	img := imageOf(t, []tar.Header{{Name: "bin/run", Typeflag: tar.TypeReg, Mode: 0o4755, Size: 3}, {Name: "gone", Typeflag: tar.TypeReg, Mode: 0o600, Size: 1}},
		[]tar.Header{{Name: ".wh.gone", Typeflag: tar.TypeReg}, {Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/bin/run"}, {Name: "hard", Typeflag: tar.TypeLink, Linkname: "bin/run"}})
	archives, layouts := t.TempDir(), t.TempDir()
	tag, err := name.NewTag("lab/kv:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(filepath.Join(archives, "kv.tar"), tag, img); err != nil {
		t.Fatal(err)
	}
	at, err := layout.Write(filepath.Join(layouts, "kv"), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := at.AppendImage(img, layout.WithAnnotations(map[string]string{refName: "lab/kv:v1"})); err != nil {
		t.Fatal(err)
	}
	for where, source := range map[string]string{"a folder of archives": archives, "an archive": filepath.Join(archives, "kv.tar"), "a folder of layouts": layouts, "a layout": filepath.Join(layouts, "kv")} {
		i := &Images{Cache: t.TempDir(), Sources: []string{source}, Clock: clock.RealClock{}}
		got, err := i.get(t.Context(), "lab/kv:v1")
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		if info, err := os.Stat(filepath.Join(got.root, "bin/run")); err != nil || info.Mode() != 0o755|fs.ModeSetuid || info.Size() != 3 {
			t.Errorf("%s: /bin/run is %v, %v", where, info, err)
		}
		if _, err := os.Stat(filepath.Join(got.root, "gone")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a file that a later layer removes is there: %v", where, err)
		}
		if link, err := os.Readlink(filepath.Join(got.root, "link")); err != nil || link != "/bin/run" {
			t.Errorf("%s: /link is %q, %v", where, link, err)
		}
		if len(got.config.Entrypoint) != 1 {
			t.Errorf("%s: entrypoint %v", where, got.config.Entrypoint)
		}
	}
}

// If no folder was named or found, the message once ended with an empty list of folders.
func TestAnImageThatIsNowhereSaysWhereItWasSought(t *testing.T) {
	here := t.TempDir()
	for want, sources := range map[string][]string{
		"image localhost:1/kv:v1 is in no folder, as none was named or found, docker does not have it": nil,
		"image localhost:1/kv:v1 is in none of " + here + ", docker does not have it":                  {here},
	} {
		i := &Images{Cache: t.TempDir(), Sources: sources, Clock: clock.RealClock{}}
		if err := i.Have(t.Context(), "localhost:1/kv:v1"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want: %s", err, want)
		}
	}
}

// Images come from others. Unpacking one must not write outside of its folder.
func TestAnImageStaysInItsFolder(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for what, files := range map[string][]tar.Header{
		"a path that climbs":         {{Name: "../../outside", Typeflag: tar.TypeReg, Size: 1, Mode: 0o644}},
		"a link, and a file in it":   {{Name: "out", Typeflag: tar.TypeSymlink, Linkname: filepath.Dir(outside)}, {Name: "out/outside", Typeflag: tar.TypeReg, Size: 1, Mode: 0o644}},
		"a hard link to what climbs": {{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../../../../../../etc/passwd"}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range files {
			h.Uid, h.Gid = os.Getuid(), os.Getgid()
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
				t.Fatal(err)
			}
		}
		dir := filepath.Join(filepath.Dir(outside), "root")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		err := unpack(tar.NewReader(&b), dir)
		if _, found := os.Stat(outside); found == nil {
			t.Errorf("%s was written outside (%v)", what, err)
		}
		if err == nil && strings.HasPrefix(what, "a hard link") {
			t.Errorf("%s: no error", what)
		}
	}
}

// Files once had the time at which they were unpacked, so that make built existing files again.
func TestUnpackedFilesHaveTheirTimes(t *testing.T) {
	built := time.Unix(1_700_000_000, 0)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Name: "bin", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: built}, {Name: "bin/program", Typeflag: tar.TypeReg, Mode: 0o755, ModTime: built},
		{Name: "source.c", Typeflag: tar.TypeReg, Mode: 0o644, ModTime: built.Add(-time.Minute)},
	} {
		h.Uid, h.Gid = os.Getuid(), os.Getgid()
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := unpack(tar.NewReader(&b), dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]time.Time{"bin": built, "bin/program": built, "source.c": built.Add(-time.Minute)} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.ModTime().Equal(want) {
			t.Errorf("%s is of %v (%v), want %v", name, info.ModTime(), err, want)
		}
	}
}

func TestUnpackedImagesAreBounded(t *testing.T) {
	i := &Images{Cache: t.TempDir(), Clock: clock.RealClock{}}
	old := time.Now().Add(-time.Hour)
	for n := range mostImages + 5 {
		dir := filepath.Join(i.Cache, fmt.Sprintf("sha256-%02d", n))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, old, old.Add(time.Duration(n)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.used(filepath.Join(i.Cache, "sha256-00")); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(i.Cache)
	if err != nil || len(left) != mostImages || left[0].Name() != "sha256-00" || left[1].Name() != "sha256-06" {
		t.Errorf("%d images are left, the first two %v; want %d, with the one just used", len(left), left[:2], mostImages)
	}
}
