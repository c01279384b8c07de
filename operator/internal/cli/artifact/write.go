package artifact

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	"time"

	"assay.dev/assay/operator/internal/analysis/report/artifact"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/cli/session"
)

// archiveFile is an archive of images on this machine.
type archiveFile struct {
	artifact.Archive
	path string
	size int64
}

// findArchives returns the archives of a folder that hold an image of the bundle's Systems, or the
// image of Assay's agent.
func findArchives(folder string, data []byte) ([]archiveFile, error) {
	kept, err := bundle.Open(data)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{artifact.AgentImage: true}
	for name, text := range kept.Files {
		if strings.HasPrefix(name, bundle.SystemsFolder) {
			if err := artifact.ImagesOf(text, func(image string) { names[image] = true }); err != nil {
				return nil, fmt.Errorf("bundle: %s: %w", name, err)
			}
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, session.NamedFile(err)
	}
	var all []archiveFile
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".tar" {
			continue
		}
		file := filepath.Join(folder, e.Name())
		images, err := imagesIn(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		wanted := func(name string) bool {
			return slices.ContainsFunc(slices.Collect(maps.Keys(names)), func(n string) bool { return artifact.SameImage(n, name) })
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(images)), wanted) {
			continue
		}
		sum, size, err := sumOf(file)
		if err != nil {
			return nil, err
		}
		all = append(all, archiveFile{artifact.Archive{Name: e.Name(), SHA256: sum, Images: images}, file, size})
	}
	return all, nil
}

// imagesIn reads the names of the images of an archive, with the digests of their configuration. If
// the archive is an OCI layout, it also reads the digests of their manifests.
func imagesIn(file string) (map[string][]string, error) {
	f, err := os.Open(file) // #nosec G304 -- the user names the folder
	if err != nil {
		return nil, err
	}
	defer f.Close()
	images := map[string][]string{}
	for entries := tar.NewReader(f); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return images, nil
		}
		if err != nil {
			return nil, fmt.Errorf("is no archive of images: %w", err)
		}
		switch h.Name {
		case "manifest.json":
			err = readManifest(entries, images)
		case "index.json":
			err = readIndex(entries, images)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

func readManifest(r io.Reader, images map[string][]string) error {
	var manifest []struct {
		Config   string
		RepoTags []string
	}
	if err := json.NewDecoder(r).Decode(&manifest); err != nil {
		return err
	}
	for _, m := range manifest {
		for _, tag := range m.RepoTags {
			images[tag] = append(images[tag], "sha256:"+strings.TrimSuffix(path.Base(m.Config), ".json"))
		}
	}
	return nil
}

func readIndex(r io.Reader, images map[string][]string) error {
	var index struct {
		Manifests []struct {
			Digest      string            `json:"digest"`
			Annotations map[string]string `json:"annotations"`
		} `json:"manifests"`
	}
	if err := json.NewDecoder(r).Decode(&index); err != nil {
		return err
	}
	for _, m := range index.Manifests {
		for _, key := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
			if name := m.Annotations[key]; strings.Contains(name, ":") {
				images[name] = append(images[name], m.Digest)
			}
		}
	}
	return nil
}

func sumOf(file string) (sum string, size int64, err error) {
	f, err := os.Open(file) // #nosec G304 -- the user names the folder
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// madeFile of a folder has the checksums of the files as the command wrote them. SHA256SUMS has the
// checksums of the files as they are, also after changes by the authors.
const madeFile = ".made.sums"

// changedIn returns the files of a folder that changed since the command wrote them.
func changedIn(folder string) (map[string][]byte, error) {
	text, err := os.ReadFile(filepath.Join(folder, madeFile)) // #nosec G304 -- the user names the folder
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	changed := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("%s has the line %q, which is not a checksum and a name", madeFile, line)
		}
		data, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if is := sha256.Sum256(data); err == nil && hex.EncodeToString(is[:]) != sum {
			changed[name] = data
		}
	}
	return changed, nil
}

// writeFolder writes the files. It refuses to replace a file that another program has written.
func writeFolder(s *session.Session, folder string, made artifact.Made, archives []archiveFile) error {
	if _, err := os.Stat(filepath.Join(folder, madeFile)); errors.Is(err, fs.ErrNotExist) {
		for _, f := range made.Files {
			if _, err := os.Stat(filepath.Join(folder, filepath.FromSlash(f.Name))); err == nil && f.Name != artifact.AboutFile {
				return fmt.Errorf("%s in %s was not written by this command; name a new folder with -o", f.Name, folder)
			}
		}
	}
	for _, f := range made.Files {
		file := filepath.Join(folder, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { // #nosec G301 -- an artifact is for others to read
			return err
		}
		if theirs, isNew := strings.CutSuffix(f.Name, artifact.New); isNew {
			fmt.Fprintf(s.Err, "%s was changed since: it stays, and the new one is %s\n", theirs, f.Name)
		}
		mode := fs.FileMode(0o644)
		if f.Script {
			mode = 0o755
		}
		if err := os.WriteFile(file, f.Data, mode); err != nil {
			return err
		}
		if err := os.Chmod(file, mode); err != nil { // #nosec G302 -- an artifact is for others to read
			return err
		}
	}
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(made.Sums)) {
		fmt.Fprintf(&sums, "%s  %s\n", made.Sums[name], name)
	}
	if err := os.WriteFile(filepath.Join(folder, madeFile), []byte(sums.String()), 0o644); err != nil { // #nosec G306 -- an artifact is for others to read
		return err
	}
	for _, a := range archives {
		if err := copyFile(a.path, filepath.Join(folder, artifact.ImagesFolder, a.Name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { // #nosec G301 -- an artifact is for others to read
		return err
	}
	in, err := os.Open(from) // #nosec G304 -- the user names the folder
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644) // #nosec G302,G304 -- an artifact is for others to read
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// writeTar writes the files into an archive. It writes under a temporary name and renames the file
// at the end, so that the name never stands for half an archive. The same artifact gives the same
// bytes.
func writeTar(name string, made artifact.Made, archives []archiveFile) error {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".part-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // the name is gone once the file is renamed
	gz := gzip.NewWriter(file)
	w := tar.NewWriter(gz)
	written := addToTar(w, made, archives)
	if err := errors.Join(written, w.Close(), gz.Close(), file.Chmod(0o644), file.Close()); err != nil { // #nosec G302 -- an artifact is for others to read
		return err
	}
	return os.Rename(file.Name(), name)
}

func addToTar(w *tar.Writer, made artifact.Made, archives []archiveFile) error {
	header := func(name string, mode, size int64) error {
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(made.Name+"-artifact", name), Mode: mode, Size: size, ModTime: time.Unix(0, 0)})
	}
	for _, f := range made.Files {
		mode := int64(0o644)
		if f.Script {
			mode = 0o755
		}
		if err := header(f.Name, mode, int64(len(f.Data))); err != nil {
			return err
		}
		if _, err := w.Write(f.Data); err != nil {
			return err
		}
	}
	for _, a := range archives {
		if err := header(artifact.ImagesFolder+a.Name, 0o644, a.size); err != nil {
			return err
		}
		in, err := os.Open(a.path)
		if err != nil {
			return err
		}
		_, copied := io.Copy(w, in)
		if err := errors.Join(copied, in.Close()); err != nil {
			return err
		}
	}
	return nil
}
