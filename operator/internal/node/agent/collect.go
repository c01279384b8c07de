package agent

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// mostCollected files of a pod are packed, and largestCollected bytes of each.
	mostCollected    = 64
	largestCollected = 64 << 20
	// collectedEntry bounds what a file takes in the pack beside its content.
	collectedEntry = 2 << 10
	// collectedRest is the room for the list of files that are left out.
	collectedRest = 4 << 10
)

// collection makes the pack of a pod's files.
type collection struct {
	out *os.Root // OutDir
	// own reports whether a file of it is one of Assay's, which patterns never match.
	own  func(path string) bool
	left int64 // bytes that the pack may still take
	pack *tar.Writer
	// leftOut has a line for each file that is not in the pack.
	leftOut []string
}

// collect writes the pack of the files that the directive asks for to a file of OutDir. It returns
// false when there is nothing to pack.
func collect(out *os.Root, d *protocol.Directive, file string) (some bool, err error) {
	c := &collection{out: out, left: d.Collect.Limit - collectedRest, own: ownFiles(d)}
	to, err := out.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return false, err
	}
	zip := gzip.NewWriter(to)
	c.pack = tar.NewWriter(zip)
	tails := streams(d)
	if d.Collect.LogTail > 0 {
		names := slices.Sorted(maps.Keys(tails))
		for i, name := range names {
			err := c.addEnd(name, protocol.LogsFolder+name, d.Collect.LogTail, c.left/int64(len(names)-i))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				c.leave(name, err)
			} else if err == nil {
				some = true
			}
		}
	}
	for i, name := range c.matching(d.Collect.Patterns) {
		err := error(nil)
		if i >= mostCollected {
			err = fmt.Errorf("%d files of a pod are collected at most", mostCollected)
		} else {
			err = c.add(name, protocol.CollectedFolder+name, 0, c.left)
		}
		if err != nil {
			c.leave(name, err)
		}
		some = true
	}
	if len(c.leftOut) > 0 {
		text := []byte(strings.Join(c.leftOut, ""))
		err = errors.Join(c.pack.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: protocol.LeftOutFile, Mode: 0o644, Size: int64(len(text))}), write(c.pack, text))
	}
	return some, errors.Join(err, c.pack.Close(), zip.Close(), to.Close())
}

func write(w io.Writer, text []byte) error {
	_, err := w.Write(text)
	return err
}

// leave notes that a file is left out, if there is room for the note.
func (c *collection) leave(name string, err error) {
	if line := fmt.Sprintf("%s: %v\n", name, err); len(c.leftOut) < 2*mostCollected {
		c.leftOut = append(c.leftOut, line[:min(len(line), 256)])
	}
}

// matching returns the paths that match a pattern, each once, in order.
func (c *collection) matching(patterns []string) []string {
	found := map[string]bool{}
	for _, p := range patterns {
		names, err := fs.Glob(c.out.FS(), p)
		if err != nil {
			c.leave(p, err)
		}
		for _, name := range names {
			if info, err := c.out.Stat(name); !c.own(name) && (err != nil || !info.IsDir()) {
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// leastEnd is how many bytes of a stream's end are kept at least, if any are.
const leastEnd = 4 << 10

// addEnd packs the last bytes of a file if they fit into room. Else it halves their number until
// they fit.
func (c *collection) addEnd(name, as string, last, room int64) error {
	for wanted := last; ; last /= 2 {
		err := c.add(name, as, last, room)
		if errors.As(err, new(noRoom)) && last/2 >= leastEnd {
			continue
		}
		if err == nil && last < wanted {
			c.leave(name, fmt.Errorf("only its last %d bytes find room", last))
		}
		return err
	}
}

// noRoom says that a file does not fit.
type noRoom struct{ packed, room int64 }

// Error implements error.
func (e noRoom) Error() string {
	return fmt.Sprintf("it takes about %d bytes packed, and %d are left of those that a pod may have", e.packed, max(0, e.room))
}

// add packs a file, or its last bytes, if they fit into room.
func (c *collection) add(name, as string, last, room int64) error {
	file, err := c.out.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no file")
	}
	from, size := int64(0), info.Size()
	if last > 0 {
		from = max(0, size-last)
		size -= from
	}
	if size > largestCollected {
		return fmt.Errorf("it has %d bytes; %d are collected at most", size, int64(largestCollected))
	}
	section := io.NewSectionReader(file, from, size)
	packed, err := packedSize(section)
	if err != nil {
		return err
	}
	if packed += collectedEntry; packed > room {
		return noRoom{packed, room}
	}
	c.left -= packed
	if err := c.pack.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: as, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	if _, err := section.Seek(0, io.SeekStart); err != nil {
		return err
	}
	n, err := io.Copy(c.pack, section)
	if err == nil && n < size { // another process has cut it meanwhile
		err = write(c.pack, make([]byte, size-n))
	}
	return err
}

// packedSize is how many bytes a file takes when it is packed alone.
func packedSize(from io.Reader) (int64, error) {
	var n counted
	zip := gzip.NewWriter(&n)
	_, err := io.Copy(zip, from)
	return int64(n), errors.Join(err, zip.Close())
}

// counted counts what is written to it.
type counted int64

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	*c += counted(len(p))
	return len(p), nil
}

// streams of the containers' processes are files of OutDir.
func streams(d *protocol.Directive) map[string]bool {
	names := map[string]bool{}
	for _, c := range d.Containers {
		names[c.Name+".stdout"], names[c.Name+".stderr"] = true, true
	}
	return names
}

// ownFiles are the files in OutDir that Assay has written.
func ownFiles(d *protocol.Directive) func(path string) bool {
	names := streams(d)
	for name := range maps.Clone(names) {
		names[name+".arrivals"] = true
	}
	names[AgentLog], names[protocol.ClientResultFile], names[filepath.Base(protocol.LoadgenResultFile)] = true, true, true
	return func(path string) bool {
		first, _, _ := strings.Cut(path, "/")
		return names[path] || first == uploadFolder
	}
}
