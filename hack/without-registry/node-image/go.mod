// The parts of the node image that need nothing but the standard library.
// hyper/ and etcd/ are modules of their own: each has its own dependency graph.
module assay.dev/assay/hack/without-registry/node-image

go 1.26.0

require assay.dev/assay/hack/images v0.0.0

replace assay.dev/assay/hack/images => ../../images
