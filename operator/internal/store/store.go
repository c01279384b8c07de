// Package store keeps results as objects: files with a key, a size and a SHA-256 that is checked
// whenever they are read back. Stores are:
//
//	Remote   one outside of the cluster, which outlives it: package s3, and others like it. An
//	         installation lists its own (registry.go).
//	Cluster  ConfigMaps of one trial, where objects wait while the remote store is down (cluster.go)
//
// Which objects there are, and where, is in layout.go and manifest.go, and for users in
// docs/reference/storage.md. Package archive decides when something is stored. Credentials are read
// from files of the manager, and are in no error, log or object.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"time"
)

// Object describes an object without its content.
type Object struct {
	// Key is relative to the store's prefix.
	Key string `json:"key"`
	// Size in bytes.
	Size int64 `json:"size"`
	// SHA256 of the content in hexadecimal.
	SHA256 string `json:"sha256"`
}

// Describe returns the Object of content under a key.
func Describe(key string, content []byte) Object {
	sum := sha256.Sum256(content)
	return Object{Key: key, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
}

// DescribeStream is Describe for content that does not fit memory.
func DescribeStream(key string, content io.Reader) (Object, error) {
	h := sha256.New()
	n, err := io.Copy(h, content)
	if err != nil {
		return Object{}, fmt.Errorf("read %s: %w", key, err)
	}
	return Object{Key: key, Size: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// Store keeps objects. Errors that say something about the store itself are Problems.
type Store interface {
	// Put returns when the object is stored and its checksum has been confirmed. An object that is
	// there already under the key is replaced.
	Put(ctx context.Context, o Object, content io.ReadSeeker) error
	// Get opens an object. Reading fails, at the latest at the end, if the content does not match
	// its checksum. ErrNotFound: there is none.
	Get(ctx context.Context, key string) (Object, io.ReadCloser, error)
	// List returns the objects whose keys begin with a prefix, in the order of their keys.
	List(ctx context.Context, prefix string) ([]Object, error)
}

// Remote is a store outside of the cluster.
type Remote interface {
	Store
	// Confirm finds out whether an object is stored as described. It is a Problem if not.
	Confirm(ctx context.Context, want Object) error
	// Location of a key, for people and for kubectl assay fetch: a URL.
	Location(key string) string
	// PresignPut allows its bearer to put one object of this size and checksum, for a time. So pods
	// store their files themselves, without credentials.
	PresignPut(ctx context.Context, o Object, lasts time.Duration) (Presigned, error)
	// BindsContent reports whether a presigned request is valid for one content only. Else it is
	// valid for any content of the same size.
	BindsContent() bool
	// CA of the server, in PEM; empty: it is not one of its own.
	CA() string
}

// Presigned is a request that its bearer may make once or more until it expires, for one object and
// no other.
type Presigned struct {
	Method, URL string
	Header      map[string]string
}

// ReadAll reads an object of limit bytes at most, checked.
func ReadAll(ctx context.Context, s Store, key string, limit int64) (Object, []byte, error) {
	o, content, err := s.Get(ctx, key)
	if err != nil {
		return Object{}, nil, err
	}
	defer content.Close()
	if o.Size > limit {
		return Object{}, nil, fmt.Errorf("object %s has %d bytes; %d are read at most", key, o.Size, limit)
	}
	data, err := io.ReadAll(content)
	return o, data, err
}

// checked is the content of an object. Its end is an error if the content differs from the
// description.
type checked struct {
	io.ReadCloser
	want Object
	hash hash.Hash
	got  int64
}

// Checked returns content that a store gives for an object. Reading fails, at the latest at the
// end, if the content differs from the description.
func Checked(o Object, content io.ReadCloser) io.ReadCloser {
	return &checked{ReadCloser: content, want: o, hash: sha256.New()}
}

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.hash.Write(p[:n])
	c.got += int64(n)
	if err != io.EOF { // it is returned as it is, by its contract
		return n, err
	}
	if sum := hex.EncodeToString(c.hash.Sum(nil)); c.got != c.want.Size || sum != c.want.SHA256 {
		return n, Corrupted(c.want.Key, fmt.Errorf("%d bytes with SHA-256 %s, want %d with %s", c.got, sum, c.want.Size, c.want.SHA256))
	}
	return n, io.EOF
}
