#!/usr/bin/env bash
# Loads the images of .work/images into every node of the kind cluster, or into
# the local docker. What is there already (by manifest digest) is not sent again.
#
# usage: load.sh cluster | docker [DIRECTORY]
# Inputs:  DIRECTORY, by default .work/images (make images); CLUSTER.
# Changes: images named assay/... in the nodes' containerd, or in docker.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

images=${2:-$work/images}
[[ -e $images/index.tsv ]] || die "no images: make images"

# missing NODE: the archives whose image the node does not have under both names.
missing() {
	local have name tag digest archive
	have=$(docker exec "$1" ctr -n k8s.io images ls 2>/dev/null | awk '{print $1, $3}')
	while IFS=$'\t' read -r name tag digest archive; do
		if ! grep -qxF "docker.io/$name:$tag $digest" <<<"$have" || ! grep -qxF "docker.io/$name:dev $digest" <<<"$have"; then
			echo "$archive"
		fi
	done <"$images/index.tsv"
}

load_node() {
	local archives archive out
	archives=$(missing "$1")
	for archive in $archives; do
		out=$(docker exec -i "$1" ctr -n k8s.io images import --all-platforms --snapshotter overlayfs - <"$images/$archive" 2>&1) ||
			die "$1: import of $archive failed: $out"
	done
	# shellcheck disable=SC2086 # a list of words
	say "$1: $(wc -w <<<"$archives") loaded, $(($(wc -l <"$images/index.tsv") - $(wc -w <<<"$archives"))) there already"
}

case ${1:-} in
cluster)
	nodes=$(docker ps --filter "label=io.x-k8s.kind.cluster=$CLUSTER" --format '{{.Names}}' | sort)
	[[ -n $nodes ]] || die "cluster $CLUSTER does not run: make cluster"
	pids=()
	for node in $nodes; do
		load_node "$node" &
		pids+=($!)
	done
	failed=0
	for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
	[[ $failed = 0 ]] || die "not every node has the images"
	;;
docker)
	cut -f4 "$images/index.tsv" | while read -r archive; do docker load -i "$images/$archive"; done
	;;
*) die "usage: load.sh cluster|docker" ;;
esac
