#!/usr/bin/env bash
# Finds or builds the command line tools: kind, kubectl, helm.
#
# One on PATH is taken when it fits: kind of the same minor version or newer, helm
# 3 or 4, kubectl at most one minor version away from the cluster (the skew that
# Kubernetes supports). Otherwise it is built from Go modules into ASSAY_CACHE.
#
# usage: tools.sh [kind|kubectl|helm...]      (all three)
# Output: one line for a shell to evaluate, which puts them first on PATH:
#   eval "$(hack/cluster/tools.sh)"
# Changes on the machine: .work/bin in the repository (links), ASSAY_CACHE.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# minor TEXT: the number M of the first v<major>.M in it.
minor() { grep -oE 'v[0-9]+\.[0-9]+' <<<"$1" | head -n1 | cut -d. -f2; }
major() { grep -oE 'v[0-9]+\.[0-9]+' <<<"$1" | head -n1 | cut -d. -f1; }

helm_version() { grep -oE 'helm.sh/helm/v4 v[0-9.]+' "$hack/cluster/helm/go.mod" | cut -d' ' -f2; }

# fits TOOL PROGRAM: may the user's own program be used?
fits() {
	local v want
	case $1 in
	kind)
		v=$("$2" version 2>/dev/null) want=$KIND_VERSION
		[[ -n $(minor "$v") && $(minor "$v") -ge $(minor "$want") ]]
		;;
	kubectl)
		v=$("$2" version --client 2>/dev/null) want=$KUBERNETES_VERSION
		local d=$(($(minor "$v") - $(minor "$want")))
		[[ ${d#-} -le 1 ]]
		;;
	helm) # the chart is made for this major version and the one before; ours, which CI takes, is of the newer
		v=$("$2" version --short 2>/dev/null)
		[[ $(major "$v") = v3 || $(major "$v") = v4 ]]
		;;
	esac
}

build_helm() {
	local out
	out=$ASSAY_CACHE/helm/$(helm_version)-$(go env GOARCH)
	if [[ ! -x $out/helm ]]; then
		say "building helm $(helm_version)"
		mkdir -p "$out"
		CGO_ENABLED=0 GOFLAGS=-buildvcs=false go -C "$hack/cluster/helm" build -trimpath \
			-ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$(helm_version)" -o "$out/helm.part" helm.sh/helm/v4/cmd/helm >&2
		mv "$out/helm.part" "$out/helm"
	fi
	echo "$out/helm"
}

# Without the node image at hand, kubectl alone is a quarter of hyper's work.
build_kubectl() {
	local out
	out=$(recipe_out)/bin
	if [[ -x $out/hyper ]]; then
		ln -sf hyper "$out/kubectl"
	elif [[ ! -x $out/kubectl ]]; then
		say "building kubectl $KUBERNETES_VERSION"
		mkdir -p "$out"
		CGO_ENABLED=0 GOFLAGS=-buildvcs=false go -C "$hack/without-registry/node-image/hyper" build -trimpath \
			-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$KUBERNETES_VERSION" -o "$out/kubectl.part" k8s.io/kubernetes/cmd/kubectl >&2
		mv "$out/kubectl.part" "$out/kubectl"
	fi
	echo "$out/kubectl"
}

build_kind() {
	if [[ ! -x $(recipe_out)/bin/kind ]]; then
		say "building kind $KIND_VERSION"
		recipe_build kind
	fi
	echo "$(recipe_out)/bin/kind"
}

make_work
mkdir -p "$work/bin"
PATH=${PATH//"$work/bin:"/} # our own links are not the user's tools
for tool in "${@:-kind kubectl helm}"; do
	for t in $tool; do
		own=$(command -v "$t" || true)
		[[ -z $own || ! ${own%/*} -ef $work/bin ]] || own= # our links by another name: no link to itself
		if [[ -n $own ]] && fits "$t" "$own"; then
			target=$own
		else
			has go || die "$t is not installed and neither is go, which could build it"
			target=$("build_$t")
		fi
		ln -sfn "$target" "$work/bin/$t"
	done
done
# shellcheck disable=SC2016 # the caller's shell expands it
printf 'export PATH=%q:$PATH\n' "$work/bin"
