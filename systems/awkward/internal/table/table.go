// Package table makes a table on a disk, like the bulk load of a database. Its rows have keys in
// order and are in files of limited size, with a checksum of all files. Two tables with the same
// number of rows are equal byte by byte.
package table

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// RowSize of every row, its key of 32 bytes included.
	RowSize = 1024
	// fileRows is how many rows a file has at most.
	fileRows  = 64 << 10
	sumFile   = "SUM"
	shardFile = "SHARD"
)

// Load writes a table of so many rows into a directory.
func Load(dir string, rows int) error { return load(dir, rows, 0) }

// LoadShards writes a table of so many rows for each shard, into directories shard-0, shard-1 and
// so on. No two have a row in common.
func LoadShards(dir string, rows, shards int) error {
	for i := range shards {
		one := filepath.Join(dir, fmt.Sprint("shard-", i))
		err := os.Mkdir(one, 0o755)
		if err == nil {
			err = load(one, rows, i*rows)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(one, shardFile), []byte(fmt.Sprintln(i)), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// load writes the table of some rows, from the first one on.
func load(dir string, rows, first int) error {
	keys := make([][sha256.Size]byte, rows)
	for i := range keys {
		keys[i] = sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(first+i)))
	}
	slices.SortFunc(keys, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	for number := 0; len(keys) > 0; number++ {
		n := min(fileRows, len(keys))
		if err := writeFile(filepath.Join(dir, fmt.Sprintf("rows-%05d", number)), keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	sum, err := sumOf(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sumFile), []byte(sum+"\n"), 0o600)
}

func writeFile(name string, keys [][sha256.Size]byte) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 1<<20)
	value := make([]byte, RowSize-sha256.Size)
	for _, key := range keys {
		if _, err := rand.NewChaCha8(key).Read(value); err != nil {
			return err
		}
		if _, err := out.Write(append(key[:], value...)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// files of a table, in order.
func files(dir string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "rows-*"))
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("there is no table in %s", dir)
	}
	slices.Sort(names)
	return names, err
}

func sumOf(dir string) (string, error) {
	names, err := files(dir)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		n, err := io.Copy(sum, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}
		fmt.Fprintln(sum, filepath.Base(name), n)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Verify fails unless the table is byte by byte as loaded.
func Verify(dir string) error {
	want, err := os.ReadFile(filepath.Join(dir, sumFile))
	if err != nil {
		return err
	}
	got, err := sumOf(dir)
	if err != nil {
		return err
	}
	if got != strings.TrimSpace(string(want)) {
		return fmt.Errorf("the table in %s has the sum %s, and was loaded with %s", dir, got, strings.TrimSpace(string(want)))
	}
	return nil
}

// VerifyShard fails unless a directory has the table of a shard, as loaded, and nothing else.
func VerifyShard(dir string, shard int) error {
	text, err := os.ReadFile(filepath.Join(dir, shardFile))
	if err != nil {
		return err
	}
	if got, want := strings.TrimSpace(string(text)), fmt.Sprint(shard); got != want {
		return fmt.Errorf("%s has shard %s, and not %s", dir, got, want)
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range there {
		if name := e.Name(); name != sumFile && name != shardFile && !strings.HasPrefix(name, "rows-") {
			return fmt.Errorf("%s has more than shard %d: %s", dir, shard, name)
		}
	}
	return Verify(dir)
}

// Spoil changes a byte of every file, like a database that writes. After that, Verify fails for
// this table.
func Spoil(dir string) error {
	names, err := files(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		var b [1]byte
		_, err = f.ReadAt(b[:], 0)
		b[0]++
		_, wrong := f.WriteAt(b[:], 0)
		if err := errors.Join(err, wrong, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
