// Package buildinfo tells the version of this build of Assay.
package buildinfo

import "runtime/debug"

// version is set by the linker:
//
//	-ldflags "-X assay.dev/assay/operator/internal/text/buildinfo.version=v0.2.0"
//
// `make images VERSION=v0.2.0` does so. It is empty in a build from a checkout.
var version string

// Version returns the version of the program: the version that the linker set, or else that of its
// module. A build from a checkout has "(devel)": only the digest of its image tells such builds
// apart.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
