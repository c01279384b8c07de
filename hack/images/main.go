// Command images builds the container images that a list names: static Go
// binaries FROM scratch, USER 65532, nothing else but passwd and /tmp. Binaries
// are packages of this repository, or programs that hack/without-registry/node-image builds for
// the cluster anyway (program.sh provides them).
//
//	images -list images.txt -list '../../systems/*/images.txt' -root REPO -out DIR [-arch GOARCH] [-version VERSION] [IMAGE...]
//
// A list may be a pattern; what it matches is read in the order of the names. It writes into DIR
//
//	bin/<package base name>    the binaries that are packages
//	<image, / as ->.tar        one archive for each image, see package imagetar
//	<image, / as ->.cdx.json   what is in it: every Go module with its version (CycloneDX)
//	index.tsv                  name, tag, manifest digest, archive; tab-separated
//
// The tag is the start of the manifest digest, so it changes exactly when the
// content does; every image is also named :dev. An archive whose image did not
// change is not written again. The same sources give the same bytes, wherever and
// whenever they are built: the tests build twice.
//
// Images have no certificate authorities: a binary that speaks TLS to the
// outside brings its own roots (golang.org/x/crypto/x509roots/fallback).
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"assay.dev/assay/hack/images/imagetar"
)

// registry makes short names into the full ones that containerd stores.
const registry = "docker.io/"

// moduleProgram is FOLDER:PROGRAM, a program of another module, which that module builds.
var moduleProgram = regexp.MustCompile(`^(?:hack|systems)(?:/[^/:]+)+:([^/:]+)$`)

// binary is one line of a list: pkg is a package, or FOLDER:PROGRAM, or an absolute path of a file
// or directory that is there already.
type binary struct{ image, dst, pkg string }

// ready reports whether there is nothing to build.
func (b binary) ready() bool { return filepath.IsAbs(b.pkg) }

// built is the name of the program, or empty for a package.
func (b binary) built() string {
	if found := moduleProgram.FindStringSubmatch(b.pkg); found != nil {
		return found[1]
	}
	return ""
}

func main() {
	var (
		root = flag.String("root", ".", "root of the repository")
		out  = flag.String("out", "", "output directory")
		arch = flag.String("arch", runtime.GOARCH, "GOARCH of the images")
		as   = flag.String("version", "", "version that the programs say they are, as v0.2.0; default: none, since each would be another image")
	)
	var lists []string
	flag.Func("list", "file that defines images, or a pattern of such files; may be given several times", func(s string) error {
		lists = append(lists, s)
		return nil
	})
	flag.Parse()
	if err := run(lists, *root, *out, *arch, *as, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(lists []string, root, out, arch, version string, only []string) error {
	want, err := read(lists)
	if err != nil {
		return err
	}
	if want, err = choose(want, only); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(out, "bin"), 0o755); err != nil {
		return err
	}
	if err := compile(root, filepath.Join(out, "bin"), arch, version, want); err != nil {
		return err
	}
	files, err := locate(root, filepath.Join(out, "bin"), arch, want)
	if err != nil {
		return err
	}
	var rows []string
	for _, name := range names(want) {
		row, err := pack(name, out, arch, want, files)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		rows = append(rows, row)
	}
	return os.WriteFile(filepath.Join(out, "index.tsv"), []byte(strings.Join(rows, "")), 0o644)
}

// read reads all lists that the patterns match.
func read(patterns []string) ([]binary, error) {
	var all []binary
	base := map[string]string{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no file matches the list %s: %w", pattern, cmp.Or(err, os.ErrNotExist))
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			some, err := parse(bytes.NewReader(text), base)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all = append(all, some...)
		}
	}
	return all, nil
}

