#!/usr/bin/env bash
# Creates, inspects and removes a kind cluster: one control plane, WORKERS workers.
#
# usage: cluster.sh up | down | status | purge | image
#   up      starts docker if needed, gets the node image (pulls it where a
#           registry answers, else loads or builds it), creates the cluster and
#           waits until every node is Ready. A healthy cluster is left alone;
#           stopped nodes are started; if that does not help, or if the cluster
#           was only half created, it is replaced.
#   down    removes the cluster, its volumes, its network, its kubeconfig.
#   status  nodes and what is wrong with them; fails unless all are Ready.
#   purge   down, and also unused node images, the caches, and the docker daemon
#           if it was started here and runs nothing else.
#   image   gets the node image, and prints its name.
#
# Inputs:  see lib.sh.
# Outputs: .work/kubeconfig (of another CLUSTER: .work/kubeconfig-<name>);
#          .work/logs-<name> when something fails.
# Changes on the machine: docker.sh and tools.sh; sysctl fs.inotify.* raised.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

service_subnet=10.96.0.0/16 # as in hack/without-registry/node-image/files/service-guard.nft
pod_subnet=10.244.0.0/16    # as in hack/without-registry/node-image/files/service-guard.service
ready_timeout=${READY_TIMEOUT:-180}
config=$(kubeconfig)

kube() { kubectl --kubeconfig "$config" --request-timeout=10s "$@"; }

# containers [FORMAT]: the nodes of the cluster, also stopped ones.
containers() {
	docker ps -a --filter "label=io.x-k8s.kind.cluster=$CLUSTER" --format "${1:-{{.Names\}\}}"
}

ready_nodes() {
	kube get nodes -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' 2>/dev/null |
		grep -c ' True$' || true
}

# wait_ready COUNT SECONDS: counts, because `kubectl wait node --all` is content
# with the nodes that registered, and so is `kind create`.
wait_ready() {
	local deadline=$((SECONDS + $2))
	until [[ $(ready_nodes) -eq $1 ]]; do
		((SECONDS < deadline)) || return 1
		sleep 1
	done
}

# stale: the nodes that have not reported since they started, and the pods with a container that is
# said to run since before its node started; the controllers are such pods, too. After a restart the
# API server shows the last state before the stop, in which every node and pod is Ready, though a pod
# has another address by now. "everything" if the API server does not answer.
stale() {
	local leases pods
	if leases=$(kube -n kube-node-lease get leases -o jsonpath='{range .items[*]}{.metadata.name}{" node "}{.spec.renewTime}{"\n"}{end}' 2>/dev/null) &&
		pods=$(kube get pods -A -o jsonpath='{range .items[?(@.spec.nodeName)]}{.spec.nodeName}{" "}{.metadata.namespace}/{.metadata.name}{range .status.containerStatuses[*]}{" "}{.state.running.startedAt}{end}{"\n"}{end}' 2>/dev/null); then
		awk 'FNR == NR { started[substr($1, 2)] = $2; next }
			{ for (i = 3; i <= NF; i++) if ($i < started[$1]) { print $2 (($2 == "node") ? "/" $1 : ""); break } }' \
			<(containers | xargs docker inspect -f '{{.Name}} {{.State.StartedAt}}') - <<<"$leases"$'\n'"$pods"
	else
		echo everything
	fi
}

# wait_fresh SECONDS: until nothing is stale.
wait_fresh() {
	local deadline=$((SECONDS + $1)) what
	until what=$(stale) && [[ -z $what ]]; do
		if ((SECONDS >= deadline)); then
			say "still shown as before the restart after $1 s: $(xargs <<<"$what")"
			return 1
		fi
		sleep 1
	done
}

# find_tools puts kind and kubectl on PATH. What asks for a cluster's health must run: an answer that
# never comes would look like a broken cluster, which up replaces.
find_tools() {
	local path
	path=$("$hack/cluster/tools.sh" kind kubectl) || die "there is no kind or no kubectl to look at cluster $CLUSTER with; it is left as it is"
	eval "$path"
	must_run kind version
	must_run kubectl version --client
}

# health: absent, dead (a node does not run), unready or ready.
health() {
	local states
	states=$(containers '{{.State}}')
	if [[ -z $states ]]; then
		echo absent
	elif grep -qvx running <<<"$states"; then
		echo dead
	elif kind export kubeconfig --name "$CLUSTER" --kubeconfig "$config" >/dev/null 2>&1 &&
		wait_ready "$(wc -l <<<"$states")" "$1" && wait_fresh $((2 * $1)); then
		echo ready
	else
		echo unready
	fi
}

# Every kubelet needs some dozen inotify instances, all from the quota of one
# user. Without them kubelets fail, and kind still reports success.
raise_inotify() {
	local key want have
	while read -r key want; do
		have=$(<"/proc/sys/fs/inotify/$key")
		((have < want)) || continue
		if { echo "$want" >"/proc/sys/fs/inotify/$key"; } 2>/dev/null; then
			say "raised sysctl fs.inotify.$key from $have to $want"
		else
			say "warning: sysctl fs.inotify.$key is $have; more than a few nodes need $want (set it as root)"
		fi
	done <<-EOF
		max_user_instances 8192
		max_user_watches 524288
	EOF
}

