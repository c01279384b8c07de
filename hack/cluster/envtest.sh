#!/usr/bin/env bash
# Provides what controller-runtime's envtest starts: kube-apiserver and etcd (and kubectl), of the
# same version and out of the same build as the cluster's.
#
# They are always built, also where the node image is pulled: that image does not hold them as
# programs (they are inside further images).
#
# usage: export KUBEBUILDER_ASSETS=$(hack/cluster/envtest.sh)
# Inputs:  API_SERVER, another version for kube-apiserver, such as 1.32.13. It is built from its Go
#          modules, once.
# Output: the directory, in ASSAY_CACHE. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

out=$(recipe_out)
if [[ ! -x $out/bin/hyper || ! -x $out/bin/etcd ]]; then
	say "building kube-apiserver and etcd (some 5 minutes with empty Go caches)"
	recipe_build hyper etcd
fi
API_SERVER=${API_SERVER:-}
version=v${API_SERVER#v}
if [[ $version = v || $version = "$KUBERNETES_VERSION" ]]; then
	mkdir -p "$out/envtest"
	ln -sfn ../bin/etcd "$out/envtest/etcd"
	for name in kube-apiserver kubectl; do ln -sfn ../bin/hyper "$out/envtest/$name"; done
	echo "$out/envtest"
	exit
fi

[[ $version =~ ^v1\.([0-9]+)\.[0-9]+$ ]] || die "API_SERVER is $API_SERVER, and not a version such as 1.32.13"
minor=${BASH_REMATCH[1]}
dir=$ASSAY_CACHE/envtest/$version-$(go env GOARCH)
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9
if [[ ! -x $dir/kube-apiserver ]]; then
	say "building kube-apiserver $version"
	module=$(mktemp -d)
	trap 'rm -rf "$module"' EXIT
	cd "$module"
	# Kubernetes names the modules that it is published as by version v0.0.0, and replaces them by
	# folders that its own module does not have.
	mod=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
	{
		printf 'module envtest\n\ngo %s\n\nrequire k8s.io/kubernetes %s\n' "$(go env GOVERSION | sed 's/^go//')" "$version"
		sed -n "s|^\t\(k8s\.io/[a-z0-9-]*\) v0\.0\.0$|replace \1 => \1 v0${version#v1}|p" "$mod"
	} >go.mod
	about=k8s.io/component-base/version
	CGO_ENABLED=0 go build -mod=mod -trimpath -o "$dir/new" \
		-ldflags "-s -w -X $about.gitVersion=$version -X $about.gitMajor=1 -X $about.gitMinor=$minor" k8s.io/kubernetes/cmd/kube-apiserver >&2
	mv "$dir/new" "$dir/kube-apiserver"
fi
ln -sfn "$out/bin/etcd" "$dir/etcd"
ln -sfn "$out/bin/hyper" "$dir/kubectl"
echo "$dir"
