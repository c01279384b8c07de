#!/usr/bin/env bash
# Builds the image assay/s3:dev and loads it into every node of the kind cluster.
#
# usage: load.sh
# Inputs:  this directory, CLUSTER, ASSAY_CACHE.
# Changes: .work/s3, images in the nodes' containerd.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

make_work
mkdir -p "$work/s3"
(cd "$hack/images" && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go run -trimpath . -list ../without-registry/s3/images.txt -root "$repo" -out "$work/s3" >&2)
"$hack/images/load.sh" cluster "$work/s3"