have_image() { docker image inspect "$1" >/dev/null 2>&1; }

# The official image wants cgroup v2: its systemd refuses v1. What another registry has may differ.
# The short question for the manifest decides whether a registry answers; the download may be slow.
pull() {
	local image how=()
	image=$(pulled_image)
	case $NODE_REGISTRY in localhost | localhost:*) how=(--insecure) ;; esac # docker pulls from there by HTTP, too
	have_image "$image" && return
	if [[ -z $NODE_REGISTRY && $(docker info --format '{{.CgroupVersion}}') = 1 ]]; then
		say "this machine has cgroup v1, which $image does not start on"
		return 1
	fi
	if ! timeout 20 docker manifest inspect ${how[@]+"${how[@]}"} "$image" >/dev/null 2>&1; then
		say "no registry answers for $image"
		return 1
	fi
	say "pulling $image"
	timeout 1800 docker pull -q "$image" >&2
}

build() {
	local image archive
	image=$(built_image) archive=$(recipe_out)/node.tar.zst
	have_image "$image" && return
	packages zstd=zstd
	if [[ ! -e $archive ]]; then
		say "building the node image (some seven minutes on two quiet processors with empty Go caches, more on busy ones), logs in $(recipe_out)/log"
		packages debootstrap=debootstrap jq=jq
		recipe_build node
	fi
	say "loading $image from the cache"
	zstd -dc "$archive" | docker load -q >/dev/null
	# Those of earlier recipes, except where a cluster still runs them.
	docker images --format '{{.Repository}}:{{.Tag}}' localhost/assay-node | grep -vxF "$image" |
		xargs -r docker rmi >/dev/null 2>&1 || true
}

# node_image gets the image and prints its name.
node_image() {
	case $NODE_SOURCE in
	pull) pull || die "NODE_SOURCE=pull, but $(pulled_image) cannot be used" && pulled_image ;;
	build) build && built_image ;;
	auto)
		if have_image "$(built_image)" || [[ -e $(recipe_out)/node.tar.zst ]] || ! pull; then
			build
			built_image
		else
			pulled_image
		fi
		;;
	*) die "NODE_SOURCE is auto, pull or build, not $NODE_SOURCE" ;;
	esac
}

# gogc is how far the heaps of the cluster's Go programs grow between two collections, in percent of
# what lives. Collections take a sixth of the API server's processor time with Go's default of 100.
gogc=400

# node_files writes what nodes mount: the environment of their containerd and kubelet, and patches
# of the control plane's pods. The cache keeps it, since a node that is started again looks for it.
node_files() {
	local files=$ASSAY_CACHE/nodes pod
	mkdir -p "$files/patches"
	printf '[Service]\nEnvironment=GOGC=%s\n' "$gogc" >"$files/gogc.conf"
	# kubeadm has the kubelet ask each of these pods every second whether it is ready, two of them by
	# a TLS handshake.
	for pod in etcd kube-apiserver kube-scheduler; do
		printf 'spec: {containers: [{name: %s, readinessProbe: {periodSeconds: 10}}]}\n' "$pod" >"$files/patches/$pod+strategic.yaml"
	done
}

# node ROLE: one node of the configuration.
node() {
	local files=$ASSAY_CACHE/nodes
	printf -- '- role: %s\n  extraMounts:\n' "$1"
	printf -- "  - {hostPath: '$files/gogc.conf', containerPath: /etc/systemd/system/%s.service.d/gogc.conf, readOnly: true}\n" containerd kubelet
	[[ $1 != control-plane ]] || echo "  - {hostPath: '$files/patches', containerPath: /kind/patches, readOnly: true}"
}

kind_config() {
	cat <<-EOF
		kind: Cluster
		apiVersion: kind.x-k8s.io/v1alpha4
		networking:
		  serviceSubnet: $service_subnet
		  podSubnet: $pod_subnet
	EOF
	# This cluster is for tests: etcd does not wait for the disk, and loses data only if the machine dies.
	# There is one control plane, whose controllers and scheduler need not elect a leader every 2 s.
	# containerd would ask every shim once a second what its containers used, which the kubelet finds
	# out itself.
	cat <<-EOF
		containerdConfigPatches:
		- |
		  [plugins."io.containerd.cri.v1.runtime"]
		    stats_collect_period = "1m"
		kubeadmConfigPatches:
		- |
		  kind: InitConfiguration
		  patches: {directory: /kind/patches}
		- |
		  kind: ClusterConfiguration
		  etcd:
		    local:
		      extraArgs:
		      - {name: unsafe-no-fsync, value: "true"}
		      extraEnvs: [{name: GOGC, value: "$gogc"}]
		  apiServer:
		    extraEnvs: [{name: GOGC, value: "$gogc"}]
		  controllerManager:
		    extraArgs:
		    - {name: leader-elect, value: "false"}
		    extraEnvs: [{name: GOGC, value: "$gogc"}]
		  scheduler:
		    extraArgs:
		    - {name: leader-elect, value: "false"}
		    extraEnvs: [{name: GOGC, value: "$gogc"}]
	EOF
	if [[ $(docker info --format '{{.CgroupVersion}}') = 1 ]]; then
		# The kubelet refuses cgroup v1 unless told otherwise, since 1.35.
		cat <<-EOF
			- |
			  kind: KubeletConfiguration
			  failCgroupV1: false
		EOF
	fi
	echo nodes:
	node control-plane
	local i
	for ((i = 0; i < WORKERS; i++)); do # shellcheck disable=SC2153 # from lib.sh
		node worker
	done
}

