#!/usr/bin/env bash
# Provides a program that hack/node-image (etcd), hack/s3 (s3), hack/prometheus
# (prometheus and what begins so), systems/hotstuff (what begins with hotstuff),
# systems/cometbft (what begins with cometbft), systems/capnp-rpc (what begins with capnp),
# systems/bls (bls-driver), systems/postgres (postgres-node, postgres-driver; rootfs, a directory),
# or systems/cassandra (cassandra-driver; cassandra-rootfs, a directory) builds, for an image of ours
# or a test. It is the one that the cluster and envtest use, built at most once.
#
# usage: program.sh [--path] NAME     prints the file
#   --path   say where it is or would be; build nothing
# Inputs: ASSAY_CACHE, GOARCH.
# Output: ASSAY_CACHE. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

build=1
if [[ ${1:-} = --path ]]; then
	build=0
	shift
fi
name=${1:?name of a program}
case $name in
prometheus | prometheus-*)
	if [[ $build = 1 ]]; then exec "$hack/prometheus/build.sh" "$name"; else exec "$hack/prometheus/build.sh" --path "$name"; fi
	;;
hotstuff*)
	if [[ $build = 1 ]]; then exec "$hack/../systems/hotstuff/build.sh" "$name"; else exec "$hack/../systems/hotstuff/build.sh" --path "$name"; fi
	;;
cometbft*)
	if [[ $build = 1 ]]; then exec "$hack/../systems/cometbft/build.sh" "$name"; else exec "$hack/../systems/cometbft/build.sh" --path "$name"; fi
	;;
capnp-*)
	if [[ $build = 1 ]]; then exec "$hack/../systems/capnp-rpc/build.sh" "$name"; else exec "$hack/../systems/capnp-rpc/build.sh" --path "$name"; fi
	;;
bls-driver)
	if [[ $build = 1 ]]; then exec "$hack/../systems/bls/build.sh" "$name"; else exec "$hack/../systems/bls/build.sh" --path "$name"; fi
	;;
postgres-node | postgres-driver | rootfs)
	if [[ $build = 1 ]]; then exec "$hack/../systems/postgres/build.sh" "$name"; else exec "$hack/../systems/postgres/build.sh" --path "$name"; fi
	;;
cassandra-*)
	if [[ $build = 1 ]]; then exec "$hack/../systems/cassandra/build.sh" "$name"; else exec "$hack/../systems/cassandra/build.sh" --path "$name"; fi
	;;
esac
if [[ $name = s3 ]]; then
	if [[ $build = 1 ]]; then exec "$hack/s3/build.sh"; else exec "$hack/s3/build.sh" --path; fi
fi
file=$(recipe_out)/bin/$name
if [[ $build = 1 && ! -x $file ]]; then
	say "building $name (a minute with empty Go caches)"
	recipe_build "$name"
fi
echo "$file"
