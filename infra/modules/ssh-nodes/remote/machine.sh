#!/usr/bin/env bash
# Installed on every machine as /usr/local/lib/assay/machine.sh, and run at each boot: sets what evaluations need of it, and says what it has.
#
# usage: machine.sh apply | report | restore
#   apply    sets what /etc/assay/machine.env asks for, then reports. What cannot be set is no error here.
#   report   prints what is, read back from the kernel, whatever was asked:
#              label KEY=VALUE   a label of the node; VALUE is "unavailable" where the machine does not have such a thing
#              not-set TEXT      something that was asked for and is not so
#   restore  puts back what was there before the first apply.
#
# Input: ROOT (environment), a directory in which /sys, /proc, /etc and /var are looked for instead: for tests.
# Changes: files of /sys and /proc, swap, drop-ins of containerd and chrony; notes in /var/lib/assay/before.
set -euo pipefail

root=${ROOT:-}
before=$root/var/lib/assay/before
prefix=machine.assay.dev

say() { printf '%s\n' "$*" >&2; }

# note WHAT WAS: for restore, unless it is noted already: the first value is the machine's own.
note() {
	mkdir -p "${before%/*}"
	grep -qsF "$1 " "$before" || printf '%s %s\n' "$1" "$2" >>"$before"
}

# set_file PATH VALUE: writes a file of the kernel, and keeps what was there at first. Whether it worked, the report tells.
set_file() {
	local was
	[[ -e $root$1 ]] || return 0
	was=$(cat "$root$1" 2>/dev/null) || {
		say "the kernel does not say what is in $1: it stays so" # and could not be put back
		return 0
	}
	[[ $was != "$2" ]] || return 0
	note "$1" "$was"
	{ printf '%s\n' "$2" >"$root$1"; } 2>/dev/null || say "the kernel refuses $2 in $1"
}

# --- what the machine has ---------------------------------------------------

smt() {
	case $(cat "$root/sys/devices/system/cpu/smt/control" 2>/dev/null) in
	on) echo on ;;
	off | forceoff) echo off ;;
	*) echo unavailable ;; # also notsupported: one thread for each core, or a hypervisor that does not tell
	esac
}

turbo() {
	local pstate=$root/sys/devices/system/cpu/intel_pstate/no_turbo boost=$root/sys/devices/system/cpu/cpufreq/boost
	if [[ -r $pstate ]]; then
		if [[ $(<"$pstate") = 0 ]]; then echo on; else echo off; fi
	elif [[ -r $boost ]]; then
		if [[ $(<"$boost") = 1 ]]; then echo on; else echo off; fi
	else
		echo unavailable
	fi
}

# governor_files: of the processors that are on. One that smt has taken away keeps its file, and whoever reads it gets EBUSY from newer kernels.
governor_files() {
	local f
	for f in "$root"/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do
		if [[ -e $f && $(cat "${f%/cpufreq/*}/online" 2>/dev/null) != 0 ]]; then printf '%s\n' "$f"; fi
	done
}

governor() {
	local all f
	all=$(governor_files | while read -r f; do cat "$f" 2>/dev/null || echo unknown; done | sort -u)
	case $(wc -w <<<"$all") in
	0) echo unavailable ;;
	1) echo "$all" ;;
	*) echo mixed ;;
	esac
}

huge_pages_file=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
huge_pages() { cat "$root$huge_pages_file" 2>/dev/null || echo unavailable; }

# nofile: what containerd has, and hence gives to containers that ask for nothing.
nofile() {
	local pid
	pid=$(systemctl show -p MainPID --value containerd 2>/dev/null || echo 0)
	awk '/^Max open files/ { print $4 }' "/proc/$pid/limits" 2>/dev/null || echo unavailable
}

swap() { if [[ $(wc -l <"$root/proc/swaps") -gt 1 ]]; then echo on; else echo off; fi; }

# time_sync: chrony, timesyncd or other when they say that the clock is synchronised.
time_sync() {
	if command -v chronyc >/dev/null && timeout 5 chronyc -n tracking 2>/dev/null | grep -q '^Leap status *: Normal'; then
		echo chrony
	elif [[ $(timeout 5 timedatectl show -p NTPSynchronized --value 2>/dev/null) = yes ]]; then
		if systemctl is-active --quiet systemd-timesyncd; then echo timesyncd; else echo other; fi
	else
		echo none
	fi
}

# module NAME: loaded, builtin, unavailable, or unknown where the kernel came without a list of what is built into it.
module() {
	local name=${1//-/_} builtin
	builtin=/lib/modules/$(uname -r)/modules.builtin
	if grep -qs "^$name " /proc/modules; then
		echo loaded
	elif [[ -d /sys/module/$name ]] || { [[ -r $builtin ]] && tr - _ <"$builtin" | grep -q "/$name\.ko$"; }; then
		echo builtin
	elif [[ $name = br_netfilter && -d /proc/sys/net/bridge ]]; then
		echo builtin
	elif [[ -r $builtin ]]; then
		echo unavailable
	else
		echo unknown
	fi
}

# --- setting it -------------------------------------------------------------

apply_cpu() {
	[[ $SMT = unchanged ]] || set_file /sys/devices/system/cpu/smt/control "$SMT"
	case $TURBO in
	on) set_file /sys/devices/system/cpu/intel_pstate/no_turbo 0 && set_file /sys/devices/system/cpu/cpufreq/boost 1 ;;
	off) set_file /sys/devices/system/cpu/intel_pstate/no_turbo 1 && set_file /sys/devices/system/cpu/cpufreq/boost 0 ;;
	esac
	[[ $GOVERNOR != unchanged ]] || return 0
	local f
	while read -r f; do set_file "${f#"$root"}" "$GOVERNOR"; done < <(governor_files) # after smt, which takes processors away
}

