#!/usr/bin/env bash
# Builds the programs of Chaos Mesh from its Go module, at most once for the same versions: the controller, the daemon and the two
# small programs that the daemon calls. All are static.
#
# usage: programs.sh [--path]     prints the directory
#   --path   say where it is or would be; build nothing
# Inputs: versions.env, nsexec.c, a C compiler, the Go module proxy; ASSAY_CACHE.
# Output: ASSAY_CACHE/chaos-mesh/programs-KEY-GOARCH. Go's build cache is not used: what is compiled here is of no use to
#         anything else and larger than the rest. The build takes six minutes of one processor and 3.5 GB of memory.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

here=$hack/without-registry/chaos-mesh
# shellcheck source=versions.env
. "$here/versions.env"
module=github.com/chaos-mesh/chaos-mesh

key=$(cd "$here" && LC_ALL=C sha256sum versions.env nsexec.c programs.sh | sha256sum | cut -c1-12)
out=$ASSAY_CACHE/chaos-mesh/programs-$key-$(go env GOARCH)

module_dir() { go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'; }

build() {
	local src=$tmp/src
	cp -r "$(module_dir "$module@$CHAOS_MESH_VERSION")" "$src"
	chmod -R u+w "$src"
	# The embedded objects of TimeChaos are not in the zip, their source is.
	(cd "$src/pkg/time/fakeclock" && cc -c -fPIC -O2 fake_clock_gettime.c && cc -c -fPIC -O2 fake_gettimeofday.c)
	cc -static -O2 -Wall -Werror -o "$tmp/bin/nsexec" "$here/nsexec.c"
	cc -static -O2 -w -o "$tmp/bin/pause" "$src/hack/pause.c"
	export GOCACHE=$tmp/gocache GOFLAGS='-buildvcs=false -trimpath -mod=mod -tags=netgo,osusergo'
	cd "$src"
	go mod edit -replace "$module/api=$module/api@$CHAOS_MESH_API_VERSION"
	local flags="-s -w -X $module/pkg/version.gitVersion=$CHAOS_MESH_VERSION"
	# With cgo, the controller would be twice as large: what it imports can load plugins then, and the linker drops nothing.
	CGO_ENABLED=0 go build -o "$tmp/bin/" -ldflags "$flags" ./cmd/chaos-controller-manager
	CGO_ENABLED=0 go build -o "$tmp/bin/cdh" -ldflags "$flags" ./cmd/chaos-daemon-helper
	# The daemon's ptrace needs cgo.
	CGO_ENABLED=1 go build -o "$tmp/bin/" -ldflags "$flags -linkmode external -extldflags -static" ./cmd/chaos-daemon
}

if [[ ${1:-} != --path && ! -d $out ]]; then
	mkdir -p "$ASSAY_CACHE/chaos-mesh"
	exec 9>"$ASSAY_CACHE/chaos-mesh/.lock"
	flock 9
fi
if [[ ${1:-} != --path && ! -d $out ]]; then
	packages cc=gcc
	# No program, so that no look for one finds it: what static programs are linked with. Compilers come without it.
	[[ $(cc -print-file-name=libc.a) = */* ]] || packages libc.a=libc6-dev
	log=$ASSAY_CACHE/chaos-mesh/programs.log
	say "building Chaos Mesh $CHAOS_MESH_VERSION (five to ten minutes, once), log in $log"
	find "$ASSAY_CACHE/chaos-mesh" -mindepth 1 -maxdepth 1 -name 'programs-*' -mtime +14 -exec rm -rf {} +
	tmp=$(mktemp -d "$ASSAY_CACHE/chaos-mesh/build.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	mkdir "$tmp/bin"
	renice -n 10 $$ >/dev/null
	# In the background, because bash ignores "set -e" inside a condition.
	(build) >"$log" 2>&1 9>&- &
	wait $! || die "Chaos Mesh cannot be built: $(tail -n 5 "$log")"
	mv "$tmp/bin" "$out"
fi
echo "$out"
