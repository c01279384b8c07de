#!/usr/bin/env bash
# Runs the commands of README.md, "On a cluster that you have", on a kind cluster of one's own, with
# a registry on this machine. It prints how long each command took and how long all took.
#
# usage: quickstart.sh
# Inputs:  CLUSTER, a kind cluster without Assay (make cluster CLUSTER=quick WORKERS=0); the images
#          of the README in the local docker (IMAGES="assay/manager assay/agent assay/basil" make
#          images-docker); PORT of the registry (5001).
# Changes: /etc/containerd/certs.d/localhost:PORT in the nodes; tags in the local docker; Assay and
#          the namespace papers in the cluster. The registry ends with the script.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

PORT=${PORT:-5001}
eval "$("$hack/cluster/tools.sh" kubectl helm)"
KUBECONFIG=$(kubeconfig)
export KUBECONFIG
[[ -e $KUBECONFIG ]] || die "cluster $CLUSTER does not run: make cluster CLUSTER=$CLUSTER WORKERS=0"
! kubectl get namespace assay-system >/dev/null 2>&1 || die "cluster $CLUSTER has Assay already"

make_work
store=$(mktemp -d "$work/registry.XXXXXX")
cd "$repo"
go build -modfile=hack/tools/publish/go.mod -o "$work/bin/crane" github.com/google/go-containerregistry/cmd/crane
"$work/bin/crane" registry serve --address "0.0.0.0:$PORT" --disk "$store" >"$store/log" 2>&1 &
registry=$!
trap 'kill $registry; wait $registry 2>/dev/null || true; rm -rf "$store"' EXIT

# To docker and to Helm the registry is localhost:PORT. Nodes get the same name, and reach it at
# this machine's address in their network.
gateway=$(docker network inspect kind -f '{{range .IPAM.Config}}{{.Gateway}} {{end}}' | tr ' ' '\n' | grep -m1 -E '^[0-9.]+$')
for node in $(docker ps --filter "label=io.x-k8s.kind.cluster=$CLUSTER" --format '{{.Names}}'); do
	docker exec -i "$node" sh -c "mkdir -p /etc/containerd/certs.d/localhost:$PORT && cat >/etc/containerd/certs.d/localhost:$PORT/hosts.toml" <<<"[host.\"http://$gateway:$PORT\"]"
done

# The commands of the README. The images are there, and make needs no other.
commands=$(sed -n '/^    R=registry/,/^$/p' README.md | sed 's/^    //; /^$/d; /^make images-docker$/d')
[[ $commands = R=*"helm install"*" run "* ]] || die "README.md has no such commands any more: $commands"
commands=R=localhost:$PORT/lab$'\n'$(tail -n +2 <<<"$commands")
begin=$SECONDS
while IFS= read -r command; do
	at=$SECONDS
	say "+ $command"
	eval "$command"
	say "  $((SECONDS - at)) s"
done <<<"$commands"
say "$((SECONDS - begin)) s for all commands of the README"
