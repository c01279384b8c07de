#!/bin/bash
# Says when it is, again and again: a line is written when the clock has been read.
cd ~ || exit 1
echo "ops_per_s" >table
echo 1 >>table
for ((i = 1; i <= 32; i++)); do
	sleep 0.4
	echo "beat $i at $EPOCHREALTIME"
done
sleep 1
