#!/usr/bin/env bash
# Builds the programs of a Kubernetes node, and a kind node image out of them,
# from Go modules and Debian packages alone: no image registry is needed.
#
# usage: build.sh OUT TARGET...
#   kind kubectl hyper etcd runc-bounded   one program each -> OUT/bin
#   node                                   the node image -> OUT/node.tar.zst
#
# Inputs:  this directory, ../../images/imagetar, the Go module proxy; for "node"
#          also debootstrap, zstd, jq and root; NODE_IMAGE, the image's name.
# Outputs: OUT/bin, OUT/node.tar.zst, OUT/log. What is there is not built again:
#          OUT is to be named after the content of the inputs (hack/cluster/lib.sh).
# Changes on the machine: nothing outside OUT and Go's caches; "node" mounts
#          nothing and runs one private containerd for some seconds.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:?output directory}
shift
mkdir -p "$out"/{bin,log,tmp}
out=$(cd "$out" && pwd)
bin=$out/bin
rootfs=$out/tmp/rootfs

set -a # the Go program preload reads them too
# shellcheck source=versions.env
. "$here/versions.env"
set +a

# The flags of the whole repository: other flags would be another build cache.
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false
case $(go env GOVERSION) in
go1.26*) ;;
*) export GOTOOLCHAIN=go$GO_VERSION ;; # see versions.env
esac
ldflags='-s -w'

say() { printf '  %s\n' "$*"; }

# step NAME COMMAND...: runs with a log, reports the time, stops at failure.
step() {
	local name=$1 start=$SECONDS
	shift
	# In the background, because bash ignores "set -e" inside a condition.
	("$@") >"$out/log/$name.log" 2>&1 &
	if ! wait $!; then
		tail -n 30 "$out/log/$name.log" >&2
		echo "build of $name failed; the whole log: $out/log/$name.log" >&2
		return 1
	fi
	say "$(printf '%-22s %4d s' "$name" $((SECONDS - start)))"
}

# program NAME COMMAND...: builds OUT/bin/NAME unless it is there. The commands
# write to OUT/tmp/bin, so that an interrupted build leaves nothing in OUT/bin.
program() {
	local name=$1
	shift
	[[ -e $bin/$name ]] && return
	rm -rf "$out/tmp/bin"
	mkdir -p "$out/tmp/bin"
	step "$name" "$@"
	mv "$out/tmp/bin"/* "$bin/"
}

build_local() { # DIRECTORY PACKAGE NAME [LDFLAGS]: a program of this directory
	cd "$here/$1"
	go build -trimpath -ldflags "$ldflags ${4:-}" -o "$out/tmp/bin/$3" "$2"
}

install_module() { # VERSION LDFLAGS PACKAGE...
	local version=$1 flags=$2
	shift 2
	GOBIN=$out/tmp/bin go install -trimpath -ldflags "$ldflags $flags" "${@/%/@$version}"
}

module_dir() { go mod download -json "$1" | jq -r .Dir; }

hyper() {
	local v=k8s.io/component-base/version minor=${KUBERNETES_VERSION#v1.}
	build_local hyper . hyper "-X $v.gitVersion=$KUBERNETES_VERSION -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*} -X $v.gitTreeState=clean"
}

containerd() {
	local p=github.com/containerd/containerd/v2
	install_module "$CONTAINERD_VERSION" "-X $p/version.Version=$CONTAINERD_VERSION" $p/cmd/{containerd,ctr,containerd-shim-runc-v2}
}

cni_plugins() {
	local p=github.com/containernetworking/plugins/plugins
	install_module "$CNI_PLUGINS_VERSION" "" $p/main/{ptp,loopback} $p/ipam/host-local $p/meta/portmap
}

build() {
	case $1 in
	hyper) program hyper hyper ;;
	kubectl)
		build hyper
		ln -sf hyper "$bin/kubectl"
		;;
	kind) program kind install_module "$KIND_VERSION" "" sigs.k8s.io/kind ;;
	etcd) program etcd build_local etcd . etcd ;;
	runc-bounded) program runc-bounded build_local . ./runc-bounded runc-bounded ;;
	pause) program pause build_local . ./pause pause ;;
	containerd) program containerd containerd ;;
	cni) program ptp cni_plugins ;;
	node) node ;;
	*) echo "no target $1" >&2 && return 2 ;;
	esac
}

# --- the node image ---------------------------------------------------------

packages=(systemd conntrack iptables nftables iproute2 ethtool util-linux mount kmod libseccomp2 pigz e2fsprogs
	bash ca-certificates curl jq procps ipset socat crun iputils-ping busybox-static)

# Debian with kind's files, the same cleaning as in kind's images/base/Dockerfile.
make_rootfs() {
	rm -rf "$rootfs"
	debootstrap --variant=minbase --include="$(IFS=,; echo "${packages[*]}")" "$DEBIAN_SUITE" "$rootfs"
	local r=$rootfs kind
	kind=$(module_dir "sigs.k8s.io/kind@$KIND_VERSION")/images/base/files
	# A module's files have no execute bit, and its directories are read-only.
	cp -r --no-preserve=mode,ownership "$kind"/{etc,kind,usr} "$r/"
	chmod 0755 "$r"/usr/local/bin/* "$r"/kind/bin/*
	mkdir -p "$r"/kind/manifests "$r"/etc/cni/net.d "$r"/opt/cni/bin "$r"/etc/kubernetes/manifests

	rm -f "$r"/lib/systemd/system/{multi-user,local-fs,basic}.target.wants/* "$r"/etc/systemd/system/*.wants/* \
		"$r"/lib/systemd/system/sockets.target.wants/*{udev,initctl}* \
		"$r"/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service
	echo ReadKMsg=no >>"$r/etc/systemd/journald.conf"
	ln -sf /usr/lib/systemd/systemd "$r/sbin/init"
	cp "$here/files/service-guard.service" "$r/etc/systemd/system/"
	cp "$here/files/service-guard.nft" "$r/etc/"
	chroot "$r" systemctl enable kubelet containerd undo-mount-hacks service-guard
	chroot "$r" systemctl mask systemd-binfmt
	rm -rf "$r"/var/cache/apt/* "$r"/var/lib/apt/lists/* "$r"/var/cache/debconf/* \
		"$r"/usr/share/{doc,man,locale}/* "$r"/var/log/{*.log,apt}
}

# Our programs and configuration into the root file system.
fill_rootfs() {
	local r=$rootfs p
	install -m755 -t "$r/usr/local/bin" "$bin"/{containerd,ctr,containerd-shim-runc-v2}
	install -m755 -t "$r/opt/cni/bin" "$bin"/{ptp,host-local,loopback,portmap}
	install -m755 "$bin/hyper" "$r/usr/bin/hyper"
	for p in kubeadm kubelet kubectl; do ln -sf hyper "$r/usr/bin/$p"; done
	printf %s "$KUBERNETES_VERSION" >"$r/kind/version"
	for p in "$here"/manifests/*.yaml; do
		sed -e "s/\${KUBERNETES_VERSION}/$KUBERNETES_VERSION/; s/\${DEBIAN_SUITE}/$DEBIAN_SUITE/g" "$p" >"$r/kind/manifests/${p##*/}"
	done
	# Lowering oom_score_adj needs CAP_SYS_RESOURCE, which not every machine's root has.
	sed -i -e 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' \
		-e "s#registry.k8s.io/pause:[^\"]*#registry.k8s.io/pause:$PAUSE_TAG#" "$r/etc/containerd/config.toml"
	grep -q 'restrict_oom_score_adj = true' "$r/etc/containerd/config.toml"
	# crun starts a container in about half of runc's processor time. It reaches systemd by D-Bus
	# only, which the image lacks, so containers get their cgroups without systemd. The kubelet
	# asks containerd which driver that is.
	sed -i 's/^\( *\)SystemdCgroup = true/\1SystemdCgroup = false\n\1BinaryName = "crun-1.0"/' "$r/etc/containerd/config.toml"
	[[ $(grep -c 'BinaryName = "crun-1.0"' "$r/etc/containerd/config.toml") = 2 ]]
	install -m755 "$here/files/crun-1.0" "$r/usr/local/bin/"
	# As kind does, without its hook that fakes /sys/class/dmi in every container:
	# a bash and a jq for each container start, only to hide the machine's product id.
	"$bin/ctr" oci spec | jq 'del(.process.rlimits)' >"$r/etc/containerd/cri-base.json"
}