// parse reads a list; see images.txt for the format. base has the packages of other lists by their
// base names, and gets those of this one.
func parse(r io.Reader, base map[string]string) ([]binary, error) {
	var all []binary
	sc := bufio.NewScanner(r)
	for n := 1; sc.Scan(); n++ {
		line, _, _ := strings.Cut(sc.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 || !strings.HasPrefix(fields[1], "/") {
			return nil, fmt.Errorf("line %d: want IMAGE /PATH ./PACKAGE", n)
		}
		b := binary{fields[0], fields[1], fields[2]}
		if b.built() != "" || b.ready() {
			all = append(all, b)
			continue
		}
		if !strings.HasPrefix(b.pkg, "./") {
			return nil, fmt.Errorf("line %d: %s is neither ./PACKAGE, nor /FILE, nor a program of a module, such as hack/without-registry/node-image:etcd", n, b.pkg)
		}
		if other, ok := base[path.Base(b.pkg)]; ok && other != b.pkg {
			return nil, fmt.Errorf("line %d: %s and %s have the same base name", n, b.pkg, other)
		}
		base[path.Base(b.pkg)] = b.pkg
		all = append(all, b)
	}
	return all, sc.Err()
}

// choose leaves out images that were not asked for. It rejects a name that no list has.
func choose(all []binary, only []string) ([]binary, error) {
	if len(only) == 0 {
		return all, nil
	}
	known := names(all)
	for _, name := range only {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no list has the image %s; they have %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(b binary) bool { return !slices.Contains(only, b.image) }), nil
}

func names(bs []binary) []string {
	var ns []string
	for _, b := range bs {
		if !slices.Contains(ns, b.image) {
			ns = append(ns, b.image)
		}
	}
	return ns
}

// compile builds all packages in one go command: one load of the module graph,
// packages in parallel. The flags are those of the whole repository
// (hack/make/cluster.mk), because other flags would be another build cache.
func compile(root, bin, arch, version string, bs []binary) error {
	bs = slices.DeleteFunc(slices.Clone(bs), func(b binary) bool { return b.built() != "" || b.ready() })
	if len(bs) == 0 {
		return nil
	}
	abs, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	args := []string{"build", "-trimpath", "-ldflags", linkerFlags(version), "-o", abs + "/"}
	for _, b := range bs {
		if !slices.Contains(args, b.pkg) {
			args = append(args, b.pkg)
		}
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=-buildvcs=false")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// linkerFlags stamp the version into package buildinfo.
func linkerFlags(version string) string {
	flags := "-s -w"
	if version != "" {
		flags += " -X assay.dev/assay/operator/internal/text/buildinfo.version=" + version
	}
	return flags
}

// locate finds the file of every binary, by its package or program; what
// another module has to build for it is built now.
func locate(root, bin, arch string, bs []binary) (map[string]string, error) {
	files := map[string]string{}
	for _, b := range bs {
		if b.ready() {
			files[b.pkg] = b.pkg
			continue
		}
		if b.built() == "" {
			files[b.pkg] = filepath.Join(bin, path.Base(b.pkg))
			continue
		}
		cmd := exec.Command(filepath.Join(root, "hack", "images", "program.sh"), b.pkg)
		cmd.Stderr, cmd.Env = os.Stderr, append(os.Environ(), "GOARCH="+arch)
		file, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: program.sh %s: %w", b.image, b.pkg, err)
		}
		files[b.pkg] = strings.TrimSpace(string(file))
	}
	return files, nil
}

func pack(name, out, arch string, bs []binary, files map[string]string) (row string, err error) {
	base, err := imagetar.NewLayer().
		Data("/etc/passwd", "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n", 0o644).
		Data("/etc/group", "root:x:0:\nnonroot:x:65532:\n", 0o644).
		Dir("/tmp", 0o1777).
		Layer()
	if err != nil {
		return "", err
	}
	im := imagetar.Image{Arch: arch, Layers: []imagetar.Layer{base}, Config: imagetar.Config{User: "65532:65532"}}
	for _, b := range bs {
		if b.image != name {
			continue
		}
		if im.Config.Entrypoint == nil {
			im.Config.Entrypoint = []string{b.dst}
		}
		l, err := layer(b.dst, files[b.pkg])
		if err != nil {
			return "", err
		}
		im.Layers = append(im.Layers, l)
	}
	digest, err := im.Digest()
	if err != nil {
		return "", err
	}
	if err := writeSBOM(filepath.Join(out, strings.ReplaceAll(name, "/", "-")+".cdx.json"), name, digest, contents(name, bs, files)); err != nil {
		return "", err
	}
	tag := strings.TrimPrefix(digest, "sha256:")[:12]
	im.Names = []string{registry + name + ":" + tag, registry + name + ":dev"}
	file := strings.ReplaceAll(name, "/", "-") + ".tar"
	row = fmt.Sprintf("%s\t%s\t%s\t%s\n", name, tag, digest, file)
	state := "unchanged"
	if !unchanged(filepath.Join(out, file), filepath.Join(out, "index.tsv"), row) {
		state = "written"
		if err := imagetar.WriteFile(filepath.Join(out, file), im); err != nil {
			return "", err
		}
	}
	fmt.Printf("%-16s %s:%s %s\n", name, name, tag, state)
	return row, nil
}

// layer holds one binary, or a tree of files with their modes and symbolic links. It holds
// directories that are there only by the files in them, with the mode that these get.
func layer(dst, src string) (imagetar.Layer, error) {
	l := imagetar.NewLayer()
	if info, err := os.Stat(src); err != nil || !info.IsDir() {
		return l.File(dst, src, 0o755).Layer()
	}
	err := filepath.WalkDir(src, func(file string, entry os.DirEntry, err error) error {
		name := path.Join(dst, strings.TrimPrefix(file, src))
		if err != nil || entry.IsDir() {
			return errors.Join(err, addDir(l, name, file, entry))
		}
		if entry.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(file)
			l.Link(name, target)
			return err
		}
		info, err := entry.Info()
		if err == nil {
			l.File(name, file, modeOf(info))
		}
		return err
	})
	if err != nil {
		return imagetar.Layer{}, err
	}
	return l.Layer()
}

// addDir adds a directory that is empty or closed, or whose files only their owners may remove.
func addDir(l *imagetar.LayerBuilder, name, dir string, entry os.DirEntry) error {
	if entry == nil || name == "/" {
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	below, err := os.ReadDir(dir)
	if err == nil && (len(below) == 0 || modeOf(info) != 0o755) {
		l.Dir(name, modeOf(info))
	}
	return err
}

// modeOf is a mode as archives have it.
func modeOf(info os.FileInfo) int64 {
	mode := int64(info.Mode().Perm())
	for bit, is := range map[int64]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if info.Mode()&is != 0 {
			mode |= bit
		}
	}
	return mode
}

// contents are the binaries of an image: where they are in it, and the files that they come from.
func contents(name string, bs []binary, files map[string]string) []content {
	var cs []content
	for _, b := range bs {
		if b.image == name {
			cs = append(cs, content{path: b.dst, file: files[b.pkg]})
		}
	}
	return cs
}

func unchanged(archive, index, row string) bool {
	if _, err := os.Stat(archive); err != nil {
		return false
	}
	old, err := os.ReadFile(index)
	return err == nil && strings.Contains(string(old), row)
}
