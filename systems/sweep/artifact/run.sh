#!/bin/bash
# Table 1: how a counter service scales with its shards. Run it on m0; m1 and m2 serve.
set -u
cd ~/artifact
. ./settings.sh
servers=$(grep -v '^#' machines.txt | tail -n +2)
mkdir -p ~/results
table=~/results/table1.tsv
printf 'policy\tshards\tops_per_s\tp50_us\tp99_us\n' >$table

for m in $servers; do
	ssh "$m" 'rm -rf ~/serve; mkdir -p ~/serve/log'
	scp -q -r service "$m":serve/
done

for policy in lock queue; do
	for shards in 1 4; do
		echo "--- $policy with $shards shards"
		for m in $servers; do
			ssh "$m" "cd serve; nohup python3 service/counter.py --policy $policy --shards $shards --port $PORT >log/$policy-$shards.log 2>&1 &"
		done
		for m in $servers; do
			until ssh "$m" "grep -q ready serve/log/$policy-$shards.log"; do sleep 0.1; done
		done
		python3 load.py --policy $policy --shards $shards --seconds $SECONDS_PER_ROW --port $PORT $servers >>$table ||
			echo "no result for $policy with $shards shards" >&2
		for m in $servers; do ssh "$m" 'pkill -f counter.py'; done
		sleep 0.2
	done
done

for m in $servers; do
	mkdir -p ~/results/logs/"$m"
	scp -q "$m:serve/log/*" ~/results/logs/"$m"/
done
echo "wrote $table"
