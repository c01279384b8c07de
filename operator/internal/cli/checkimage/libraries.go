package checkimage

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// elfProgram checks an ELF program's architecture, its loader and its libraries.
func (c *checker) elfProgram(f *finding, name string, e *entry) {
	file, err := elf.NewFile(c.tree.reader(e))
	if err != nil {
		f.lacks("%s is a damaged ELF file: %v", name, err)
		return
	}
	if !c.ofPlatform(f, name, file) {
		return
	}
	for _, p := range file.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		b := make([]byte, min(p.Filesz, 4096))
		if _, err := p.ReadAt(b, 0); err != nil {
			f.lacks("%s names a loader that cannot be read: %v", name, err)
			return
		}
		loader := string(bytes.TrimRight(b, "\x00"))
		if err := c.runnable(f, loader); err != nil {
			f.lacks("%s, the dynamic loader of %s, %v", loader, name, err)
		} else {
			f.loader = loader
		}
	}
	c.libraries(f, name, e, nil)
}

func (c *checker) ofPlatform(f *finding, name string, file *elf.File) bool {
	want, known := machines[c.platform.Architecture]
	if known && file.Machine != want {
		f.lacks("%s is of another architecture: %s, and the nodes are %s", name, file.Machine, c.platform.Architecture)
		return false
	}
	return true
}

// library is an object that the loader loads, with the paths on which the loader looks for its
// libraries.
type library struct {
	path         string
	file         *elf.File
	rpath, run   []string
	loadedRpaths []string // of the objects that lead to it
}

// libraries follows DT_NEEDED from an object, breadth first, as the dynamic loader does: each name
// once. seen are names that were found before.
func (c *checker) libraries(f *finding, name string, e *entry, seen map[string]bool) {
	root, err := c.object(name, e)
	if err != nil {
		f.lacks("%s %v", name, err)
		return
	}
	if seen == nil {
		seen = map[string]bool{}
	}
	where := c.loaderPaths(f, root.file)
	for queue := []*library{root}; len(queue) > 0; queue = queue[1:] {
		from := queue[0]
		needed, err := from.file.ImportedLibraries()
		if err != nil {
			f.lacks("%s: its list of libraries cannot be read: %v", from.path, err)
			continue
		}
		for _, need := range needed {
			if seen[need] {
				continue
			}
			seen[need] = true
			found := c.findLibrary(from, need, where)
			if found == nil {
				f.lacks("%s, which %s needs, %s", need, from.path, c.whyNot(need, from, where))
				continue
			}
			f.libraries++
			queue = append(queue, found)
		}
	}
}

func (c *checker) object(name string, e *entry) (*library, error) {
	file, err := elf.NewFile(c.tree.reader(e))
	if err != nil {
		return nil, fmt.Errorf("is no library: %w", err)
	}
	l := &library{path: name, file: file}
	list := func(tag elf.DynTag) (out []string) {
		values, err := file.DynString(tag)
		if err != nil {
			return nil
		}
		for _, v := range values {
			for dir := range strings.SplitSeq(v, ":") {
				out = append(out, expand(dir, name)...)
			}
		}
		return out
	}
	l.rpath, l.run = list(elf.DT_RPATH), list(elf.DT_RUNPATH)
	return l, nil
}

// expand puts the object's directory in the place of $ORIGIN, and both names of the directory of
// libraries in the place of $LIB.
func expand(dir, object string) []string {
	dir = strings.NewReplacer("${ORIGIN}", path.Dir(object), "$ORIGIN", path.Dir(object), "${PLATFORM}", "x86_64", "$PLATFORM", "x86_64").Replace(dir)
	if !path.IsAbs(dir) {
		return nil
	}
	if !strings.Contains(dir, "$LIB") && !strings.Contains(dir, "${LIB}") {
		return []string{dir}
	}
	var out []string
	for _, lib := range []string{"lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"} {
		out = append(out, strings.NewReplacer("${LIB}", lib, "$LIB", lib).Replace(dir))
	}
	return out
}

// loaderPaths are the directories in which the loader looks for libraries of any object:
// directories of the environment, of the cache, and of the loader itself.
type loaderPaths struct {
	environment []string
	cache       map[string][]string
	standard    []string
	configured  []string // of ld.so.conf, which only ldconfig reads
}

// triplets of Debian's directories of libraries.
var triplets = map[elf.Machine]string{elf.EM_X86_64: "x86_64-linux-gnu", elf.EM_AARCH64: "aarch64-linux-gnu", elf.EM_386: "i386-linux-gnu",
	elf.EM_ARM: "arm-linux-gnueabihf", elf.EM_PPC64: "powerpc64le-linux-gnu", elf.EM_S390: "s390x-linux-gnu", elf.EM_RISCV: "riscv64-linux-gnu"}

