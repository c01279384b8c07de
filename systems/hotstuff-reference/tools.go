//go:build tools

// Package tools keeps the generator of internal/wire in go.mod.
package tools

import _ "capnproto.org/go/capnp/v3/capnpc-go"
