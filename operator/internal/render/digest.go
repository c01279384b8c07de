package render

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net"
	"strings"

	"assay.dev/assay/operator/internal/protocol"
)

// digest names a set of files. It is never empty, so that "no files" differs from "not known yet".
func digest(files []protocol.File) string {
	h := sha256.New()
	part := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, f := range files {
		part([]byte(f.Path))
		part([]byte{byte(f.Mode >> 8), byte(f.Mode)})
		part(f.Content)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// WithPrepared adds the prepare step's output to a pod's files.
func (p *Pod) WithPrepared(files []protocol.File) {
	p.Files = append(p.Files, files...)
	p.Directive.FilesDigest = digest(p.Files)
}

func netJoin(host, port string) string { return net.JoinHostPort(host, port) }

// flatten makes a ConfigMap key of a path.
func flatten(path string) string { return strings.ReplaceAll(strings.Trim(path, "/"), "/", "_") }
