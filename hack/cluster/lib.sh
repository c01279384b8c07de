# shellcheck shell=bash
# Sourced by the scripts of hack/cluster and hack/images: names, paths, messages.
#
# Inputs (environment):
#   CLUSTER        name of the kind cluster               (assay)
#   WORKERS        number of workers                      (2)
#   ASSAY_CACHE    what is kept between runs              (${XDG_CACHE_HOME:-~/.cache}/assay)
#   NODE_SOURCE    auto, pull or build: the node image    (auto)
#   NODE_REGISTRY  HOST or HOST:PORT to pull it from      (Docker Hub)
# Changes nothing.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
hack=$repo/hack
work=$repo/.work
CLUSTER=${CLUSTER:-assay}
WORKERS=${WORKERS:-2}
NODE_SOURCE=${NODE_SOURCE:-auto}
NODE_REGISTRY=${NODE_REGISTRY:-}
ASSAY_CACHE=${ASSAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/assay}
# shellcheck source=../without-registry/node-image/versions.env
. "$hack/without-registry/node-image/versions.env"

say() { printf '%s\n' "$*" >&2; }
die() {
	printf 'error: %s\n' "$*" >&2
	exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# must_run PROGRAM ARGUMENT...: fails, with what the program printed, unless it exits with 0.
must_run() {
	local printed
	printed=$("$@" 2>&1) || die "$* fails: ${printed:-it printed nothing}"
}

# make_work creates the repository's scratch directory, which git ignores.
make_work() {
	mkdir -p "$work"
	[[ -e $work/.gitignore ]] || printf '*\n' >"$work/.gitignore"
}

# kubeconfig is this cluster's own file: never the user's ~/.kube/config.
kubeconfig() {
	if [[ $CLUSTER = assay ]]; then echo "$work/kubeconfig"; else echo "$work/kubeconfig-$CLUSTER"; fi
}

# recipe_key names the content of everything that goes into the node image and
# the programs built with it; tests and documents do not.
recipe_key() {
	(
		cd "$hack"
		find without-registry/node-image images/imagetar -type f ! -name '*_test.go' ! -name '*.md' -print0 |
			LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-12
	)
}

# recipe_out is where build.sh puts what it builds from the recipe as it is now.
recipe_out() { echo "$ASSAY_CACHE/node-image/$(recipe_key)-$(go env GOARCH)"; }

# recipe_build TARGET...: runs build.sh, one run at a time, and prunes what
# other versions of the recipe left and nobody used for two weeks.
recipe_build() {
	local out
	has go || die "go is not installed"
	out=$(recipe_out)
	mkdir -p "$out"
	touch "$out"
	find "$ASSAY_CACHE/node-image" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +
	(
		flock 9
		NODE_IMAGE=$(built_image) "$hack/without-registry/node-image/build.sh" "$out" "$@"
	) 9>"$out/.lock" >&2
}

built_image() { echo "localhost/assay-node:$KUBERNETES_VERSION-$(recipe_key)"; }
pulled_image() { echo "${NODE_REGISTRY:+$NODE_REGISTRY/}kindest/node:$KUBERNETES_VERSION"; }

# packages COMMAND=PACKAGE...: installs the Debian packages of the commands that
# are missing. As another user, or on another system, it says what to install.
packages() {
	local missing=() p
	for p; do has "${p%%=*}" || missing+=("${p#*=}"); done
	[[ ${#missing[@]} -gt 0 ]] || return 0
	if [[ $(id -u) != 0 ]] || ! has apt-get; then
		die "please install: ${missing[*]} (Debian's names)"
	fi
	say "installing Debian packages: ${missing[*]}"
	local log=$ASSAY_CACHE/apt.log
	mkdir -p "$ASSAY_CACHE"
	{ apt_get update && DEBIAN_FRONTEND=noninteractive apt_get install -y --no-install-recommends "${missing[@]}"; } \
		</dev/null >"$log" 2>&1 || die "apt-get failed, see $log"
}

# apt_get runs apt-get once no other of our scripts does: it fails while another
# one reads package lists, and lanes of tests are prepared beside each other.
apt_get() {
	mkdir -p "$ASSAY_CACHE"
	flock -o -w 900 "$ASSAY_CACHE/apt.lock" apt-get -o DPkg::Lock::Timeout=900 "$@"
}

# module_program SYSTEM NAME PACKAGE BUILD [FLAG...]: prints the program of a package of the Go module
# systems/SYSTEM, which is built with the flags, at most once for the same source and the same Go. If
# BUILD is 0, it only says where the program is or would be. What nobody built for two weeks goes.
module_program() (
	cd "$repo/systems/$1"
	dir=$ASSAY_CACHE/$1/$(find . ../driver -name '*.go' -o -name 'go.*' | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-12)-$(go env GOVERSION)-$(go env GOARCH)
	if [[ $4 = 1 && ! -x $dir/$2 ]]; then
		say "building $2 (two minutes with empty Go caches)"
		mkdir -p "$dir"
		prune_builds "$1"
		CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -trimpath -ldflags '-s -w' "${@:5}" -o "$dir/$2.new" "$3" >&2
		mv "$dir/$2.new" "$dir/$2"
	fi
	echo "$dir/$2"
)

prune_builds() { find "$ASSAY_CACHE/$1" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +; }