func (c *checker) loaderPaths(f *finding, file *elf.File) loaderPaths {
	var p loaderPaths
	for _, dir := range strings.FieldsFunc(c.environment(f)["LD_LIBRARY_PATH"], func(r rune) bool { return r == ':' || r == ';' }) {
		if path.IsAbs(dir) {
			p.environment = append(p.environment, dir)
		}
	}
	if strings.Contains(path.Base(f.loader), "musl") {
		p.standard = []string{"/lib", "/usr/local/lib", "/usr/lib"}
		base := strings.TrimSuffix(path.Base(f.loader), ".so.1") // ld-musl-x86_64
		if own := strings.FieldsFunc(c.tree.text("/etc/"+base+".path"), func(r rune) bool { return r == ':' || r == '\n' }); len(own) > 0 {
			p.standard = own
		}
		return p
	}
	if t := triplets[file.Machine]; t != "" {
		p.standard = append(p.standard, "/lib/"+t, "/usr/lib/"+t)
	}
	p.standard = append(p.standard, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
	p.cache = cached(c.tree.text("/etc/ld.so.cache"))
	p.configured = c.configured("/etc/ld.so.conf", 0)
	return p
}

// configured returns the directories named in a file of ld.so.conf and in the files that it
// includes.
func (c *checker) configured(file string, depth int) (out []string) {
	const deepest = 8
	for line := range strings.Lines(c.tree.text(file)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		pattern, include := strings.CutPrefix(line, "include ")
		switch {
		case include && depth < deepest:
			if pattern = strings.TrimSpace(pattern); !path.IsAbs(pattern) {
				pattern = path.Join(path.Dir(file), pattern)
			}
			for _, name := range slices.Sorted(maps.Keys(c.tree.entries)) {
				if ok, err := path.Match(pattern, name); err == nil && ok {
					out = append(out, c.configured(name, depth+1)...)
				}
			}
		case path.IsAbs(line):
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// cached reads the cache that ldconfig writes, in the format of glibc 2.2 and later. A header of 48
// bytes has the number of entries. Each entry has 24 bytes and says where its name and its path
// are. The texts follow.
func cached(cache string) map[string][]string {
	const magic, header, size = "glibc-ld.so.cache1.1", 48, 24
	at := strings.Index(cache, magic)
	if at < 0 || len(cache) < at+header {
		return nil
	}
	cache = cache[at:]
	number := func(at int) int { return int(binary.LittleEndian.Uint32([]byte(cache[at : at+4]))) }
	text := func(at int) string {
		if at < 0 || at >= len(cache) {
			return ""
		}
		s, _, _ := strings.Cut(cache[at:], "\x00")
		return s
	}
	out := map[string][]string{}
	for i := range number(len(magic)) {
		entry := header + i*size
		if entry+size > len(cache) {
			break
		}
		name := text(number(entry + 4))
		out[name] = append(out[name], text(number(entry+8)))
	}
	return out
}

// findLibrary looks in the places where the loader looks, in the same order. Like the loader, it
// passes over a file of another architecture or class.
func (c *checker) findLibrary(from *library, need string, where loaderPaths) *library {
	if strings.Contains(need, "/") {
		return c.candidate(need, from)
	}
	var dirs []string
	if len(from.run) == 0 { // DT_RUNPATH switches DT_RPATH off
		dirs = append(dirs, from.rpath...)
		dirs = append(dirs, from.loadedRpaths...)
	}
	dirs = slices.Concat(dirs, where.environment, from.run)
	for _, dir := range dirs {
		if l := c.candidate(path.Join(dir, need), from); l != nil {
			return l
		}
	}
	for _, file := range where.cache[need] {
		if l := c.candidate(file, from); l != nil {
			return l
		}
	}
	for _, dir := range where.standard {
		if l := c.candidate(path.Join(dir, need), from); l != nil {
			return l
		}
	}
	return nil
}

func (c *checker) candidate(name string, from *library) *library {
	_, e, err := c.tree.find(name)
	if err != nil || e.kind != tar.TypeReg {
		return nil
	}
	l, err := c.object(name, e)
	if err != nil || l.file.Machine != from.file.Machine || l.file.Class != from.file.Class {
		return nil
	}
	l.loadedRpaths = slices.Concat(from.rpath, from.loadedRpaths)
	return l
}

// whyNot names the place of a library that is in the image and that the loader does not find.
func (c *checker) whyNot(need string, from *library, where loaderPaths) string {
	for _, dir := range where.configured {
		if c.candidate(path.Join(dir, need), from) != nil {
			return fmt.Sprintf("is in %s, which ld.so.conf names and ld.so.cache does not: run ldconfig when the image is made", dir)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.tree.entries)) {
		if path.Base(name) != need {
			continue
		}
		if c.candidate(name, from) != nil {
			return fmt.Sprintf("is at %s, where the loader does not look", name)
		}
		if _, e, err := c.tree.find(name); err == nil && e.kind == tar.TypeReg {
			return fmt.Sprintf("is at %s, and of another architecture", name)
		}
	}
	return "is not in the image"
}
