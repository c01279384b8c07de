package checkimage

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// member is a file of a layer.
type member struct {
	text string
	link string // symbolic
	mode int64  // 0: 0755
}

// layerOf makes a layer. A name that ends in a slash is a directory.
func layerOf(t *testing.T, files map[string]member) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	names := make([]string, 0, len(files))
	for n := range files {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		f := files[n]
		h := &tar.Header{Name: strings.TrimPrefix(n, "/"), Mode: 0o755, Size: int64(len(f.text)), Typeflag: tar.TypeReg}
		if f.mode != 0 {
			h.Mode = f.mode
		}
		switch {
		case f.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
		case strings.HasSuffix(n, "/"):
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// imageOf makes an image of layers.
func imageOf(t *testing.T, architecture string, config v1.Config, layers ...map[string]member) v1.Image {
	t.Helper()
	image := empty.Image
	var err error
	for _, files := range layers {
		if image, err = mutate.AppendLayers(image, layerOf(t, files)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Config = "linux", architecture, config
	if image, err = mutate.ConfigFile(image, c); err != nil {
		t.Fatal(err)
	}
	return image
}

// asLayout writes images as a directory in the OCI image layout.
func asLayout(t *testing.T, images ...v1.Image) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		c, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if err := path.AppendImage(image, layout.WithPlatform(v1.Platform{OS: c.OS, Architecture: c.Architecture})); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// asArchive writes what docker save writes.
func asArchive(t *testing.T, images map[string]v1.Image) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	tags := map[name.Tag]v1.Image{}
	for text, image := range images {
		tag, err := name.NewTag(text)
		if err != nil {
			t.Fatal(err)
		}
		tags[tag] = image
	}
	if err := tarball.MultiWriteToFile(file, tags); err != nil {
		t.Fatal(err)
	}
	return file
}

// asTar packs a directory.
func asTar(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "layout.tar")
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// object is a 64-bit ELF file with the parts that a loader reads before it maps the file.
type object struct {
	machine elf.Machine // 0: x86-64
	loader  string
	needed  []string
	run     string // DT_RUNPATH
	rpath   string // DT_RPATH
}

// program makes an ELF file: header, one program header for the loader's name, sections .dynamic
// and .dynstr.
func program(o object) string {
	const headers, programHeader, section = 64, 56, 64
	if o.machine == 0 {
		o.machine = elf.EM_X86_64
	}
	texts := "\x00"
	at := func(s string) uint64 {
		n := len(texts)
		texts += s + "\x00"
		return uint64(n)
	}
	var dynamic bytes.Buffer
	entry := func(tag elf.DynTag, value uint64) {
		_ = binary.Write(&dynamic, binary.LittleEndian, elf.Dyn64{Tag: int64(tag), Val: value})
	}
	for _, n := range o.needed {
		entry(elf.DT_NEEDED, at(n))
	}
	if o.run != "" {
		entry(elf.DT_RUNPATH, at(o.run))
	}
	if o.rpath != "" {
		entry(elf.DT_RPATH, at(o.rpath))
	}
	entry(elf.DT_NULL, 0)
	names := "\x00.dynamic\x00.dynstr\x00.shstrtab\x00"
	start := uint64(headers + programHeader)
	loader := o.loader + "\x00"
	dynamicAt := start + uint64(len(loader))
	textsAt := dynamicAt + uint64(dynamic.Len())
	namesAt := textsAt + uint64(len(texts))
	sectionsAt := namesAt + uint64(len(names))
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) }
	h := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(o.machine), Version: 1, Phoff: headers, Shoff: sectionsAt, Ehsize: headers, Phentsize: programHeader,
		Phnum: 1, Shentsize: section, Shnum: 4, Shstrndx: 3}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	put(h)
	kind := elf.PT_INTERP
	if o.loader == "" {
		kind = elf.PT_NULL
	}
	put(elf.Prog64{Type: uint32(kind), Off: start, Filesz: uint64(len(loader)), Memsz: uint64(len(loader))})
	b.WriteString(loader)
	b.Write(dynamic.Bytes())
	b.WriteString(texts)
	b.WriteString(names)
	put(elf.Section64{})
	put(elf.Section64{Name: 1, Type: uint32(elf.SHT_DYNAMIC), Off: dynamicAt, Size: uint64(dynamic.Len()), Link: 2, Entsize: 16})
	put(elf.Section64{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: textsAt, Size: uint64(len(texts))})
	put(elf.Section64{Name: 18, Type: uint32(elf.SHT_STRTAB), Off: namesAt, Size: uint64(len(names))})
	return b.String()
}

// cacheOf is an ld.so.cache with libraries.
func cacheOf(files map[string]string) string {
	const header, size = 48, 24
	var entries, texts bytes.Buffer
	base := header + size*len(files)
	for library, file := range files {
		at := base + texts.Len()
		texts.WriteString(library + "\x00" + file + "\x00")
		for _, v := range []uint32{0x303, uint32(at), uint32(at + len(library) + 1), 0, 0, 0} {
			_ = binary.Write(&entries, binary.LittleEndian, v)
		}
	}
	var b bytes.Buffer
	b.WriteString("glibc-ld.so.cache1.1")
	_ = binary.Write(&b, binary.LittleEndian, []uint32{uint32(len(files)), uint32(texts.Len()), 0, 0, 0, 0, 0})
	b.Write(entries.Bytes())
	b.Write(texts.Bytes())
	return b.String()
}
