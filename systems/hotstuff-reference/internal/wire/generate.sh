#!/usr/bin/env bash
# Generates wire.capnp.go from wire.capnp, with Debian's compiler of schemas (capnproto) and the
# generator of the module's own version.
. "$(dirname "${BASH_SOURCE[0]}")/../../../../hack/cluster/lib.sh"

cd "$(dirname "${BASH_SOURCE[0]}")"
packages capnp=capnproto
std=$(go list -m -f '{{.Dir}}' capnproto.org/go/capnp/v3)/std
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
go build -o "$programs/" capnproto.org/go/capnp/v3/capnpc-go
PATH=$programs:$PATH capnp compile -I "$std" -ogo wire.capnp
