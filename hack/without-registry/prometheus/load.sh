#!/usr/bin/env bash
# Builds the images of images.txt and loads them into every node of the kind cluster.
#
# usage: load.sh
# Inputs:  this directory, CLUSTER, ASSAY_CACHE.
# Changes: .work/prometheus, images in the nodes' containerd.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

make_work
mkdir -p "$work/prometheus"
(cd "$hack/images" && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go run -trimpath . -list ../without-registry/prometheus/images.txt -root "$repo" -out "$work/prometheus" >&2)
"$hack/images/load.sh" cluster "$work/prometheus"
