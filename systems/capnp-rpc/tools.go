//go:build tools

// Package tools keeps the generator of internal/message in go.mod.
package tools

import _ "capnproto.org/go/capnp/v3/capnpc-go"
