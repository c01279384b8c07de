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
	run cluster/clear
	printf 'export KUBECONFIG=%q ASSAY_E2E_KUBECONFIG=%q\n' "$(kubeconfig)" "$(kubeconfig)"
}

# run SCRIPT...: scripts of hack that print nothing that the tests need.
run() {
	local script
	for script; do "$hack/$script.sh" >&2; done
}

# on_this_machine: trials without a cluster, by the program and images of the tree.
on_this_machine() {
	packages runc=runc
	make local-programs >&2
	printf 'export ASSAY_LOCAL_PROGRAM=%q ASSAY_LOCAL_IMAGES=%q\n' "$work/bin/kubectl-assay" "$work/images"
}

# api_server: kube-apiserver and etcd for tests.
api_server() {
	local assets
	assets=$("$hack/cluster/envtest.sh")
	printf 'export KUBEBUILDER_ASSETS=%q\n' "$assets"
}

with_terraform() {
	tools helm kubectl
	run infra/packages infra/tflint without-registry/terraform/terraform
	"$hack/without-registry/terraform/providers.sh"
}

case $1 in
unit)
	[[ $(id -u) != 0 ]] || packages cpio=cpio ip=iproute2 ssh=openssh-client rsync=rsync tmux=tmux python3=python3 parallel-ssh=pssh
	[[ $(id -u) != 0 ]] || printf 'export ASSAY_HABITS=%q\n' "$(hack/habits/install.sh)"
	;;
images | node-image | fuzz | release) ;;
cassandra) packages mvn=maven && "$repo/systems/cassandra/build.sh" cassandra-rootfs >&2 ;;
policies) tools helm ;;
chart)
	tools helm kubectl
	run without-registry/prometheus/fetch
	;;
api)
	tools helm
	run without-registry/{s3/build,prometheus/fetch}
	api_server
	;;
hostile) api_server ;;
kernel) packages ip=iproute2 nft=nftables python3=python3 ;;
vm) run vm/kernel ;;
terraform) with_terraform ;;
machines) with_terraform && make images >&2 ;;
libvirt) run without-registry/terraform/terraform ;;
rootless)
	packages newuidmap=uidmap useradd=passwd
	on_this_machine
	;;
local) on_this_machine ;;
local-long)
	on_this_machine
	# A clone without history cannot have the version before, so that its tests are skipped. A build that fails is a failure.
	"$hack/cluster/version-before.sh" || (($? == 3))
	;;
kind-long)
	packages ssh=openssh-client
	on_cluster
	make shell-image >&2
	;;
kind | evaluations | faults | scheduling | contention | systems) on_cluster ;;
tutorial) packages chromium=chromium && on_cluster ;;
owner)
	on_cluster
	run without-registry/{s3/load,prometheus/load,chaos-mesh/load,network-policies/build}
	make shell-image >&2
	"$hack/cluster/version-before.sh" nodes
	;;
race)
	packages g++=g++ # with gcc and the C library's headers
	echo 'export CGO_ENABLED=1'
	;;
browser)
	packages chromium=chromium pdftotext=poppler-utils python3=python3 node=nodejs npm=npm
	python3 -c 'import ensurepip' 2>/dev/null || packages missing-venv=python3-venv
	api_server
	;;
paper)
	packages pdflatex=texlive-latex-recommended pdftotext=poppler-utils Rscript=r-cran-ggplot2
	kpsewhich pgfplots.sty >/dev/null || packages missing-pgfplots=texlive-pictures
	Rscript -e 'library(ggplot2)' >/dev/null 2>&1 || packages missing-ggplot2=r-cran-ggplot2
	on_this_machine
	;;
*) [[ -e systems/$1/go.mod ]] || die "there is no lane $1" ;; # a module that needs nothing
esac
