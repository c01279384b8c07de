#!/usr/bin/env bash
# Builds the image assay/hats:dev from the artifact's source and loads it into every node of the kind
# cluster.
#
# usage: load.sh
# Inputs:  SOURCE (a clone of the artifact, or a directory of clones: build.sh says which),
#          CLUSTER, ASSAY_CACHE.
# Changes: .work/hats, images in the nodes' containerd.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

make_work
mkdir -p "$work/hats"
[[ -z ${SOURCE:-} ]] || SOURCE=$(cd "$SOURCE" && pwd)
export SOURCE=${SOURCE:-}
(cd "$hack/images" && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go run -trimpath . -list ../../systems/hats/images.txt -root "$repo" -out "$work/hats" >&2)
"$hack/images/load.sh" cluster "$work/hats"
