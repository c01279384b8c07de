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
	// Cache holds unpacked images, by digest.
	Cache string
	// Sources are places to look for images, in order. A place is an archive (docker save), an OCI
	// layout, or a folder with such.
	Sources []string
	Clock   clock.PassiveClock

	mu     sync.Mutex
	found  map[string]*image
	locked map[string]*sync.Mutex // by reference
}

// image is an unpacked image.
type image struct {
	root, id string
	config   v1.Config
}

// Have finds and unpacks an image. Its error says why the image cannot be had.
func (i *Images) Have(ctx context.Context, ref string) error {
	_, err := i.get(ctx, ref)
	return err
}

// get returns an unpacked image. Several pods of a trial may ask for the same image at the same
// time.
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

// mostImages is how many images stay unpacked: those that were used last.
const mostImages = 40

// used records the use of an image, and removes the images that were unused for the longest time.
// Only one run at a time uses the machine, and it uses few images.
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

// find looks for an image in the sources, then in docker if it is installed, then in the image's
// registry.
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

// inSource looks for an image in a folder, or in one archive or layout. Nil: it is not there.
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

// inArchive looks for an image in an archive that docker save wrote.
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

// refName is the annotation of a layout that has the name of an image.
const refName = "org.opencontainers.image.ref.name"

// inLayout looks for an image in an OCI image layout.
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

// fromDocker asks docker for an image, if docker is installed. Nil: docker does not have it.
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

// unpacking is the prefix of folders whose images are not completely unpacked.
const unpacking = "unpacking-"

// unpackOnce unpacks an image, unless it is unpacked. The folder gets its name when it is complete.
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

// unpackLayer writes a layer over the layers below it. A hard link may lead to a file of a lower
// layer.
func unpackLayer(layer v1.Layer, dir string) error {
	content, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer content.Close()
	return unpack(tar.NewReader(content), dir)
}

// unpack writes files, and removes the files that whiteouts name. It writes nothing outside of the
// folder, even if links lead there. Files and directories get the times of the archive, as in a
// cluster, since make compares times.
func unpack(in *tar.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	own := map[string]bool{}       // files of this layer, which its own whiteouts must not remove
	dirs := map[string]time.Time{} // times of directories, set at the end since files in them change these
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

// setTimes sets the times of the directories that still exist.
func setTimes(root *os.Root, dirs map[string]time.Time) error {
	for at, modified := range dirs {
		if err := root.Chtimes(at, time.Time{}, modified); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set the time of %s: %w", at, err)
		}
	}
	return nil
}

// Prefix and name of the files by which a layer removes files of lower layers.
const (
	whiteout = ".wh."
	opaque   = whiteout + ".opq"
)

// inside turns a path of an archive into a path from the root of the image.
func inside(name string) string {
	return path.Clean(strings.TrimPrefix(path.Clean("/"+name), "/"))
}

// removeBelow removes the files that lower layers have in a folder.
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
		return nil // the runtime makes devices
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

// specialBits returns setuid, setgid and sticky in the form of package fs.
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
