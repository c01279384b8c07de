#!/usr/bin/env bash
# Provides the version before this one, for tests of upgrades: its tree, and its manager and agent in every node of the kind cluster.
#
# usage: eval "$(hack/cluster/version-before.sh)"
# Inputs:  BEFORE, a commit or a tag (the last tag v*; without one, the commit below); CLUSTER, ASSAY_CACHE; the repository's history.
# Output:  export ASSAY_VERSION_BEFORE=FOLDER, which has tree/ and images/.
# Changes: ASSAY_CACHE/before, images in the nodes' containerd. Other versions in that folder are deleted.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# No version has been released. This commit is of 26 November 2026, before spec.recurrence.
unreleased=26459b8d

before=${BEFORE:-$(git -C "$repo" describe --tags --abbrev=0 --match 'v*' 2>/dev/null || echo "$unreleased")}
commit=$(git -C "$repo" rev-parse --verify --quiet "$before^{commit}") ||
	die "this clone has no $before, from which an upgrade would begin: fetch the repository's history"
out=$ASSAY_CACHE/before/$commit
mkdir -p "$out"
exec 9>"$out/.lock"
flock 9
if [[ ! -e $out/images/index.tsv ]]; then
	say "building manager and agent of $before (some minutes)"
	find "$ASSAY_CACHE/before" -mindepth 1 -maxdepth 1 ! -name "$commit" -exec rm -rf {} +
	rm -rf "$out/tree" "$out/images"
	mkdir -p "$out/tree" "$out/images"
	git -C "$repo" archive "$commit" | tar -x -C "$out/tree"
	(cd "$out/tree/hack/images" && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go run -trimpath . -list images.txt -root "$out/tree" -out "$out/images" assay/manager assay/agent >&2)
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

for node in $(docker ps --filter "label=io.x-k8s.kind.cluster=$CLUSTER" --format '{{.Names}}' | sort); do in_node "$node"; done
printf 'export ASSAY_VERSION_BEFORE=%q\n' "$out"
