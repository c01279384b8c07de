# shellcheck shell=bash
# The steps of a demonstration: what each does, how long it takes, and which one failed. Sourced by
# demo.sh and demo-kind.sh, which set steps to how many there are.
number=0
title=""
began=$SECONDS
spent=0
# step TITLE WARM COLD: begins a step and says how long it takes.
step() {
	number=$((number + 1)) title=$1 began=$SECONDS spent=$(processors)
	printf '\n== Step %d of %d: %s\n   takes %s; %s the first time\n' "$number" "$steps" "$1" "$2" "$3" >&2
}
done_step() { printf '   done in %s, with %d processor-seconds\n' "$(spell $((SECONDS - began)))" $(($(processors) - spent)) >&2; }
# processors prints how many seconds of processors the programs have used that this shell started and
# that have ended. Busy neighbours change them less than the time on the wall.
processors() {
	local stat
	read -ra stat <"/proc/$$/stat"
	echo $(((stat[15] + stat[16]) / $(getconf CLK_TCK))) # cutime and cstime
}
spell() { if (($1 < 60)); then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi; }
# failed names the step; what went wrong stands above.
failed() {
	printf '\nerror: the demo failed after %s, in step %d of %d (%s). %s\n' "$(spell "$SECONDS")" "$number" "$steps" "$title" "${1:-What went wrong is said above.}" >&2
	exit 1
}
