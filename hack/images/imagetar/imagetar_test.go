package imagetar

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testImage(t *testing.T, content string) Image {
	t.Helper()
	l, err := NewLayer().Data("/bin/app", content, 0o755).Link("/bin/alias", "app").Dir("/tmp", 0o1777).Layer()
	if err != nil {
		t.Fatal(err)
	}
	return Image{Names: []string{"docker.io/x/app:1", "docker.io/x/app:dev"}, Arch: "amd64", Layers: []Layer{l},
		Config: Config{Entrypoint: []string{"/bin/app"}, User: "65532:65532"}}
}

func entries(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	m := map[string][]byte{}
	tr := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return m
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := m[h.Name]; twice {
			t.Errorf("%s is in the archive twice", h.Name)
		}
		m[h.Name] = b
	}
}

func TestWriteIsReproducible(t *testing.T) {
	var a, b bytes.Buffer
	if err := Write(&a, testImage(t, "hello")); err != nil {
		t.Fatal(err)
	}
	if err := Write(&b, testImage(t, "hello")); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two archives of the same image differ")
	}
	one, _ := testImage(t, "hello").Digest()
	two, _ := testImage(t, "hullo").Digest()
	if one == two {
		t.Error("different content, same digest")
	}
}

func TestArchiveIsConsistent(t *testing.T) {
	var buf bytes.Buffer
	same := testImage(t, "hello")
	same.Names = []string{"docker.io/x/other:1"}
	if err := Write(&buf, testImage(t, "hello"), same); err != nil {
		t.Fatal(err)
	}
	files := entries(t, buf.Bytes())
	for name, b := range files {
		sum := sha256.Sum256(b)
		if hx, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && hx != hex.EncodeToString(sum[:]) {
			t.Errorf("%s does not hash to its name", name)
		}
	}
	var docker []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(files["manifest.json"], &docker); err != nil {
		t.Fatal(err)
	}
	for _, d := range docker {
		for _, p := range append(d.Layers, d.Config) {
			if files[p] == nil {
				t.Errorf("manifest.json names %s, which is not in the archive", p)
			}
		}
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	if got := len(index.Manifests); got != 3 {
		t.Errorf("index.json has %d entries, want one for each of the 3 names", got)
	}
	for _, m := range index.Manifests {
		if files["blobs/sha256/"+strings.TrimPrefix(m.Digest, "sha256:")] == nil {
			t.Errorf("index.json names %s, which is not in the archive", m.Digest)
		}
	}
}

func TestLayerHoldsParentsOnce(t *testing.T) {
	raw, err := NewLayer().Data("/a/b/one", "1", 0o644).Data("/a/b/two", "2", 0o644).Dir("/a", 0o700).raw()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for tr := tar.NewReader(bytes.NewReader(raw)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSuffix(h.Name, "/"))
	}
	if want := "a a/b a/b/one a/b/two"; strings.Join(got, " ") != want {
		t.Errorf("layer has %v, want %s", got, want)
	}
}

func TestTarLayerEqualsLayerInMemory(t *testing.T) {
	b := NewLayer().Data("/x", "y", 0o644)
	mem, err := b.Layer()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "layer.tar")
	if err := os.WriteFile(file, b.buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	disk, err := TarLayer(file)
	if err != nil {
		t.Fatal(err)
	}
	if mem.diffID != disk.diffID || mem.blob.size != disk.blob.size {
		t.Errorf("layer from a file %v differs from the one in memory %v", disk.diffID, mem.diffID)
	}
}

func TestMissingFileIsReported(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	if _, err := NewLayer().File("/x", absent, 0o644).Layer(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), absent) {
		t.Errorf("error = %v, want that %s does not exist", err, absent)
	}
}
