#!/usr/bin/env bash
# Provides what a lane of hack/test needs, and prints what its tests need in their environment.
#
# usage: env=$(hack/test/prepare.sh LANE) && eval "$env"
# Inputs:  those of hack/cluster/lib.sh.
# Changes on the machine: what the scripts that it calls say; Debian packages. One lane at a time.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

make_work
exec 9>"$work/.prepare.lock"
timeout 3600 flock 9 || die "another lane has been preparing for an hour"
cd "$repo"

# tools PROGRAM...: of hack/cluster/tools.sh, for this script and for the tests.
tools() {
	local line
	line=$("$hack/cluster/tools.sh" "$@")
	eval "$line"
	echo "$line"
}

# on_cluster: Assay as it is in the tree, on a kind cluster without what an interrupted run left there.
on_cluster() {
	make deploy >&2
	tools kubectl helm
	"$hack/cluster/clear.sh" >&2
	printf 'export KUBECONFIG=%q ASSAY_E2E_KUBECONFIG=%q\n' "$(kubeconfig)" "$(kubeconfig)"
}

# api_server: kube-apiserver and etcd for tests.
api_server() {
	local assets
	assets=$("$hack/cluster/envtest.sh")
	printf 'export KUBEBUILDER_ASSETS=%q\n' "$assets"
}

with_terraform() {
	tools helm kubectl
	"$hack/infra/packages.sh" >&2
	"$hack/infra/tflint.sh" >&2
	"$hack/infra/terraform.sh" >&2
	"$hack/infra/providers.sh"
}

case $1 in
unit) [[ $(id -u) != 0 ]] || packages cpio=cpio ;;
images | node-image | driver | hotstuff | cometbft | capnp-rpc | bls | postgres | fuzz | release) ;;
cassandra)
	packages mvn=maven
	"$hack/../systems/cassandra/build.sh" cassandra-rootfs >/dev/null
	;;
chart) tools helm ;;
api)
	tools helm
	"$hack/s3/build.sh" >/dev/null
	"$hack/prometheus/fetch.sh" >/dev/null
	api_server
	;;
kernel) packages ip=iproute2 nft=nftables python3=python3 ;;
vm) "$hack/vm/kernel.sh" >/dev/null ;;
terraform) with_terraform ;;
machines)
	with_terraform
	make images >&2
	;;
libvirt) "$hack/infra/terraform.sh" >&2 ;;
kind) on_cluster ;;
long)
	packages chromium=chromium
	on_cluster
	;;
owner)
	on_cluster
	for part in s3 prometheus chaos-mesh; do "$hack/$part/load.sh" >&2; done
	;;
race)
	packages gcc=gcc
	[[ -e /usr/include/stdlib.h ]] || packages missing-libc=libc6-dev
	echo 'export CGO_ENABLED=1'
	;;
browser)
	packages chromium=chromium python3=python3
	python3 -c 'import ensurepip' 2>/dev/null || packages missing-venv=python3-venv
	api_server
	;;
*) die "there is no lane $1" ;;
esac