# Puts the images into the node's containerd, by running ours on its directory.
preload() {
	local state=$out/tmp/containerd pid ctr i
	go -C "$here" build -trimpath -o "$out/tmp/preload" ./preload
	"$out/tmp/preload" images -bin "$bin" -rootfs "$rootfs" -o "$out/tmp/images.tar" | tee "$out/tmp/images.txt"
	ln -sf hyper "$bin/kubeadm"
	for i in $("$bin/kubeadm" config images list --kubernetes-version "$KUBERNETES_VERSION"); do
		grep -qxF "$i" "$out/tmp/images.txt" || { echo "kubeadm wants $i: correct versions.env" >&2 && return 1; }
	done
	rm -rf "$state" && mkdir -p "$state"
	# A socket path may have 107 bytes, OUT may be longer: hence /tmp.
	local sock
	sock=$(mktemp -d)/c.sock
	cat >"$state/config.toml" <<-EOF
		version = 2
		root = "$rootfs/var/lib/containerd"
		state = "$state/run"
		disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri"]
		[grpc]
		address = "$sock"
	EOF
	PATH=$PATH:$bin "$bin/containerd" -c "$state/config.toml" &
	pid=$!
	ctr=("$bin/ctr" -a "$sock" -n k8s.io)
	for ((i = 0; i < 100; i++)); do
		if "${ctr[@]}" version >/dev/null 2>&1; then break; fi
		sleep 0.2
	done
	"${ctr[@]}" images import --label=io.cri-containerd.pinned=pinned --all-platforms --no-unpack "$out/tmp/images.tar"
	kill $pid
	wait $pid || true
	rm -rf "$state" "${sock%/*}"
}

node() {
	[[ -e $out/node.tar.zst ]] && return
	[[ $(id -u) = 0 ]] || { echo "the node image is built as root (debootstrap, chroot)" >&2 && return 1; }
	local b rootfs_pid
	# debootstrap waits for the network and dpkg, the compiler for the CPU: together.
	step rootfs make_rootfs &
	rootfs_pid=$!
	trap wait EXIT # when a build fails: leave no debootstrap behind
	for b in hyper etcd pause containerd cni; do build $b; done
	wait $rootfs_pid
	step files fill_rootfs
	step preload preload
	step pack pack
	rm -rf "${out:?}/tmp"
}

pack() {
	tar -C "$rootfs" --sort=name --numeric-owner -cf "$out/tmp/rootfs.tar" .
	"$out/tmp/preload" node -tar "$out/tmp/rootfs.tar" -name "${NODE_IMAGE:?}" -o "$out/tmp/node.tar"
	zstd -q -3 -T0 -f "$out/tmp/node.tar" -o "$out/tmp/node.tar.zst"
	mv "$out/tmp/node.tar.zst" "$out/"
}

for target; do build "$target"; done
