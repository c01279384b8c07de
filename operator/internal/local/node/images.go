package node

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"k8s.io/utils/clock"
)

// Images finds images and unpacks them once.
type Images struct {
	// Cache holds what is unpacked, by digest.
	Cache string
	// Sources are folders with archives (docker save) or OCI layouts, or one of these, in the order
	// in which they are asked.
	Sources []string
	Clock   clock.PassiveClock

	mu     sync.Mutex
	found  map[string]*image
	locked map[string]*sync.Mutex // by reference
}

// image is one that is unpacked.
type image struct {
	root, id string
	config   v1.Config
}

// Have an image here, unpacked, or say why it cannot be had.
func (i *Images) Have(ctx context.Context, ref string) error {
	_, err := i.get(ctx, ref)
	return err
}

// get returns an image, unpacked. Several pods of a trial ask for one at the same time.
func (i *Images) get(ctx context.Context, ref string) (*image, error) {
	i.mu.Lock()
	if i.locked == nil {
		i.locked, i.found = map[string]*sync.Mutex{}, map[string]*image{}
	}
	if i.locked[ref] == nil {
		i.locked[ref] = &sync.Mutex{}
	}
	lock := i.locked[ref]
	i.mu.Unlock()
	lock.Lock()
	defer lock.Unlock()
	i.mu.Lock()
	known := i.found[ref]
	i.mu.Unlock()
	if known != nil {
		return known, nil
	}
	made, err := i.make(ctx, ref)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.found[ref] = made
	return made, nil
}

func (i *Images) make(ctx context.Context, ref string) (*image, error) {
	img, cleanUp, err := i.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer cleanUp()
	id, err := img.ConfigName()
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w", ref, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w", ref, err)
	}
	root := filepath.Join(i.Cache, strings.ReplaceAll(id.String(), ":", "-"))
	if err := unpackOnce(img, root); err != nil {
		return nil, fmt.Errorf("unpack image %s: %w", ref, err)
	}
	if err := i.used(root); err != nil {
		return nil, fmt.Errorf("bound the unpacked images: %w", err)
	}
	return &image{root: root, id: id.String(), config: config.Config}, nil
}

// mostImages stay unpacked: those that were used last.
const mostImages = 40

