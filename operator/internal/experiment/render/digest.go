package render

import (
	"net"
	"strings"

	"assay.dev/assay/operator/internal/node/protocol"
)

// WithPrepared adds the prepare step's output to a pod's files.
func (p *Pod) WithPrepared(files []protocol.File) {
	p.Files = append(p.Files, files...)
	p.Directive.FilesDigest = protocol.FilesDigest(p.Files)
}

func netJoin(host, port string) string { return net.JoinHostPort(host, port) }

// flatten turns a path into a key of a ConfigMap.
func flatten(path string) string { return strings.ReplaceAll(strings.Trim(path, "/"), "/", "_") }
