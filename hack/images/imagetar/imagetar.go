// Package imagetar writes container images into one tar archive, without a
// container daemon and byte for byte reproducibly: no clock, no file times, no
// map order.
//
// The archive is an OCI image layout (oci-layout, index.json, blobs/sha256) that
// also carries the manifest.json of `docker save`:
//
//	oci-layout        -> read by `ctr images import`, `kind load image-archive`, skopeo
//	index.json           one entry for each name of each image
//	manifest.json     -> read by `docker load` of every version
//	blobs/sha256/...     layers, configs and manifests, each once
//
// What it does not do: pull, unpack, or merge layers of a base image. Every
// image starts from scratch.
package imagetar

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
)

const (
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaTar      = "application/vnd.oci.image.layer.v1.tar"
	mediaTarZstd  = "application/vnd.oci.image.layer.v1.tar+zstd"
)

// A blob is content with its digest; the content is in memory or in a file.
type blob struct {
	digest string
	size   int64
	data   []byte
	file   string
}

func memBlob(b []byte) blob {
	sum := sha256.Sum256(b)
	return blob{digest: "sha256:" + hex.EncodeToString(sum[:]), size: int64(len(b)), data: b}
}

func (b blob) path() string { return "blobs/sha256/" + strings.TrimPrefix(b.digest, "sha256:") }

func (b blob) open() (io.ReadCloser, error) {
	if b.file != "" {
		return os.Open(b.file)
	}
	return io.NopCloser(bytes.NewReader(b.data)), nil
}

// A Layer is one finished layer of an image.
type Layer struct {
	blob      blob
	mediaType string
	diffID    string // digest of the uncompressed tar
}

// A LayerBuilder collects files; parent directories are added as needed.
// The first error is kept and returned by Layer or ZstdLayer.
type LayerBuilder struct {
	buf  bytes.Buffer
	tw   *tar.Writer
	seen map[string]bool
	err  error
}

// NewLayer returns an empty LayerBuilder.
func NewLayer() *LayerBuilder {
	b := &LayerBuilder{seen: map[string]bool{}}
	b.tw = tar.NewWriter(&b.buf)
	return b
}

func (b *LayerBuilder) add(h tar.Header, data []byte) {
	if b.err != nil || b.seen[h.Name] {
		return
	}
	b.parents(h.Name)
	b.seen[h.Name] = true
	h.Size, h.Format = int64(len(data)), tar.FormatGNU
	if b.err == nil {
		b.err = b.tw.WriteHeader(&h)
	}
	if b.err == nil {
		_, b.err = b.tw.Write(data)
	}
}

func (b *LayerBuilder) parents(name string) {
	if dir := path.Dir(name); dir != "." && !b.seen[dir] {
		b.add(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, nil)
	}
}

func clean(p string) string { return strings.TrimPrefix(path.Clean(p), "/") }

// Data adds a file with this content. Adding a path twice keeps the first.
func (b *LayerBuilder) Data(dst, content string, mode int64) *LayerBuilder {
	b.add(tar.Header{Typeflag: tar.TypeReg, Name: clean(dst), Mode: mode}, []byte(content))
	return b
}

// File adds a copy of the host's file src, following symbolic links.
func (b *LayerBuilder) File(dst, src string, mode int64) *LayerBuilder {
	data, err := os.ReadFile(src)
	if err != nil && b.err == nil {
		b.err = err
	}
	b.add(tar.Header{Typeflag: tar.TypeReg, Name: clean(dst), Mode: mode}, data)
	return b
}

// Link adds a symbolic link.
func (b *LayerBuilder) Link(dst, target string) *LayerBuilder {
	b.add(tar.Header{Typeflag: tar.TypeSymlink, Name: clean(dst), Linkname: target, Mode: 0o777}, nil)
	return b
}

// Dir adds a directory.
func (b *LayerBuilder) Dir(dst string, mode int64) *LayerBuilder {
	b.add(tar.Header{Typeflag: tar.TypeDir, Name: clean(dst), Mode: mode}, nil)
	return b
}

func (b *LayerBuilder) raw() ([]byte, error) {
	if b.err == nil {
		b.err = b.tw.Close()
	}
	return b.buf.Bytes(), b.err
}

// Layer finishes the layer uncompressed: quickest where the archive never
// leaves the machine, and the only form that every docker loads.
func (b *LayerBuilder) Layer() (Layer, error) {
	raw, err := b.raw()
	if err != nil {
		return Layer{}, err
	}
	bl := memBlob(raw)
	return Layer{blob: bl, mediaType: mediaTar, diffID: bl.digest}, nil
}

