#!/usr/bin/env bash
# Provides what controller-runtime's envtest starts: kube-apiserver and etcd
# (and kubectl), of the same version and out of the same build as the cluster's.
#
# They are always built, also where the node image is pulled: that image does
# not hold them as programs (they are inside further images).
#
# usage: export KUBEBUILDER_ASSETS=$(hack/cluster/envtest.sh)
# Output: the directory, in ASSAY_CACHE. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

out=$(recipe_out)
if [[ ! -x $out/bin/hyper || ! -x $out/bin/etcd ]]; then
	say "building kube-apiserver and etcd (some 5 minutes with empty Go caches)"
	recipe_build hyper etcd
fi
mkdir -p "$out/envtest"
ln -sfn ../bin/etcd "$out/envtest/etcd"
for name in kube-apiserver kubectl; do ln -sfn ../bin/hyper "$out/envtest/$name"; done
echo "$out/envtest"
