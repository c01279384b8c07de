package launcher

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// archive packs the regular files, directories and symbolic links under dir into a gzipped tar
// file. Names are relative to dir; times and owners are left out, so that equal files give equal
// archives.
func archive(dir, file string, limit int64) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := out.Chmod(0o644); err != nil {
		return err
	}
	bounded := &boundedWriter{w: out, left: limit}
	zip := gzip.NewWriter(bounded)
	pack := tar.NewWriter(zip)
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return addToArchive(pack, dir, path)
	})
	if err := errors.Join(err, pack.Close(), zip.Close()); err != nil {
		if bounded.full {
			return fmt.Errorf("pack %s: it takes more than %d bytes packed; make the step write less there", dir, limit)
		}
		return fmt.Errorf("pack %s: %w", dir, err)
	}
	return out.Close()
}

func addToArchive(pack *tar.Writer, dir, path string) error {
	name, err := filepath.Rel(dir, path)
	if err != nil || name == "." {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	header := &tar.Header{Name: filepath.ToSlash(name), Mode: int64(info.Mode().Perm()), Format: tar.FormatPAX}
	switch {
	case info.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	case info.Mode()&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = os.Readlink(path); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		header.Typeflag, header.Size = tar.TypeReg, info.Size()
	default:
		return nil // sockets and pipes have no content
	}
	if err := pack.WriteHeader(header); err != nil {
		return err
	}
	if header.Typeflag != tar.TypeReg {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(pack, f)
	return err
}

// boundedWriter fails once more than left bytes are written.
type boundedWriter struct {
	w    io.Writer
	left int64
	full bool
}

func (b *boundedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		b.full = true
		return 0, errors.New("the archive is full")
	}
	b.left -= int64(len(p))
	return b.w.Write(p)
}
