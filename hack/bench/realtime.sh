# shellcheck shell=bash
# Sourced by steal.sh.

# no_real_time PROC: prints the control group of this process, and what to do, if the kernel gives
# that group no time for programs of real-time priority. PROC is /proc. It prints nothing of a
# kernel without such a limit (no RT_GROUP_SCHED, or no cpu controller of version 1).
no_real_time() {
	local mount group file
	mount=$(awk '$3 == "cgroup" && ("," $4 ",") ~ /,cpu,/ { print $2; exit }' "$1/mounts")
	group=$(awk -F: '("," $2 ",") ~ /,cpu,/ { print $3; exit }' "$1/self/cgroup")
	file=$mount${group%/}/cpu.rt_runtime_us
	[[ -n $mount && -n $group && -r $file && $(<"$file") = 0 ]] || return 0
	cat <<-TEXT
		the control group $group has no time for programs of real-time priority: $file is 0.
		Move this shell to a group that has some: echo \$\$ >$mount/cgroup.procs
		Or give it to this group, after the groups above it: echo 900000 >$file
	TEXT
}
