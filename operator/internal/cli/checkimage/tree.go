package checkimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// tree is an index of an image's files after all its layers. The contents of all files are in one
// scratch file, so that no name in the image becomes a file name on this machine.
type tree struct {
	entries  map[string]*entry // by clean absolute path
	config   v1.Config
	platform v1.Platform
	scratch  string
	content  *os.File
	end      int64 // of the content
}

// entry is a file, directory or link.
type entry struct {
	kind     byte // of tar
	mode     fs.FileMode
	uid, gid int
	link     string
	offset   int64
	size     int64
}

// maxLinks is how many symbolic links a path may lead over, as in Linux.
const maxLinks = 40

func newTree(image v1.Image, scratch string) (*tree, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read its configuration: %w", err)
	}
	t := &tree{entries: map[string]*entry{"/": {kind: tar.TypeDir, mode: 0o755}}, config: config.Config, scratch: scratch,
		platform: v1.Platform{OS: config.OS, Architecture: config.Architecture, Variant: config.Variant}}
	if t.content, err = os.OpenFile(filepath.Join(scratch, "content"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read its layers: %w", err), t.content.Close())
	}
	for i, layer := range layers {
		if err := t.add(layer); err != nil {
			return nil, errors.Join(fmt.Errorf("read layer %d of %d: %w", i+1, len(layers), err), t.content.Close())
		}
	}
	return t, nil
}

func (t *tree) close() {
	_ = t.content.Close()
	_ = os.RemoveAll(t.scratch) // of the system's directory for such files
}

// Marks of a layer, by the OCI image specification: .wh.NAME removes NAME of the layers below.
// .wh..wh..opq removes all that the layers below have in its directory.
const (
	removed = ".wh."
	emptied = ".wh..wh..opq"
)

// add puts a layer on top of the layers before it. A hard link is another name of an entry, whether
// it comes before or after that entry in the archive.
func (t *tree) add(layer v1.Layer) error {
	r, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer r.Close()
	archive := tar.NewReader(r)
	own, links := map[string]*entry{}, map[string]string{}
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := clean(h.Name)
		dir, base := path.Split(name)
		switch {
		case base == emptied:
			t.remove(path.Clean(dir), false)
		case strings.HasPrefix(base, removed):
			t.remove(path.Join(dir, strings.TrimPrefix(base, removed)), true)
		case h.Typeflag == tar.TypeLink:
			links[name] = clean(h.Linkname)
		default:
			e := &entry{kind: h.Typeflag, mode: h.FileInfo().Mode(), uid: h.Uid, gid: h.Gid, link: h.Linkname}
			if h.Typeflag == tar.TypeReg {
				if e.size, err = io.Copy(t.content, archive); err != nil {
					return err
				}
				e.offset, t.end = t.end, t.end+e.size
			}
			own[name] = e
		}
	}
	for name, e := range own {
		t.put(name, e)
	}
	for name, target := range links {
		if e := t.entries[target]; e != nil {
			t.put(name, e)
		}
	}
	return nil
}

// put sets an entry. A file replaces a directory of the same name, with all that is in it. put also
// adds parent directories, which layers may leave out.
func (t *tree) put(name string, e *entry) {
	if before := t.entries[name]; before != nil && before.kind == tar.TypeDir && e.kind != tar.TypeDir {
		t.remove(name, false)
	}
	t.entries[name] = e
	for dir := path.Dir(name); t.entries[dir] == nil; dir = path.Dir(dir) {
		t.entries[dir] = &entry{kind: tar.TypeDir, mode: 0o755}
	}
}

// remove deletes all that is in a directory, and the directory if itself is true.
func (t *tree) remove(name string, itself bool) {
	below := strings.TrimSuffix(name, "/") + "/"
	maps.DeleteFunc(t.entries, func(n string, _ *entry) bool { return n != "/" && (itself && n == name || strings.HasPrefix(n, below)) })
}

func clean(name string) string { return path.Clean("/" + name) }

// errMissing says that a path leads nowhere.
var errMissing = errors.New("is not in the image")

// find follows a path, and all links in it, as the kernel does. It returns where the path leads.
func (t *tree) find(name string) (string, *entry, error) {
	at, rest := "/", strings.Split(strings.Trim(clean(name), "/"), "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		e := t.entries[next]
		switch {
		case e == nil:
			if next != clean(name) {
				return "", nil, fmt.Errorf("%w: %s, where it leads, is not there", errMissing, next)
			}
			return "", nil, errMissing
		case e.kind == tar.TypeSymlink:
			if links++; links > maxLinks {
				return "", nil, errors.New("leads in circles: too many symbolic links")
			}
			if path.IsAbs(e.link) {
				at = "/"
			}
			rest = append(strings.Split(strings.Trim(e.link, "/"), "/"), rest...)
		case e.kind != tar.TypeDir && len(rest) > 0:
			return "", nil, fmt.Errorf("cannot exist: %s is no directory", next)
		default:
			at = next
		}
	}
	return at, t.entries[at], nil
}

// reader returns a reader of a regular file.
func (t *tree) reader(e *entry) *io.SectionReader {
	return io.NewSectionReader(t.content, e.offset, e.size)
}

// text returns the text of a small file. Empty: there is none.
func (t *tree) text(name string) string {
	const most = 1 << 20
	_, e, err := t.find(name)
	if err != nil || e.kind != tar.TypeReg || e.size > most {
		return ""
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, t.reader(e)); err != nil {
		return ""
	}
	return b.String()
}

// mayExecute reports whether a process of a user may execute the file. Trials run with the group
// that the pods of a trial share.
func (e *entry) mayExecute(user int64) bool {
	switch {
	case user == 0:
		return e.mode&0o111 != 0
	case int64(e.uid) == user:
		return e.mode&0o100 != 0
	case e.gid == sharedGroup:
		return e.mode&0o010 != 0
	}
	return e.mode&0o001 != 0
}

// sharedGroup is the group that the processes of a trial's pods have.
const sharedGroup = 65532

// closedDirectory returns a directory on the way to the file that the user may not enter, or "" if
// there is none.
func (t *tree) closedDirectory(file string, user int64) string {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if e := t.entries[dir]; user != 0 && e != nil && !e.mayExecute(user) {
			return dir
		}
		if dir == "/" {
			return ""
		}
	}
}

// sorted returns all paths. A directory comes before the files in it.
func (t *tree) sorted() []string { return slices.Sorted(maps.Keys(t.entries)) }
