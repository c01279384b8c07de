#!/usr/bin/env bash
# Pushes the images of .work/release, each as one index for all architectures, and the chart, into a
# registry. It prints the digest of each.
#
# usage: push.sh REGISTRY VERSION
# Inputs:  a login for the registry, where it wants one (crane auth login, helm registry login);
#          PLAIN_HTTP=true for a registry without TLS.
# Changes: the registry; .work/bin.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

registry=${1:?usage: push.sh REGISTRY VERSION} version=${2:?usage: push.sh REGISTRY VERSION}
plain=() insecure=()
if [[ ${PLAIN_HTTP:-false} = true ]]; then plain=(--plain-http) insecure=(--insecure); fi
eval "$("$hack/cluster/tools.sh" helm)"
make_work
cd "$repo"
export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath"
go build -modfile=hack/tools/publish/go.mod -o "$work/bin/crane" github.com/google/go-containerregistry/cmd/crane
crane=$work/bin/crane

declare -A manifests=()
for tar in "$work"/release/*.tar; do
	name=$(basename "$tar" .tar)
	image=${name%-*} arch=${name##*-}
	repository=$registry/${image/-/\/}
	"$crane" push "${insecure[@]}" "$tar" "$repository:$version-$arch" >/dev/null
	manifests[$repository]+=" -m $repository:$version-$arch"
done
for repository in "${!manifests[@]}"; do
	# shellcheck disable=SC2086 # several manifests
	"$crane" index append "${insecure[@]}" ${manifests[$repository]} -t "$repository:$version" >/dev/null
	echo "$repository:$version@$("$crane" digest "${insecure[@]}" "$repository:$version")"
done | sort
helm push "${plain[@]}" "$work/release/assay-${version#v}.tgz" "oci://$registry/charts" 2>&1 | sed -n "s#^Digest: #$registry/charts/assay:${version#v}@#p"
