package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Paths in the machine.
const (
	jobPath    = "/job"
	testsDir   = "/tests"
	modulesDir = "/modules"
)

// dir is the program's working directory in the machine, with its testdata.
func (p program) dir() string { return testsDir + "/" + p.Name }

func (p program) path() string { return p.dir() + "/program" }

// writeInitramfs writes the whole file system of the machine, reproducibly.
func writeInitramfs(path, modules string, programs []program) error {
	files, err := modulesInOrder(modules, wanted)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buffered := bufio.NewWriter(f)
	archive := &cpio{w: buffered}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, dir := range []string{"/dev", testsDir, modulesDir} {
		archive.dir(dir)
	}
	// Before /dev is mounted, the kernel opens the first for process 1. Go's runtime opens the
	// second if a standard stream is missing.
	archive.device("/dev/console", 5, 1)
	archive.device("/dev/null", 1, 3)
	archive.copy("/init", self)
	there := map[string]bool{}
	for _, p := range programs {
		if there[p.Name] {
			continue
		}
		there[p.Name] = true
		archive.dir(p.dir())
		archive.copy(p.path(), p.file)
		if err := addTestdata(archive, p); err != nil {
			return err
		}
	}
	for i, file := range files {
		archive.copy(fmt.Sprintf("%s/%03d-%s", modulesDir, i, filepath.Base(file)), file)
	}
	content, err := json.Marshal(programs)
	if err != nil {
		return err
	}
	archive.file(jobPath, content)
	archive.end()
	return errors.Join(archive.err, buffered.Flush(), f.Close())
}

// addTestdata adds the program's testdata, if there is any, since go test runs a package's tests in
// its directory.
func addTestdata(archive *cpio, p program) error {
	source := filepath.Join(p.source, "testdata")
	err := filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(p.source, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			archive.dir(p.dir() + "/" + below)
		default:
			archive.copy(p.dir()+"/"+below, path)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// cpio writes an archive in the format "newc" of the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst.
type cpio struct {
	w     *bufio.Writer
	inode int
	err   error // the first error; after it, nothing is written
}

func (c *cpio) dir(path string)                 { c.entry(path, unix.S_IFDIR|0o755, 0, 0, nil) }
func (c *cpio) file(path string, data []byte)   { c.entry(path, unix.S_IFREG|0o755, 0, 0, data) }
func (c *cpio) device(path string, ma, mi uint) { c.entry(path, unix.S_IFCHR|0o600, ma, mi, nil) }
func (c *cpio) end()                            { c.entry("/TRAILER!!!", 0, 0, 0, nil) }

func (c *cpio) copy(path, from string) {
	data, err := os.ReadFile(from)
	if c.err == nil {
		c.err = err
	}
	c.file(path, data)
}

// entry writes one file. Names are relative to the root.
func (c *cpio) entry(path string, mode uint32, major, minor uint, data []byte) {
	c.inode++
	name := path[1:] + "\x00"
	const links, check = 1, 0
	header := "070701"
	for _, field := range []uint{uint(c.inode), uint(mode), 0, 0, links, 0, uint(len(data)), 0, 0, major, minor, uint(len(name)), check} {
		header += fmt.Sprintf("%08X", field)
	}
	c.write([]byte(header + name))
	c.write(data)
}

// write writes and pads to four bytes.
func (c *cpio) write(data []byte) {
	for _, part := range [][]byte{data, make([]byte, -len(data)&3)} {
		if c.err == nil {
			_, c.err = c.w.Write(part)
		}
	}
}
