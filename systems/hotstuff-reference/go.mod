module assay.dev/assay/systems/hotstuff-reference

go 1.26.0

require (
	assay.dev/assay/systems/driver v0.0.0
	capnproto.org/go/capnp/v3 v3.1.0-alpha.2
	github.com/cloudflare/circl v1.6.3
)

require (
	github.com/colega/zeropool v0.0.0-20230505084239-6fb4a4f75381 // indirect
	golang.org/x/crypto v0.30.0 // indirect
	golang.org/x/sync v0.7.0 // indirect
	golang.org/x/sys v0.28.0 // indirect
)

replace assay.dev/assay/systems/driver => ../driver
