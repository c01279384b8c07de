#!/usr/bin/env bash
# Takes a share of every processor away while a command runs, as a hypervisor's other guests would:
# `hack/bench/steal.sh 30 make test`.
#
# usage: steal.sh PERCENT COMMAND...
# On each processor a program of real-time priority computes for PERCENT of every 10 ms, 1 to 90.
# It needs root and python3. The last line says how long the command took and what was taken. The
# exit status is the command's.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/realtime.sh"

percent=${1:-}
[[ $percent =~ ^[1-9][0-9]?$ && $percent -le 90 ]] || die "PERCENT is '$percent'; it must be from 1 to 90"
shift
[[ $# -gt 0 ]] || die "name a command: steal.sh 30 make test"

thief='
import sys, time
busy = float(sys.argv[1]) / 100 * 0.01
turn = time.monotonic()
while True:
    turn += 0.01
    while time.monotonic() < turn - 0.01 + busy:
        pass
    time.sleep(max(0, turn - time.monotonic()))
'
pids=()
trap '((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null' EXIT
for ((cpu = 0; cpu < $(nproc); cpu++)); do
	taskset -c "$cpu" chrt -f 10 python3 -c "$thief" "$percent" &
	pids+=($!)
done
sleep 1
for pid in "${pids[@]}"; do
	kill -0 "$pid" 2>/dev/null && continue
	why=$(no_real_time /proc)
	die "a program of real-time priority does not run here: ${why:-see above}"
done

began=$SECONDS status=0
"$@" || status=$?
taken=$(ps -o cputimes= -p "$(IFS=,; echo "${pids[*]}")" | awk -v s=$((SECONDS - began)) -v n="${#pids[@]}" '{ t += $1 } END { printf "%.0f", s ? 100 * t / s / n : 0 }')
say "$(((SECONDS - began) / 60)) min $(((SECONDS - began) % 60)) s with exit code $status, while $taken% of ${#pids[@]} processors were taken"
exit "$status"
