#!/bin/bash
# Starts on m1 the PostgreSQL that install.sh has built, loads it from m0 and writes a table.
set -euo pipefail
cd ~
export PATH=$HOME/artifact/postgresql/bin:$PATH
ssh m1 bash artifact/serve.sh
pgbench -h m1 -i -q bench >load.log 2>&1
pgbench -h m1 -c 4 -T 5 bench >bench.log
ssh m1 artifact/postgresql/bin/pg_ctl -D data -m fast stop >stop.log
awk 'BEGIN {print "ops_per_s"} /^tps/ {print $3}' bench.log >table
