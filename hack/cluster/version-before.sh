#!/usr/bin/env bash
# Provides the version before this one, for tests of upgrades: its tree, its images, and its plugin.
#
# usage: eval "$(hack/cluster/version-before.sh [nodes])"
#        With nodes, its manager and agent are put into every node of the kind cluster, too.
# Inputs:  BEFORE, a commit or a tag (the last tag v*; without one, the commit below); CLUSTER, ASSAY_CACHE; the repository's history; Go modules.
# Output:  export ASSAY_VERSION_BEFORE=FOLDER, which has tree/, images/, kubectl-assay, and in version what its programs say they are.
# Changes: ASSAY_CACHE/before, with nodes images in the nodes' containerd. Other versions in that folder are deleted.
# Exit status: 3 when this clone lacks the commit; 1 when anything else fails.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# No version has been released. This commit is of 26 November 2026, before spec.recurrence.
unreleased=26459b8d

before=${BEFORE:-$(git -C "$repo" describe --tags --abbrev=0 --match 'v*' 2>/dev/null || echo "$unreleased")}
commit=$(git -C "$repo" rev-parse --verify --quiet "$before^{commit}") || {
	say "error: this clone has no $before, from which an upgrade would begin: fetch the repository's history"
	exit 3
}
out=$ASSAY_CACHE/before/$commit
mkdir -p "$out"
exec 9>"$out/.lock"
flock 9
if [[ ! -e $out/version ]]; then
	say "building manager, agent and plugin of $before (some minutes)"
	find "$ASSAY_CACHE/before" -mindepth 1 -maxdepth 1 ! -name "$commit" -exec rm -rf {} +
	rm -rf "$out/tree" "$out/images"
	mkdir -p "$out/tree" "$out/images"
	git -C "$repo" archive "$commit" | tar -x -C "$out/tree"
	version=v0.0.0-${commit:0:12}
	export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath"
	(cd "$out/tree/hack/images" && go run . -list images.txt -root "$out/tree" -out "$out/images" -version "$version" assay/manager assay/agent >&2)
	(cd "$out/tree" && go build -ldflags "-X assay.dev/assay/operator/internal/text/buildinfo.version=$version" -o "$out/kubectl-assay" ./operator/cmd/kubectl-assay >&2)
	echo "$version" >"$out/version"
fi

# in_node NODE: the images under their own tags. The name :dev stays that of this version's images.
in_node() {
	local name tag archive own
	while IFS=$'\t' read -r name tag _ archive; do
		docker exec "$1" ctr -n k8s.io images ls -q "name==docker.io/$name:$tag" | grep -q . && continue
		own=$(awk -F '\t' -v name="$name" '$1 == name { print $2 }' "$work/images/index.tsv")
		[[ -n $own ]] || die "this version's $name is not built: make deploy"
		docker exec -i "$1" ctr -n k8s.io images import --all-platforms --snapshotter overlayfs - <"$out/images/$archive" >&2
		docker exec "$1" ctr -n k8s.io images tag --force "docker.io/$name:$own" "docker.io/$name:dev" >&2
	done <"$out/images/index.tsv"
}

[[ ${1-} != nodes ]] || for node in $(docker ps --filter "label=io.x-k8s.kind.cluster=$CLUSTER" --format '{{.Names}}' | sort); do in_node "$node"; done
printf 'export ASSAY_VERSION_BEFORE=%q\n' "$out"
