#!/bin/bash
# How many sessions the other machines serve one after the other, in each of four rows.
cd ~ || exit 1
echo "scheme threads ops_per_s" >table
ssh m1 'mkdir -p logs'
for scheme in lock queue; do
	for threads in 1 4; do
		echo "== $scheme $threads"
		# shellcheck disable=SC2029 # the words are this machine's
		ssh m1 "echo serving $scheme $threads >>logs/server.log"
		served=0 end=$((SECONDS + 5))
		while ((SECONDS < end)); do
			for m in m1 m2; do
				ssh -o ConnectTimeout=1 "$m" true && served=$((served + 1))
			done
		done
		echo "$scheme $threads $((served / 5))" >>table
		echo "== row written"
		sleep 0.5
	done
done
