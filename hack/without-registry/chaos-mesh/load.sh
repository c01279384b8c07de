#!/usr/bin/env bash
# Builds the image assay/chaos-mesh:dev and loads it into every node of the kind cluster.
#
# usage: load.sh
# Inputs:  this directory, CLUSTER, ASSAY_CACHE; see programs.sh and tools.sh.
# Changes: .work/chaos-mesh, ASSAY_CACHE, images in the nodes' containerd.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

make_work
mkdir -p "$work/chaos-mesh"
programs=$("$hack/without-registry/chaos-mesh/programs.sh")
tools=$("$hack/without-registry/chaos-mesh/tools.sh")
(cd "$hack/without-registry/chaos-mesh" && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go run -trimpath . -programs "$programs" -tools "$tools" -out "$work/chaos-mesh" >&2)
"$hack/images/load.sh" cluster "$work/chaos-mesh"
