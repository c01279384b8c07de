#!/usr/bin/env bash
# Stands in for a rack: containers with systemd and sshd, of the content of the cluster's node image (containerd, kubeadm, kubelet, their images) and
# openssh-server. For tests of infra/: nothing reaches them but SSH.
#
# usage: rack.sh image | up PUBLIC_KEY_FILE NAME... | down
#   image  builds the image unless it is there; prints its name
#   up     makes a network and these machines in it, reached as root with that key; waits until sshd answers; prints lines "NAME ADDRESS"
#   down   removes all machines, their volumes and the network
#
# Inputs (environment): RACK, a name, so that several can exist (assay-rack); RACK_SUBNET (172.30.77.0/24); and see cluster/lib.sh.
# Changes on the machine: docker (image, containers, volumes, network); ASSAY_CACHE.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

RACK=${RACK:-assay-rack}
RACK_SUBNET=${RACK_SUBNET:-172.30.77.0/24}
here=$hack/infra/rack

have_image() { docker image inspect "$1" >/dev/null 2>&1; }

# key names the content: the node image's recipe and ours.
key() { { recipe_key && cat "$here"/* "${BASH_SOURCE[0]}"; } | sha256sum | cut -c1-12; }

# node_image: ours, built without a registry, as cluster.sh does when none answers.
node_image() {
	local image
	image=$(built_image)
	if ! have_image "$image"; then
		packages zstd=zstd
		if [[ ! -e $(recipe_out)/node.tar.zst ]]; then
			say "building the node image (some seven minutes on two quiet processors with empty Go caches, more on busy ones), logs in $(recipe_out)/log"
			packages debootstrap=debootstrap jq=jq
			recipe_build node
		fi
		zstd -dc "$(recipe_out)/node.tar.zst" | docker load -q >/dev/null
	fi
	echo "$image"
}

# download DIRECTORY: Debian's packages of an SSH server, with all they need.
download() {
	packages debootstrap=debootstrap
	rm -rf "$1.part"
	mkdir -p "$1.part"
	debootstrap --variant=minbase --include=openssh-server --download-only "$DEBIAN_SUITE" "$1.part" >"$ASSAY_CACHE/rack.log" 2>&1 ||
		die "Debian's packages cannot be had, see $ASSAY_CACHE/rack.log"
	mkdir -p "$1"
	mv "$1.part"/var/cache/apt/archives/*.deb "$1/"
	rm -rf "$1.part"
}

image() {
	local name node debs context deb
	name=localhost/assay-rack:$(key)
	if ! have_image "$name"; then
		"$hack/cluster/docker.sh" start
		node=$(node_image)
		debs=$ASSAY_CACHE/rack-packages-$DEBIAN_SUITE
		[[ -d $debs ]] || download "$debs"
		context=$(mktemp -d)
		# Only what the node does not have: the rest is there in the same version or a newer one.
		docker run --rm --entrypoint dpkg-query "$node" -W -f '${Package}\n' | sort >"$context/have"
		mkdir "$context/debs"
		for deb in "$debs"/*.deb; do
			grep -qxF "$(dpkg-deb -f "$deb" Package)" "$context/have" || cp "$deb" "$context/debs/"
		done
		cp "$here"/* "$context/"
		DOCKER_BUILDKIT=0 docker build -q --network none --build-arg "NODE=$node" -t "$name" "$context" >"$ASSAY_CACHE/rack.log" 2>&1 ||
			die "the rack's image cannot be built: $(tail -n 5 "$ASSAY_CACHE/rack.log")"
		rm -rf "$context"
		docker images --format '{{.Repository}}:{{.Tag}}' localhost/assay-rack | grep -vxF "$name" | xargs -r docker rmi >/dev/null 2>&1 || true
	fi
	echo "$name"
}

# machine NAME ADDRESS IMAGE KEY: as kind starts its nodes.
machine() {
	docker run --detach --tty --name "$RACK-$1" --hostname "$1" --label "assay.dev/rack=$RACK" --network "$RACK" --ip "$2" \
		--privileged --security-opt seccomp=unconfined --security-opt apparmor=unconfined --cgroupns private \
		--tmpfs /tmp --tmpfs /run --volume /var --volume /lib/modules:/lib/modules:ro --env RACK_KEY="$4" "$3" >/dev/null
}

up() {
	local key name n=10 image
	key=$(<"${1:?public key file}")
	shift
	image=$(image)
	down
	docker network create --label "assay.dev/rack=$RACK" --subnet "$RACK_SUBNET" "$RACK" >/dev/null
	for name; do
		n=$((n + 1))
		machine "$name" "${RACK_SUBNET%.*}.$n" "$image" "$key"
		echo "$name ${RACK_SUBNET%.*}.$n"
	done
	for ((n = 11; n < 11 + $#; n++)); do
		timeout 60 bash -c "until read -r -t 2 line </dev/tcp/${RACK_SUBNET%.*}.$n/22 && [[ \$line = SSH-* ]]; do sleep 0.3; done" 2>/dev/null ||
			die "sshd does not answer at ${RACK_SUBNET%.*}.$n: docker logs, journalctl -u ssh"
	done
}

down() {
	docker ps -aq --filter "label=assay.dev/rack=$RACK" | xargs -r docker rm -f -v >/dev/null
	docker network ls -q --filter "label=assay.dev/rack=$RACK" | xargs -r docker network rm >/dev/null
}

case ${1:-} in
image) image ;;
up) shift && up "$@" ;;
down) down ;;
*) die "usage: rack.sh image | up PUBLIC_KEY_FILE NAME... | down" ;;
esac
