module assay.dev/assay/systems/bls

go 1.26.0

require (
	assay.dev/assay/systems/driver v0.0.0
	github.com/cloudflare/circl v1.6.2
)

require (
	golang.org/x/crypto v0.30.0 // indirect
	golang.org/x/sys v0.28.0 // indirect
)

replace assay.dev/assay/systems/driver => ../driver
