// Writes the project's container images. A module of its own, without any
// dependency, so that images can be built while the root module is in pieces.
module assay.dev/assay/hack/images

go 1.26.0
