package archive

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Form is how a bundle is compressed.
type Form struct {
	// Ending of the name of such a file. The first is the one that we give.
	endings []string
	// magic bytes that such a file begins with.
	magic []byte
	// sorted says whether like files stand together.
	sorted   bool
	compress func(io.Writer) (io.WriteCloser, error)
	open     func(io.Reader) (io.ReadCloser, error)
}

// The forms. Every tar reads Gzip. Zstd takes just over half the bytes, and tar needs the program
// zstd for it.
var (
	Zstd = &Form{endings: []string{".tar.zst"}, magic: []byte{0x28, 0xb5, 0x2f, 0xfd}, sorted: true, compress: newZstdWriter, open: newZstdReader}
	Gzip = &Form{endings: []string{".tar.gz", ".tgz"}, magic: []byte{0x1f, 0x8b}, compress: newGzipWriter, open: newGzipReader}
)

var forms = []*Form{Zstd, Gzip}

// window is how far back zstd finds a text again. It spans the bundles of most experiments.
const window = 64 << 20

func newGzipWriter(w io.Writer) (io.WriteCloser, error) {
	return gzip.NewWriterLevel(w, gzip.BestCompression)
}

func newGzipReader(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }

// newZstdWriter compresses on one processor, so that the same files give the same bytes.
func newZstdWriter(w io.Writer) (io.WriteCloser, error) {
	return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
}

func newZstdReader(r io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(2*window))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// Ending of the names of files in this form.
func (f *Form) Ending() string { return f.endings[0] }

// FormOf is the form of a file with this name; nil: the name is not that of a bundle.
func FormOf(name string) *Form {
	_, form := Cut(name)
	return form
}

// Cut cuts the ending of a bundle from its name. nil: the name is not that of a bundle.
func Cut(name string) (stem string, form *Form) {
	for _, f := range forms {
		for _, ending := range f.endings {
			if stem, ok := strings.CutSuffix(name, ending); ok {
				return stem, f
			}
		}
	}
	return name, nil
}

// Sniff is the form of a file that begins with data; nil: it is no bundle.
func Sniff(data []byte) *Form {
	for _, f := range forms {
		if bytes.HasPrefix(data, f.magic) {
			return f
		}
	}
	return nil
}
