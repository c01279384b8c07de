package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// program writes a module of two programs into a directory of its own.
func program(t *testing.T) (root, list string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module example.org/m\n\ngo 1.26.0\n",
		"a/main.go":  "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"a\") }\n",
		"b/main.go":  "package main\n\nfunc main() {}\n",
		"images.txt": "x/a /a ./a\nx/a /b ./b\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, filepath.Join(root, "images.txt")
}

// The same sources in two places, built one after the other, give the same bytes: image, tag, and
// what is said to be in it.
func TestImagesAreReproducible(t *testing.T) {
	var first string
	for i := range 2 {
		root, list := program(t)
		out := filepath.Join(root, "out")
		if err := run([]string{list}, root, out, runtime.GOARCH, "", nil); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = out
			continue
		}
		for _, name := range []string{"x-a.tar", "x-a.cdx.json", "index.tsv", "bin/a", "bin/b"} {
			if !bytes.Equal(load(t, filepath.Join(first, name)), load(t, filepath.Join(out, name))) {
				t.Errorf("%s is not the same twice", name)
			}
		}
	}
}

// Binaries need nothing from an image: no loader, no library, no user but the unprivileged one.
func TestBinariesAreStatic(t *testing.T) {
	root, list := program(t)
	out := filepath.Join(root, "out")
	if err := run([]string{list}, root, out, runtime.GOARCH, "", nil); err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(filepath.Join(out, "bin", "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("segment %v: the binary is linked at run time", p.Type)
		}
	}
	if archive := load(t, filepath.Join(out, "x-a.tar")); !bytes.Contains(archive, []byte(`"User":"65532:65532"`)) {
		t.Error("the image does not run as 65532")
	}
}

// An image's list of contents is what the linker has noted in each of its binaries.
func TestSBOM(t *testing.T) {
	self, err := os.Executable() // a Go binary with a module and no other
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.cdx.json")
	if err := writeSBOM(file, "x/a", "sha256:00", []content{{path: "/a", file: self}, {path: "/b", file: self}}); err != nil {
		t.Fatal(err)
	}
	var doc bom
	if err := json.Unmarshal(load(t, file), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.BomFormat != "CycloneDX" || doc.Metadata.Component.Version != "sha256:00" {
		t.Errorf("%+v", doc)
	}
	kinds := map[string]int{}
	for _, c := range doc.Components {
		kinds[c.Type+" "+c.Name]++
		if c.Type == "application" && (len(c.Hashes) != 1 || len(c.Hashes[0].Content) != 64) {
			t.Errorf("%s has hashes %v", c.Name, c.Hashes)
		}
		if c.Name == "stdlib" && !strings.HasPrefix(c.Purl, "pkg:golang/stdlib@1.") {
			t.Errorf("the standard library is %s", c.Purl)
		}
	}
	for _, want := range []string{"application /a", "application /b", "library stdlib", "library assay.dev/assay/hack/images"} {
		if kinds[want] != 1 {
			t.Errorf("%s occurs %d times in %v", want, kinds[want], kinds)
		}
	}
	if err := writeSBOM(file, "x/a", "", []content{{path: "/a", file: file}}); err == nil || !strings.Contains(err.Error(), "/a") {
		t.Errorf("a file that is no Go binary: error %v", err)
	}
}

func load(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
