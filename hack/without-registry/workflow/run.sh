#!/usr/bin/env bash
# Runs jobs of .github/workflows/ci.yml on this machine, as they are written: act reads the steps,
# their environment and the matrix from that file. Each job has a fresh copy of HEAD.
#
# What differs from the forge: act copies HEAD in place of actions/checkout; setup-go/action.yml, which
# takes Go from the module proxy, stands in for actions/setup-go; the jobs share one machine and its
# caches, one after the other.
# For jobs with NODE_SOURCE: pull a registry of this machine serves the image of the nodes, unless
# NODE_REGISTRY names one.
#
# usage: run.sh [JOB | JOB:LANE]...     (all: check vulnerabilities mutants lane:chart ... kind:tutorial)
# Needs: bash, git, Go, and an ordinary user who may run everything by sudo without a password, as on
#        the forge's machines. So as root of a machine without such a user:
#          useradd -m runner; echo 'runner ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/runner
#          sudo -u runner -H env PATH="$PATH" make workflow
# Inputs: NODE_REGISTRY, see hack/cluster/lib.sh.
# Output: a line for each job with its result and time; .work/workflow/JOB.log. The last line says how
#         many passed and failed.
# Changes on the machine: what the jobs change. What root wrote into the user's ~/.cache and ~/go
#         becomes the user's. After jobs with a cluster the script removes it.
# Exit status: 0 if all passed.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

platform=ubuntu-24.04
workflow=$repo/.github/workflows/ci.yml
logs=$work/workflow
registry='' scratch=''

must_run git --version
(($(id -u) != 0)) || die "jobs of a workflow run as an ordinary user with sudo, not as root: see $0"
sudo -n true 2>/dev/null || die "$(id -un) may not run sudo without a password"
[[ -z $(git -C "$repo" status --porcelain) ]] || die "jobs run on HEAD: commit the changes of $repo first"

# act of hack/tools/act, built once for each version.
act_program() {
	local version out
	version=$(sed -nE 's#.*github.com/nektos/act (v[^ ]*).*#\1#p' "$hack/tools/act/go.mod")
	out=$ASSAY_CACHE/act/$version/act
	if [[ ! -x $out ]]; then
		say "building act $version"
		mkdir -p "$(dirname "$out")"
		CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -C "$hack/tools/act" -trimpath -ldflags '-s -w' -o "$out" github.com/nektos/act
	fi
	echo "$out"
}

# jobs prints each job of the workflow, as JOB or JOB:LANE. Those without lanes come first: the lanes
# run by sudo, and leave files of root in the caches.
jobs() {
	local job names lanes with=()
	names=$(awk '/^[a-z]/ { here = $0 == "jobs:" } here && /^  [a-z-]+:$/ { gsub(/[ :]/, ""); print }' "$workflow")
	for job in $names; do
		lanes=$(lanes "$job")
		if [[ -n $lanes ]]; then with+=("$lanes"); else echo "$job"; fi
	done
	printf '%s\n' "${with[@]}"
}

# lanes JOB prints JOB:LANE for the lanes of its matrix.
lanes() {
	awk -v job="$1" '/^  [a-z-]+:$/ { here = $1 == job ":" } here && sub(/^ *lane: \[/, "") { sub(/\]$/, ""); n = split($0, lane, / *, */); for (i = 1; i <= n; i++) print job ":" lane[i] }' "$workflow"
}

# pulls_nodes JOB succeeds if a step of the job has NODE_SOURCE: pull.
pulls_nodes() {
	awk -v job="$1" '/^  [a-z-]+:$/ { here = $1 == job ":" } here && /NODE_SOURCE: pull/ { found = 1 } END { exit !found }' "$workflow"
}

# serve_nodes has a registry of this machine serve the image of the nodes by the name of kind's own.
serve_nodes() {
	local built pulled port=5055
	[[ -z $NODE_REGISTRY && -z $registry ]] || return 0
	sudo env PATH="$PATH" HOME="$HOME" "$hack/cluster/docker.sh" start
	[[ -z $(sudo docker ps -aq --filter label=io.x-k8s.kind.cluster=assay) ]] ||
		die "this machine has the cluster assay, whose nodes were not pulled by this run: make cluster-down first"
	sudo env PATH="$PATH" HOME="$HOME" NODE_SOURCE=build "$hack/cluster/cluster.sh" image >/dev/null
	built=$(built_image)
	mkdir -p "$scratch/registry"
	go -C "$hack/tools/publish" build -o "$work/bin/crane" github.com/google/go-containerregistry/cmd/crane
	"$work/bin/crane" registry serve --address "127.0.0.1:$port" --disk "$scratch/registry" >"$logs/registry.log" 2>&1 &
	registry=$!
	curl -sSf --retry 20 --retry-delay 1 --retry-connrefused -o /dev/null "http://127.0.0.1:$port/v2/"
	export NODE_REGISTRY=localhost:$port
	pulled=$(pulled_image)
	sudo docker tag "$built" "$pulled"
	sudo docker push -q "$pulled" >/dev/null
	# Nodes can come from nowhere else: neither from docker's images nor from the cache.
	sudo docker rmi "$pulled" "$built" >/dev/null
}

finish() {
	local folder
	if [[ -n $registry ]]; then
		sudo env PATH="$PATH" HOME="$HOME" "$hack/cluster/cluster.sh" down
		kill "$registry"
	fi
	for folder in "$HOME/.cache" "$HOME/go"; do
		[[ ! -d $folder ]] || sudo chown -R --from=root "$(id -u):$(id -g)" "$folder"
	done
	sudo rm -rf "$scratch"
}

# run JOB[:LANE]: the event is that of the night, on which every job runs.
run() {
	local job=${1%%:*} from=$SECONDS only=() status=0 result=passed
	[[ $1 != *:* ]] || only=(--matrix "lane:${1#*:}")
	"$act" schedule -C "$repo" -W .github/workflows/ci.yml -j "$job" "${only[@]}" \
		-P "$platform=-self-hosted" --local-repository "$setup_go=$repo/hack/without-registry/workflow/setup-go" \
		--action-cache-path "$scratch/act" --concurrent-jobs 1 --no-cache-server </dev/null >"$logs/$1.log" 2>&1 || true
	# act's exit status also says whether it could remove the job's copy. The lanes leave files of root there.
	sudo rm -rf "$scratch/act"
	grep -qE '^\[[^]]+\] 🏁  Job succeeded$' "$logs/$1.log" || status=1 result="FAILED, see $logs/$1.log"
	# Only jobs that run tests print a sum.
	printf '%-22s %s, %d s  %s\n' "$1" "$result" $((SECONDS - from)) \
		"$(grep -oE '[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$logs/$1.log" | tail -n 1)"
	return "$status"
}

make_work
mkdir -p "$logs" "$work/bin"
scratch=$(mktemp -d)
trap finish EXIT
act=$(act_program)
setup_go=$(grep -oE 'actions/setup-go@[0-9a-f]{40}' "$workflow" | head -n 1)
known=$(jobs)
mapfile -t wanted < <((($# > 0)) && printf '%s\n' "$@" || echo "$known")
for job in "${wanted[@]}"; do
	grep -qxF "$job" <<<"$known" || die "no job $job in ci.yml; there are $(xargs <<<"$known")"
done
passed=0 failed=0
for job in "${wanted[@]}"; do
	if pulls_nodes "${job%%:*}"; then serve_nodes; fi
	if run "$job"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed jobs passed, $failed jobs failed, at $(git -C "$repo" rev-parse --short=8 HEAD)"
((failed == 0))