// ZstdLayer finishes the layer compressed by the zstd program. For containerd
// only: older docker daemons do not read it.
func (b *LayerBuilder) ZstdLayer() (Layer, error) {
	raw, err := b.raw()
	if err != nil {
		return Layer{}, err
	}
	cmd := exec.Command("zstd", "-q", "-T0", "-9", "-c")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(raw), os.Stderr
	z, err := cmd.Output()
	if err != nil {
		return Layer{}, fmt.Errorf("compress layer: %w", err)
	}
	return Layer{blob: memBlob(z), mediaType: mediaTarZstd, diffID: memBlob(raw).digest}, nil
}

// TarLayer takes an uncompressed tar file as a layer, for what is too large to
// hold in memory. The file must stay until Write has returned.
func TarLayer(file string) (Layer, error) {
	f, err := os.Open(file)
	if err != nil {
		return Layer{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return Layer{}, fmt.Errorf("read %s: %w", file, err)
	}
	d := "sha256:" + hex.EncodeToString(h.Sum(nil))
	return Layer{blob: blob{digest: d, size: n, file: file}, mediaType: mediaTar, diffID: d}, nil
}

// Config is what a container of the image runs, in the OCI field names.
type Config struct {
	User       string   `json:",omitempty"`
	Env        []string `json:",omitempty"`
	Entrypoint []string `json:",omitempty"`
	Cmd        []string `json:",omitempty"`
	StopSignal string   `json:",omitempty"`
}

// An Image has at least one full name ("docker.io/assay/agent:dev").
type Image struct {
	Names  []string
	Arch   string // GOARCH
	Layers []Layer
	Config Config
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *platform         `json:"platform,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

func (b blob) descriptor(mediaType string) descriptor {
	return descriptor{MediaType: mediaType, Digest: b.digest, Size: b.size}
}

func (im Image) build() (config, manifest blob, err error) {
	diffIDs := make([]string, len(im.Layers))
	layers := make([]descriptor, len(im.Layers))
	history := make([]map[string]string, len(im.Layers))
	for i, l := range im.Layers {
		diffIDs[i], layers[i] = l.diffID, l.blob.descriptor(l.mediaType)
		history[i] = map[string]string{"created_by": "imagetar"}
	}
	c, err := json.Marshal(map[string]any{
		"architecture": im.Arch, "os": "linux", "created": "1970-01-01T00:00:00Z",
		"config": im.Config, "history": history,
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffIDs},
	})
	if err != nil {
		return config, manifest, err
	}
	config = memBlob(c)
	m, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": mediaManifest,
		"config": config.descriptor(mediaConfig), "layers": layers,
	})
	return config, memBlob(m), err
}

// Digest is the digest of the image's manifest: the same content, the same
// digest, whatever the names.
func (im Image) Digest() (string, error) {
	_, m, err := im.build()
	return m.digest, err
}

// entry is what an archive's index says of the image under one of its names.
func (im Image) entry(manifest blob, name string) descriptor {
	d := manifest.descriptor(mediaManifest)
	d.Platform = &platform{im.Arch, "linux"}
	d.Annotations = map[string]string{
		"io.containerd.image.name":          name,
		"org.opencontainers.image.ref.name": name[strings.LastIndex(name, ":")+1:],
	}
	return d
}

// Write writes the images as one archive.
func Write(w io.Writer, images ...Image) error {
	type saved struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	var (
		blobs []blob
		have  = map[string]bool{}
		index []descriptor
		dock  []saved
	)
	keep := func(b blob) string {
		if !have[b.digest] {
			have[b.digest] = true
			blobs = append(blobs, b)
		}
		return b.path()
	}
	for _, im := range images {
		config, manifest, err := im.build()
		if err != nil {
			return err
		}
		s := saved{RepoTags: im.Names}
		for _, l := range im.Layers {
			s.Layers = append(s.Layers, keep(l.blob))
		}
		s.Config = keep(config)
		keep(manifest)
		dock = append(dock, s)
		for _, name := range im.Names {
			index = append(index, im.entry(manifest, name))
		}
	}
	idx, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": mediaIndex, "manifests": index})
	if err != nil {
		return err
	}
	man, err := json.Marshal(dock)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(w)
	for _, f := range []struct {
		name string
		b    blob
	}{{"oci-layout", memBlob([]byte(`{"imageLayoutVersion":"1.0.0"}`))}, {"index.json", memBlob(idx)}, {"manifest.json", memBlob(man)}} {
		if err := put(tw, f.name, f.b); err != nil {
			return err
		}
	}
	for _, b := range blobs {
		if err := put(tw, b.path(), b); err != nil {
			return err
		}
	}
	return tw.Close()
}

// WriteFile writes an archive through a temporary name, so that an interrupted run leaves no half
// of one.
func WriteFile(file string, images ...Image) error {
	f, err := os.Create(file + ".part")
	if err != nil {
		return err
	}
	err = Write(f, images...)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return os.Rename(f.Name(), file)
}

func put(tw *tar.Writer, name string, b blob) error {
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: b.size, Format: tar.FormatGNU}); err != nil {
		return err
	}
	r, err := b.open()
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.Copy(tw, r); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
