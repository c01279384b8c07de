#!/usr/bin/env bash
# Writes the CRDs of Chaos Mesh from the API that its programs are built with (versions.env), at most once for the same versions. Those in its
# chart are some days older than that API: they would drop a field that its webhooks set, after which no NetworkChaos can be updated.
#
# usage: crds.sh [--path]     prints the directory
#   --path   say where it is or would be; write nothing
# Inputs: versions.env, the controller-gen of hack/tools, the Go module proxy; ASSAY_CACHE.
# Output: ASSAY_CACHE/chaos-mesh/crds-KEY. Changes nothing else on the machine but Go's caches.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"
# shellcheck source=versions.env
. "$hack/without-registry/chaos-mesh/versions.env"

key=$(cd "$hack" && LC_ALL=C sha256sum without-registry/chaos-mesh/versions.env without-registry/chaos-mesh/crds.sh tools/go.mod | sha256sum | cut -c1-12)
out=$ASSAY_CACHE/chaos-mesh/crds-$key
export CGO_ENABLED=0

module_dir() { go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'; }

write() {
	local generator
	generator=$(GOFLAGS=-buildvcs=false go -C "$hack/tools" tool -n controller-gen)
	cp -r "$(module_dir "github.com/chaos-mesh/chaos-mesh/api@$CHAOS_MESH_API_VERSION")" "$tmp/api"
	chmod -R u+w "$tmp/api"
	cd "$tmp/api"
	GOFLAGS='-buildvcs=false -mod=mod' "$generator" crd:ignoreUnexportedFields=true paths=./v1alpha1 output:crd:dir="$tmp/crds"
}

if [[ ${1:-} != --path && ! -d $out ]]; then
	mkdir -p "$ASSAY_CACHE/chaos-mesh"
	find "$ASSAY_CACHE/chaos-mesh" -mindepth 1 -maxdepth 1 -name 'crds-*' -mtime +14 -exec rm -rf {} +
	tmp=$(mktemp -d "$ASSAY_CACHE/chaos-mesh/write.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	# In the background, because bash ignores "set -e" inside a condition.
	(write) >"$ASSAY_CACHE/chaos-mesh/crds.log" 2>&1 &
	wait $! || die "the CRDs of Chaos Mesh cannot be written: $(tail -n 5 "$ASSAY_CACHE/chaos-mesh/crds.log")"
	mv "$tmp/crds" "$out"
fi
echo "$out"
