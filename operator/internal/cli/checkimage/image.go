package checkimage

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func parsePlatform(text string) (*v1.Platform, error) {
	p, err := v1.ParsePlatform(text)
	if err == nil && (p.OS == "" || p.Architecture == "") {
		err = errors.New("give it as linux/amd64")
	}
	return p, err
}

// load reads an image from a directory, a file or a registry, and indexes its files.
func load(ctx context.Context, o Options, platform *v1.Platform) (_ *tree, err error) {
	scratch, err := os.MkdirTemp("", "check-image")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(scratch))
		}
	}()
	image, err := open(ctx, o, platform, scratch)
	if err != nil {
		return nil, err
	}
	return newTree(image, scratch)
}

func open(ctx context.Context, o Options, platform *v1.Platform, scratch string) (v1.Image, error) {
	info, err := os.Stat(o.Image)
	switch {
	case err == nil && info.IsDir():
		return fromLayout(o.Image, platform)
	case err == nil:
		return fromArchive(o.Image, o.Tag, platform, scratch)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case strings.HasPrefix(o.Image, "/"), strings.HasPrefix(o.Image, "."), strings.HasSuffix(o.Image, ".tar"), strings.HasSuffix(o.Image, "gz"):
		return nil, errors.New("there is no such file")
	}
	ref, err := name.ParseReference(o.Image)
	if err != nil {
		return nil, fmt.Errorf("it is neither a file nor a reference to a registry: %w", err)
	}
	return remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(*platform), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// fromLayout reads a directory in the OCI image layout.
func fromLayout(directory string, platform *v1.Platform) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(directory)
	if err != nil {
		return nil, fmt.Errorf("the directory is no OCI image layout: %w", err)
	}
	return fromIndex(index, platform)
}

// fromIndex takes the only image there is, or the one of the platform.
func fromIndex(index v1.ImageIndex, platform *v1.Platform) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var images []v1.Descriptor
	var has []string
	for _, d := range manifest.Manifests {
		if d.MediaType.IsIndex() && len(manifest.Manifests) == 1 {
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, err
			}
			return fromIndex(inner, platform)
		}
		if d.MediaType.IsImage() && (d.Platform == nil || d.Platform.OS != "unknown") { // that is of attestations
			images = append(images, d)
			has = append(has, fmt.Sprint(d.Platform))
		}
	}
	if len(images) == 1 {
		return index.Image(images[0].Digest)
	}
	for _, d := range images {
		if d.Platform != nil && d.Platform.Satisfies(*platform) {
			return index.Image(d.Digest)
		}
	}
	return nil, fmt.Errorf("there is no image of %s; there are %d: %s", platform, len(images), strings.Join(has, ", "))
}

// fromArchive reads what docker save writes, or an OCI image layout as tar.
func fromArchive(file, tag string, platform *v1.Platform, scratch string) (v1.Image, error) {
	file, err := unzipped(file, scratch)
	if err != nil {
		return nil, err
	}
	names, err := membersOf(file)
	if err != nil {
		return nil, fmt.Errorf("the file is no archive of an image: %w", err)
	}
	switch {
	case names["manifest.json"]:
		return fromDocker(file, tag)
	case names["oci-layout"]:
		to := filepath.Join(scratch, "layout")
		if err := unpackLayout(file, to); err != nil {
			return nil, err
		}
		return fromLayout(to, platform)
	}
	return nil, errors.New("the archive is of no image: it has neither manifest.json (docker save) nor oci-layout")
}

func fromDocker(file, tag string) (v1.Image, error) {
	var which *name.Tag
	if tag != "" {
		t, err := name.NewTag(tag)
		if err != nil {
			return nil, fmt.Errorf("--tag %s: %w", tag, err)
		}
		which = &t
	}
	opener := func() (io.ReadCloser, error) { return os.Open(file) }
	manifest, err := tarball.LoadManifest(opener)
	if err != nil {
		return nil, err
	}
	if which == nil && len(manifest) != 1 {
		var tags []string
		for _, d := range manifest {
			tags = append(tags, d.RepoTags...)
		}
		return nil, fmt.Errorf("the archive holds %d images: choose one by --tag: %s", len(manifest), strings.Join(tags, ", "))
	}
	return tarball.Image(opener, which)
}

// unzipped is the file itself or, if gzip has compressed it, what it holds.
func unzipped(file, scratch string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	if magic, _ := r.Peek(2); string(magic) != "\x1f\x8b" {
		return file, nil
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return "", err
	}
	to := filepath.Join(scratch, "archive.tar")
	return to, copyTo(to, z)
}

func copyTo(file string, r io.Reader) error {
	w, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil { //nolint:gosec // G110: the user's own image, on the user's own disk
		return errors.Join(err, w.Close())
	}
	return w.Close()
}

func eachMember(file string, do func(*tar.Header, io.Reader) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	archive := tar.NewReader(f)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(header, archive); err != nil {
			return err
		}
	}
}

func membersOf(file string) (map[string]bool, error) {
	names := map[string]bool{}
	err := eachMember(file, func(h *tar.Header, _ io.Reader) error {
		names[strings.TrimPrefix(h.Name, "./")] = true
		return nil
	})
	return names, err
}

func unpackLayout(file, to string) error {
	return eachMember(file, func(h *tar.Header, r io.Reader) error {
		if h.Typeflag != tar.TypeReg {
			return nil
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("the archive has a file outside of it, %q", h.Name)
		}
		path := filepath.Join(to, h.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return copyTo(path, r)
	})
}
