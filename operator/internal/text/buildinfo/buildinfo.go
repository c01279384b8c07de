// Package buildinfo says which build of Assay a program is.
package buildinfo

import "runtime/debug"

// version is set by the linker:
//
//	-ldflags "-X assay.dev/assay/operator/internal/text/buildinfo.version=v0.2.0"
//
// `make images VERSION=v0.2.0` does so. Empty: a build from a checkout.
var version string

// Version of the program: what the linker was given, else the version of its module. A build from a
// checkout has "(devel)", and only the digest of its image tells which one it is.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
