#!/usr/bin/env bash
# Builds the programs of images.txt from Go modules (operator/go.mod and server/go.mod name them), at most once for the same versions: Prometheus, its operator
# and the operator's config reloader. Only what was built is kept.
#
# Debian's Prometheus (fetch.sh), which tests on loopback use, will not do here: it was built without the discovery of targets in Kubernetes.
#
# usage: build.sh [--path] NAME     prints the file
#   NAME     prometheus, prometheus-operator, prometheus-config-reloader, or prometheus-crds: a directory with the operator's kinds
#   --path   say where it is or would be; build nothing
# Inputs: ASSAY_CACHE, GOARCH.
# Output: ASSAY_CACHE/prometheus-server, ASSAY_CACHE/prometheus-operator. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

build=1
if [[ ${1:-} = --path ]]; then
	build=0
	shift
fi
name=${1:?a name; see the head of this file}
operator=github.com/prometheus-operator/prometheus-operator

# compile FILE PACKAGE [FLAG...]: in the module that is the working directory, with the flags of the whole repository.
compile() {
	local file=$1 package=$2
	shift 2
	CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -trimpath -ldflags '-s -w' "$@" -o "$file" "$package"
}

build_server() {
	say "building Prometheus (five minutes with empty Go caches)"
	# Of its thirty ways to find targets the one that is needed here.
	compile "$1/prometheus" github.com/prometheus/prometheus/cmd/prometheus -tags remove_all_sd,enable_kubernetes_sd
}

build_operator() {
	local kind
	say "building the Prometheus operator (four minutes with empty Go caches)"
	compile "$1/prometheus-operator" $operator/cmd/operator
	compile "$1/prometheus-config-reloader" $operator/cmd/prometheus-config-reloader
	mkdir "$1/prometheus-crds"
	# Of its ten kinds those that this installation needs: the operator leaves the others alone when they are not there.
	for kind in prometheuses podmonitors servicemonitors prometheusrules probes; do
		install -m 0644 "$(go list -m -f '{{.Dir}}' $operator)/example/prometheus-operator-crd/monitoring.coreos.com_$kind.yaml" "$1/prometheus-crds/$kind.yaml"
	done
}

case $name in
prometheus) module=server ;;
prometheus-operator | prometheus-config-reloader | prometheus-crds) module=operator ;;
*) die "no $name: see the head of $0" ;;
esac
cd "$hack/without-registry/prometheus/$module"
key=$(LC_ALL=C sha256sum go.mod go.sum ../build.sh | sha256sum | cut -c1-12)
dir=$ASSAY_CACHE/prometheus-$module/$key-$(go env GOARCH)
if [[ $build = 1 && ! -d $dir ]]; then
	mkdir -p "$dir.new"
	find "$dir.new" -mindepth 1 -delete
	find "$ASSAY_CACHE/prometheus-$module" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +
	"build_$module" "$dir.new" >&2
	mv "$dir.new" "$dir"
fi
echo "$dir/$name"