apply_memory() {
	[[ $HUGE_PAGES = unchanged ]] || set_file "$huge_pages_file" "$HUGE_PAGES"
	if [[ $SWAP = off && $(swap) = on ]]; then
		note swap on
		swapoff -a || say "swap cannot be switched off"
	fi
}

# What Kubernetes needs of the kernel, and many pods of inotify. Raised, never lowered.
apply_kernel() {
	local m
	for m in $MODULES; do modprobe -q "$m" 2>/dev/null || true; done
	set_file /proc/sys/net/ipv4/ip_forward 1
	set_file /proc/sys/net/bridge/bridge-nf-call-iptables 1
	raise /proc/sys/fs/inotify/max_user_instances 8192
	raise /proc/sys/fs/inotify/max_user_watches 524288
}

raise() {
	if [[ -e $root$1 && $(<"$root$1") -lt $2 ]]; then set_file "$1" "$2"; fi
}

apply_nofile() {
	local dir=/etc/systemd/system/containerd.service.d wanted
	[[ $NOFILE != unchanged ]] || return 0
	wanted=$(printf '[Service]\nLimitNOFILE=%s' "$NOFILE")
	[[ $(cat "$dir/90-assay.conf" 2>/dev/null) != "$wanted" ]] || return 0
	mkdir -p "$dir"
	printf '%s\n' "$wanted" >"$dir/90-assay.conf"
	systemctl daemon-reload
	systemctl try-restart containerd # its containers go on
}

apply_time() {
	[[ $TIME_SYNC = chrony ]] && command -v chronyd >/dev/null || return 0
	local sources=$root/etc/chrony/sources.d/assay.sources s new=''
	for s in $NTP_SERVERS; do new+="server $s iburst"$'\n'; done
	if [[ -n $new && $(cat "$sources" 2>/dev/null) != "${new%$'\n'}" ]]; then
		mkdir -p "${sources%/*}"
		printf %s "$new" >"$sources"
		systemctl try-restart chrony
	elif [[ -z $new && -e $sources ]]; then
		rm "$sources"
		systemctl try-restart chrony
	fi
	systemctl is-enabled --quiet chrony || note chrony off
	systemctl enable --now --quiet chrony || say "chrony does not start"
	timeout 60 chronyc -n waitsync 30 0 0 1 >/dev/null 2>&1 || say "chrony has not synchronised the clock within a minute"
}

# --- the report -------------------------------------------------------------

# fact NAME ASKED IS: a label, and a complaint if it is not what was asked for.
fact() {
	printf 'label %s/%s=%s\n' "$prefix" "$1" "$3"
	[[ $2 = unchanged || $2 = "$3" ]] && return
	missing=1
	if [[ $3 = unavailable ]]; then
		printf 'not-set %s: asked for %s, this machine does not offer it\n' "$1" "$2"
	else
		printf 'not-set %s: asked for %s, it is %s\n' "$1" "$2" "$3"
	fi
}

report() {
	local m
	missing=0
	fact smt "$SMT" "$(smt)"
	fact turbo "$TURBO" "$(turbo)"
	fact governor "$GOVERNOR" "$(governor)"
	fact huge-pages-2mi "$HUGE_PAGES" "$(huge_pages)"
	fact swap "$SWAP" "$(swap)"
	[[ -n $root ]] || fact nofile "$NOFILE" "$(nofile)"
	fact time-sync "$TIME_SYNC" "$(time_sync)"
	for m in $MODULES; do
		printf 'label %s/module-%s=%s\n' "$prefix" "$m" "$(module "$m")"
		case $(module "$m") in
		unavailable)
			missing=1
			printf 'not-set kernel module %s: this kernel does not have it\n' "$m"
			;;
		unknown)
			missing=1
			printf 'not-set kernel module %s: it cannot be told whether this kernel has it\n' "$m"
			;;
		esac
	done
	if [[ $missing = 0 ]]; then m=complete; else m=incomplete; fi
	printf 'label %s/preparation=%s\n' "$prefix" "$m"
}

restore() {
	[[ -e $before ]] || return 0
	local path value
	while read -r path value; do
		if [[ $path = swap ]]; then
			swapon -a || true
		elif [[ $path = chrony ]]; then
			systemctl disable --now --quiet chrony || true
		elif [[ -e $root$path ]]; then
			{ printf '%s\n' "$value" >"$root$path"; } 2>/dev/null || say "the kernel refuses $value in $path"
		fi
	done < <(tac "$before")
	rm -f "$before"
}

main() {
	set -a
	SMT=unchanged TURBO=unchanged GOVERNOR=unchanged HUGE_PAGES=unchanged NOFILE=unchanged SWAP=unchanged TIME_SYNC=unchanged
	NTP_SERVERS='' MODULES=''
	# shellcheck source=/dev/null
	if [[ -r $root/etc/assay/machine.env ]]; then . "$root/etc/assay/machine.env"; fi
	set +a
	case ${1:-} in
	apply)
		apply_cpu
		apply_memory
		apply_kernel
		[[ -n $root ]] || apply_nofile
		apply_time
		report
		;;
	report) report ;;
	restore) restore ;;
	*)
		say "usage: machine.sh apply|report|restore"
		exit 2
		;;
	esac
}

main "$@" </dev/null