// used notes the use of an image, and removes the images that were unused for the longest time.
// Only one run at a time uses the machine, and it uses few.
func (i *Images) used(root string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.Clock.Now()
	if err := os.Chtimes(root, now, now); err != nil {
		return err
	}
	entries, err := os.ReadDir(i.Cache)
	if err != nil || len(entries) <= mostImages {
		return err
	}
	var all []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !strings.HasPrefix(e.Name(), unpacking) {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, old := range all[min(mostImages, len(all)):] {
		if err := os.RemoveAll(filepath.Join(i.Cache, old.Name())); err != nil {
			return err
		}
	}
	return nil
}

// find an image in the sources, then in docker, if that is here, then in its registry.
func (i *Images) find(ctx context.Context, ref string) (v1.Image, func(), error) {
	nothing := func() {}
	tag, err := name.ParseReference(ref)
	if err != nil {
		return nil, nothing, fmt.Errorf("image %q is no name of an image: %w", ref, err)
	}
	for _, source := range i.Sources {
		img, err := inSource(source, tag)
		if err != nil {
			return nil, nothing, err
		}
		if img != nil {
			return img, nothing, nil
		}
	}
	if img, cleanUp := fromDocker(ctx, ref, tag); img != nil {
		return img, cleanUp, nil
	}
	img, err := remote.Image(tag, remote.WithContext(ctx))
	if err != nil {
		folders := "no folder, as none was named or found"
		if len(i.Sources) > 0 {
			folders = "none of " + strings.Join(i.Sources, ", ")
		}
		return nil, nothing, fmt.Errorf("image %s is in %s, docker does not have it, and its registry does not give it: %w", ref, folders, err)
	}
	return img, nothing, nil
}

// inSource looks into a folder, or into one archive or layout; nil: it is not there.
func inSource(source string, ref name.Reference) (v1.Image, error) {
	info, err := os.Stat(source)
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for images: %w", err)
	case !info.IsDir():
		return inArchive(source, ref)
	case exists(filepath.Join(source, "index.json")):
		return inLayout(source, ref)
	}
	entries, err := os.ReadDir(source)
	if err != nil {
		return nil, fmt.Errorf("look for images: %w", err)
	}
	for _, e := range entries {
		at := filepath.Join(source, e.Name())
		var img v1.Image
		switch {
		case e.IsDir() && exists(filepath.Join(at, "index.json")):
			img, err = inLayout(at, ref)
		case !e.IsDir() && filepath.Ext(e.Name()) == ".tar":
			img, err = inArchive(at, ref)
		}
		if err != nil || img != nil {
			return img, err
		}
	}
	return nil, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// inArchive looks into one that docker save wrote.
func inArchive(path string, ref name.Reference) (v1.Image, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil {
		return nil, fmt.Errorf("%s is no archive of images: %w", path, err)
	}
	for _, d := range manifest {
		for _, t := range d.RepoTags {
			tag, err := name.NewTag(t)
			if err != nil || tag.Name() != ref.Name() {
				continue
			}
			img, err := tarball.ImageFromPath(path, &tag)
			if err != nil {
				return nil, fmt.Errorf("read image %s of %s: %w", t, path, err)
			}
			return img, nil
		}
	}
	return nil, nil
}

// refName is where a layout says the name of an image.
const refName = "org.opencontainers.image.ref.name"

// inLayout looks into an OCI image layout.
func inLayout(dir string, ref name.Reference) (v1.Image, error) {
	at, err := layout.FromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("read the image layout %s: %w", dir, err)
	}
	index, err := at.ImageIndex()
	if err != nil {
		return nil, fmt.Errorf("read the image layout %s: %w", dir, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read the image layout %s: %w", dir, err)
	}
	for _, d := range manifest.Manifests {
		tag, err := name.ParseReference(d.Annotations[refName])
		if err != nil || tag.Name() != ref.Name() {
			continue
		}
		return index.Image(d.Digest)
	}
	return nil, nil
}

// fromDocker asks docker, where it is, for an image; nil: it has none.
func fromDocker(ctx context.Context, ref string, tag name.Reference) (v1.Image, func()) {
	nothing := func() {}
	if _, err := exec.LookPath("docker"); err != nil {
		return nil, nothing
	}
	file, err := os.CreateTemp("", "assay-image-*.tar")
	if err != nil {
		return nil, nothing
	}
	cleanUp := func() { _ = os.Remove(file.Name()) }
	_ = file.Close()
	if err := exec.CommandContext(ctx, "docker", "save", "-o", file.Name(), ref).Run(); err != nil { // #nosec G204 -- the name of an image
		cleanUp()
		return nil, nothing
	}
	img, err := inArchive(file.Name(), tag)
	if err != nil || img == nil {
		cleanUp()
		return nil, nothing
	}
	return img, cleanUp
}

// unpacking begins the names of folders of images that are not complete.
const unpacking = "unpacking-"

// unpackOnce unpacks an image, unless it is there. Its folder has its name when it is complete.
func unpackOnce(img v1.Image, root string) error {
	if exists(root) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil { // #nosec G301 -- what images hold is for their users
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(root), unpacking)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := os.Chmod(temporary, 0o755); err != nil { // #nosec G302 -- it is the root of a file system
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		if err := unpackLayer(layer, temporary); err != nil {
			return err
		}
	}
	if err := os.Rename(temporary, root); err != nil && !exists(root) {
		return err
	}
	return nil
}

// unpackLayer writes a layer over those below it. A hard link may lead to a file of one below.
func unpackLayer(layer v1.Layer, dir string) error {
	content, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer content.Close()
	return unpack(tar.NewReader(content), dir)
}

// unpack writes files, and removes what whiteouts name. Nothing is written outside of the folder,
// whatever links say. Files and directories have the times that the archive says, as in a cluster:
// make looks at them.
func unpack(in *tar.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	own := map[string]bool{}       // what this layer has, which its own whiteouts leave alone
	dirs := map[string]time.Time{} // their times, which files in them change until the end
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return setTimes(root, dirs)
		}
		if err != nil {
			return err
		}
		at := inside(h.Name)
		switch hidden, isWhiteout := strings.CutPrefix(path.Base(at), whiteout); {
		case at == ".":
			continue
		case hidden == opaque:
			err = removeBelow(root, path.Dir(at), own)
		case isWhiteout:
			err = root.RemoveAll(path.Join(path.Dir(at), hidden))
		default:
			own[at] = true
			err = unpackOne(root, at, h, in)
			if h.Typeflag == tar.TypeDir {
				dirs[at] = h.ModTime
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// setTimes sets the times of directories that are there.
func setTimes(root *os.Root, dirs map[string]time.Time) error {
	for at, modified := range dirs {
		if err := root.Chtimes(at, time.Time{}, modified); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set the time of %s: %w", at, err)
		}
	}
	return nil
}

// Names of the files by which a layer removes what is below it.
const (
	whiteout = ".wh."
	opaque   = whiteout + ".opq"
)

// inside is a path of an archive, from the root of the image.
func inside(name string) string {
	return path.Clean(strings.TrimPrefix(path.Clean("/"+name), "/"))
}

// removeBelow removes what lower layers have in a folder.
func removeBelow(root *os.Root, dir string, own map[string]bool) error {
	entries, err := fs.ReadDir(root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if at := path.Join(dir, e.Name()); !own[at] {
			if err := root.RemoveAll(at); err != nil {
				return err
			}
		}
	}
	return nil
}

func unpackOne(root *os.Root, at string, h *tar.Header, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(at), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(h.Mode) & fs.ModePerm // #nosec G115 -- the bits of permissions only
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(at, 0o755); err != nil {
			return err
		}
	case tar.TypeReg:
		if err := write(root, at, content); err != nil {
			return err
		}
	case tar.TypeSymlink:
		_ = root.Remove(at)
		if err := root.Symlink(h.Linkname, at); err != nil {
			return err
		}
		return root.Lchown(at, h.Uid, h.Gid)
	case tar.TypeLink:
		_ = root.Remove(at)
		return root.Link(inside(h.Linkname), at)
	default:
		return nil // devices are the runtime's
	}
	if err := root.Chown(at, h.Uid, h.Gid); errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("it belongs to user %d and group %d, which this user namespace does not have: %w", h.Uid, h.Gid, err)
	} else if err != nil {
		return err
	}
	if err := root.Chmod(at, mode|specialBits(h.Mode)); err != nil {
		return err
	}
	return root.Chtimes(at, time.Time{}, h.ModTime)
}

// specialBits are setuid, setgid and sticky, as Go has them.
func specialBits(mode int64) (bits fs.FileMode) {
	for bit, is := range map[int64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			bits |= is
		}
	}
	return bits
}

func write(root *os.Root, at string, content io.Reader) error {
	_ = root.Remove(at)
	file, err := root.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
