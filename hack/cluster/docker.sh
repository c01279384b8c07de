#!/usr/bin/env bash
# Makes sure that a docker daemon answers.
#
# A daemon that already answers is used as it is: its configuration is never
# touched and it is never restarted. Otherwise, as root on Debian: installs
# docker.io and starts it (by systemd where systemd runs, else in the background).
#
# Where root lacks a capability (a container or a sandboxed machine), a daemon
# started here gets runc-bounded as its default runtime, by flags, not by
# /etc/docker; see hack/without-registry/node-image/runc-bounded.
#
# usage: docker.sh start | stop
#   stop ends the daemon that start has put into the background, no other.
# Outputs: none. Log of a daemon started here: /var/log/assay-dockerd.log.
# Changes on the machine: package docker.io, the daemon,
#   /usr/local/bin/runc-bounded (only where a capability is missing).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

log=/var/log/assay-dockerd.log
started=/run/assay-dockerd.pid # the daemon is ours when this is its pid

answers() { timeout 20 docker version >/dev/null 2>&1; }

missing_capabilities() {
	local last set
	last=$(cat /proc/sys/kernel/cap_last_cap 2>/dev/null || echo 40)
	set=$(sed -n 's/^CapBnd:\t*//p' /proc/self/status)
	((((1 << (last + 1)) - 1) & ~0x$set))
}

# runs PID PROGRAM: by its executable, which a dead but unreaped process has no more.
runs() {
	local exe
	exe=$(readlink "/proc/$1/exe") && [[ ${exe##*/} = "$2"* ]]
}

# A pid file that survived its daemon (a machine or container that was stopped)
# may name another process by now, and then keeps the new daemon from starting.
remove_stale() {
	local file=$1 name=$2 pid
	pid=$(cat "$file" 2>/dev/null) || return 0
	runs "$pid" "$name" || rm -f "$file"
}

wait_for_daemon() { # PID
	local deadline=$((SECONDS + 60))
	sleep 1 # until then it may still be setsid or nohup
	until answers; do
		runs "$1" dockerd || die "dockerd ended: $(tail -n 3 "$log")"
		((SECONDS < deadline)) || die "dockerd (pid $1) does not answer after 60 s, see $log"
		sleep 0.5
	done
}

start_in_background() {
	local flags=() pid
	if missing_capabilities; then
		recipe_build runc-bounded
		install -m755 "$(recipe_out)/bin/runc-bounded" /usr/local/bin/runc-bounded
		if ! grep -qs '"default-runtime"' /etc/docker/daemon.json; then
			flags=(--add-runtime bounded=/usr/local/bin/runc-bounded --default-runtime bounded)
		fi
		say "root lacks capabilities here: docker gets runc-bounded as its runtime"
	fi
	say "starting dockerd (log: $log)"
	setsid nohup dockerd "${flags[@]}" </dev/null >>"$log" 2>&1 3>&- 8>&- 9>&- & # not the locks of whoever runs this: flock(1) has 3
	pid=$!
	echo "$pid" >"$started"
	wait_for_daemon "$pid"
}

start() {
	if has docker && answers; then return; fi
	if [[ -n ${DOCKER_HOST:-} ]]; then die "docker at DOCKER_HOST=$DOCKER_HOST does not answer"; fi
	if [[ $(id -u) != 0 ]]; then
		has docker || die "please install docker"
		die "docker does not answer (or not to this user: is it running, are you in the group docker?)"
	fi
	packages dockerd=docker.io
	packages docker=docker-cli # a package of its own since Debian 13
	if answers; then return; fi # the package has started it
	if [[ -d /run/systemd/system ]]; then
		say "starting docker.service"
		systemctl start docker
		answers || die "docker.service runs but docker does not answer"
		return
	fi
	remove_stale /var/run/docker.pid dockerd
	remove_stale /var/run/docker/containerd/containerd.pid containerd
	if [[ -e /var/run/docker.pid ]]; then # it is starting, or it hangs
		wait_for_daemon "$(cat /var/run/docker.pid)"
		return
	fi
	start_in_background
}

stop() {
	local pid
	pid=$(cat "$started" 2>/dev/null) || { say "no docker daemon was started here" && return; }
	if runs "$pid" dockerd; then
		say "stopping dockerd (pid $pid)"
		kill "$pid"
		local deadline=$((SECONDS + 60))
		while runs "$pid" dockerd; do
			((SECONDS < deadline)) || die "dockerd (pid $pid) does not stop, see $log"
			sleep 0.5
		done
	fi
	rm -f "$started"
}

case ${1:-} in
start) start ;;
stop) stop ;;
*) die "usage: docker.sh start|stop" ;;
esac
