#!/usr/bin/env bash
# Builds the image assay/cassandra:dev and loads it into every node of the kind cluster.
#
# usage: load.sh
# Inputs:  those of build.sh; CLUSTER.
# Changes: .work/cassandra, images in the nodes' containerd.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

make_work
mkdir -p "$work/cassandra"
(cd "$hack/images" && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go run -trimpath . -list ../../systems/cassandra/images-large.txt -root "$repo" -out "$work/cassandra" >&2)
"$hack/images/load.sh" cluster "$work/cassandra"
