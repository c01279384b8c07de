// The image of Chaos Mesh for tests. The programs in it are built by programs.sh from a module of their own.
module assay.dev/assay/hack/without-registry/chaos-mesh

go 1.26.0

require assay.dev/assay/hack/images v0.0.0

replace assay.dev/assay/hack/images => ../../images
