module assay.dev/assay/systems/capnp-rpc

go 1.26.0

require (
	assay.dev/assay/systems/driver v0.0.0
	capnproto.org/go/capnp/v3 v3.1.0-alpha.2
)

require (
	github.com/colega/zeropool v0.0.0-20230505084239-6fb4a4f75381 // indirect
	golang.org/x/sync v0.7.0 // indirect
)

replace assay.dev/assay/systems/driver => ../driver