# fail_with_logs MESSAGE: keeps what explains the failure, then gives up.
fail_with_logs() {
	local logs=$work/logs-$CLUSTER
	rm -rf "$logs"
	kind export logs --name "$CLUSTER" "$logs" >/dev/null 2>&1 || true
	die "$1; logs of all nodes: $logs"
}

create() {
	local image want=$((WORKERS + 1)) out=$work/create-$CLUSTER.log
	image=$(node_image)
	node_files
	say "creating cluster $CLUSTER: 1 control plane, $WORKERS workers, $image"
	if ! kind_config | kind create cluster --name "$CLUSTER" --image "$image" --kubeconfig "$config" --retain --config - >"$out" 2>&1; then
		tail -n 20 "$out" >&2
		fail_with_logs "kind create cluster failed"
	fi
	if ! wait_ready "$want" "$ready_timeout"; then
		kube get nodes >&2 || true
		fail_with_logs "$(ready_nodes) of $want nodes are Ready after $ready_timeout s"
	fi
	kube -n kube-system rollout status deployment/coredns --timeout="${ready_timeout}s" --request-timeout=0 >/dev/null ||
		fail_with_logs "the cluster's DNS is not available"
}

remove() {
	containers | xargs -r docker rm -f -v >/dev/null
	rm -rf "$config" "$work/logs-$CLUSTER" "$work/create-$CLUSTER.log"
}

up() {
	[[ $WORKERS =~ ^[0-9]+$ ]] || die "WORKERS is a number, not $WORKERS"
	make_work
	"$hack/cluster/docker.sh" start
	# The node image first: where it is built, kubectl comes with it.
	if [[ -z $(containers) ]]; then node_image >/dev/null; fi
	find_tools
	raise_inotify
	local state workers
	state=$(health 60)
	if [[ $state = dead ]]; then # stopped by hand, or with the machine
		say "starting the stopped nodes of cluster $CLUSTER"
		containers | xargs docker start >/dev/null || true
		state=$(health 60)
	fi
	case $state in
	ready)
		workers=$(($(containers | wc -l) - 1))
		[[ $workers -eq $WORKERS ]] ||
			die "cluster $CLUSTER has $workers workers, not $WORKERS: make cluster-down first, or WORKERS=$workers"
		;;
	absent) create ;;
	*)
		say "cluster $CLUSTER is $state: replacing it"
		remove
		create
		;;
	esac
	say "cluster $CLUSTER: $(ready_nodes) nodes Ready"
	say "  export KUBECONFIG=$config"
	say "  export PATH=$work/bin:\$PATH      # kubectl, kind"
}

down() {
	if ! has docker || ! timeout 20 docker version >/dev/null 2>&1; then
		rm -f "$config"
		say "docker does not run; stopped nodes of $CLUSTER, if any, are removed by cluster-down once it does"
		return
	fi
	remove
	docker network rm kind >/dev/null 2>&1 || true # kept while another kind cluster uses it
	say "cluster $CLUSTER is removed"
}

status() {
	timeout 20 docker version >/dev/null 2>&1 || die "docker does not answer: make cluster"
	find_tools
	local state
	containers '{{.Names}}	{{.Status}}' | sort
	state=$(health 1)
	if [[ $state != absent && $state != dead ]]; then
		kube get nodes -o wide || true
		kube get pods -A --field-selector=status.phase!=Running,status.phase!=Succeeded || true
	fi
	[[ $state = ready ]] || die "cluster $CLUSTER is $state: make cluster"
}

purge() {
	down
	docker images --format '{{.Repository}}:{{.Tag}}' localhost/assay-node | xargs -r docker rmi >/dev/null 2>&1 || true
	if [[ -n $(docker ps -q) ]]; then
		say "docker keeps running: it has other containers"
	else
		"$hack/cluster/docker.sh" stop
	fi
	rm -rf "$ASSAY_CACHE"/{node-image,nodes,helm,vm,apt.log} "${work:?}"/{bin,images}
	say "caches are removed (not Go's own ones)"
}

# One at a time for each cluster, whatever checkout it comes from.
mkdir -p "$ASSAY_CACHE"
exec 8>"$ASSAY_CACHE/.cluster-$CLUSTER.lock"
case ${1:-} in
up | down | purge) flock 8 && "$1" ;;
image) node_image ;;
status) status ;;
*) die "usage: cluster.sh up|down|status|purge|image" ;;
esac
