package protocol

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// FilesDigest names a set of files. It is never empty, so that "no files" differs from "not known
// yet".
func FilesDigest(files []File) string {
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
