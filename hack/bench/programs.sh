#!/usr/bin/env bash
# programs.sh FOLDER: run benchmark programs for 2 s each against servers on the loopback address,
# and keep what each prints in FOLDER/NAME.out and some of its numbers, taken out by awk or Python
# and not by Assay, in FOLDER/NAME.want. A program that is not there is named and left out.
#
# It installs what it can from Debian and from the Go module proxy, at the versions below.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
export GOBIN=$folder/bin CGO_ENABLED=0
seconds=2
pids=()

# stop ends the servers. PostgreSQL runs below su, which does not hand a signal on.
stop() {
  local pid
  if [[ -e $folder/pg/postmaster.pid ]]; then
    su postgres -s /bin/sh -c "PATH=$PATH pg_ctl -D '$folder/pg' -m immediate stop" >/dev/null || true
  fi
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
}
trap stop EXIT

if [[ ${INSTALL:-yes} == yes ]]; then
  apt-get install -y -q --no-install-recommends wrk sysbench redis-server fio iperf3 postgresql >"$folder/apt.log" 2>&1 || echo "apt-get failed: see $folder/apt.log"
  for module in github.com/rakyll/hey@v0.1.4 github.com/tsenart/vegeta/v12@v12.12.0 fortio.org/fortio@v1.69.5; do
    go install "$module" >>"$folder/go.log" 2>&1 || echo "$module cannot be built: see $folder/go.log"
  done
fi
PATH=$GOBIN:$PATH
for programs in /usr/lib/postgresql/*/bin; do PATH=$PATH:$programs; done
export PATH

# keep NAME COMMAND...: run a program, or say that it is not there.
keep() {
  local name=$1; shift
  if ! command -v "$1" >/dev/null; then echo "left out: $name, since $1 is not there"; return 1; fi
  if ! timeout 60 "$@" >"$folder/$name.out" 2>"$folder/$name.err"; then echo "left out: $name failed: $(tail -1 "$folder/$name.err")"; rm "$folder/$name.out"; return 1; fi
}
# python NAME PROGRAM: the program reads the output on stdin and prints numbers.
python() { python3 -c "import sys,re,json; text=sys.stdin.read()
$2" <"$folder/$1.out" >"$folder/$1.want"; }

rm -f "$folder"/*.out "$folder"/*.want
http=18080
mkdir -p "$folder/www" && echo hello >"$folder/www/index.html"
cat >"$folder/server.go" <<'GO'
package main

import "net/http"

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	if err := http.ListenAndServe("127.0.0.1:18080", nil); err != nil {
		panic(err)
	}
}
GO
go build -o "$folder/server" "$folder/server.go"
"$folder/server" & pids+=($!)
sleep 1
url=http://127.0.0.1:$http/

if keep wrk wrk --latency -t1 -c4 -d${seconds}s $url; then

  python wrk '
n, t = re.search(r"(\d+) requests in ([\d.]+)s", text).groups()
print("committed", n); print("throughput", int(n) / float(t))
u = {"us": 1e-3, "ms": 1, "s": 1e3}
for p in (50, 75, 90, 99):
    x, unit = re.search(r"%d%%\s+([\d.]+)(us|ms|s)" % p, text).groups(); print("P%d" % p, float(x) * u[unit])'

fi
if keep hey hey -z ${seconds}s -c 4 $url; then
  python hey '
n = sum(int(x) for x in re.findall(r"\[200\]\t(\d+) responses", text)); print("committed", n)
print("throughput", n / float(re.search(r"Total:\t([\d.]+) secs", text)[1]))
print("P99", 1000 * float(re.search(r"99%+ in ([\d.]+) secs", text)[1]))'
fi
if command -v vegeta >/dev/null; then
  echo "GET $url" | vegeta attack -rate 500 -duration ${seconds}s >"$folder/vegeta.bin"
  if keep vegeta vegeta report "$folder/vegeta.bin"; then
    vegeta report -type=json "$folder/vegeta.bin" | python3 -c '
import json, sys
r = json.load(sys.stdin); print("committed", r["status_codes"]["200"])' >"$folder/vegeta.want"
  fi
else echo "left out: vegeta is not there"; fi
if keep fortio fortio load -json - -qps 0 -c 4 -t ${seconds}s -p 50,90,99,99.9 $url; then
  python fortio '
r = json.loads(text[text.index("{"):]); n = r["RetCodes"]["200"]; print("committed", n)
print("throughput", r["ActualQPS"] * n / r["DurationHistogram"]["Count"]); print("P99", [p["Value"] * 1e3 for p in r["DurationHistogram"]["Percentiles"] if p["Percentile"] == 99][0])'
fi

if command -v redis-server >/dev/null; then
  redis-server --port 16379 --bind 127.0.0.1 --save '' --daemonize no >"$folder/redis.log" & pids+=($!)
  sleep 1
fi
if keep redis-benchmark redis-benchmark -p 16379 -t set -n 40000 -c 8; then
  python redis-benchmark '
text = text.replace("\r", "\n")
print("committed", re.search(r"(\d+) requests completed", text)[1]); print("throughput", re.search(r"throughput summary: ([\d.]+)", text)[1])
row = text[text.index("latency summary"):].splitlines()[2].split(); print("mean", row[0]); print("P50", row[2]); print("P99", row[4]); print("max", row[5])'
fi

if command -v iperf3 >/dev/null; then
  iperf3 -s -p 15201 -B 127.0.0.1 >"$folder/iperf3.log" & pids+=($!)
  sleep 1
fi
if keep iperf3 iperf3 -J -c 127.0.0.1 -p 15201 -t $seconds; then
  python iperf3 '
r = json.loads(text)["end"]["sum_received"]; print("committed", r["bytes"]); print("throughput", r["bits_per_second"] / 8)'
fi
if keep fio fio --name=a --filename="$folder/fio.data" --size=16m --rw=randrw --bs=4k --time_based --runtime=$seconds --output-format=json --group_reporting; then
  python fio '
j = json.loads(text[text.index("{"):])["jobs"][0]; print("committed", sum(j[k]["total_ios"] for k in ("read", "write"))); print("throughput", sum(j[k]["iops"] for k in ("read", "write")))
print("P99", j["read"]["clat_ns"]["percentile"]["99.000000"] / 1e6)'
fi

if command -v initdb >/dev/null && id postgres >/dev/null 2>&1; then
  rm -rf "$folder/pg"; install -d -o postgres "$folder/pg"
  su postgres -s /bin/sh -c "PATH=$PATH initdb -D '$folder/pg' -A trust >/dev/null && PATH=$PATH postgres -D '$folder/pg' -p 15432 -c listen_addresses=127.0.0.1 -c unix_socket_directories=''" >"$folder/pg.log" 2>&1 & pids+=($!)
  for _ in $(seq 60); do pg_isready -q -h 127.0.0.1 -p 15432 && break; sleep 1; done
  pg=(-h 127.0.0.1 -p 15432 -U postgres)
  pgbench "${pg[@]}" -i -q postgres >"$folder/pg-init.log" 2>&1 || true
  if keep pgbench pgbench "${pg[@]}" -n -T $seconds -c 2 postgres; then
    python pgbench '
print("committed", re.search(r"actually processed: (\d+)", text)[1]); print("throughput", re.search(r"tps = ([\d.]+)", text)[1]); print("mean", re.search(r"latency average = ([\d.]+)", text)[1])'
  fi
  sb=(--db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port=15432 --pgsql-user=postgres --pgsql-db=postgres --table-size=1000 oltp_read_only)
  sysbench "${sb[@]}" prepare >/dev/null 2>&1 || true
  if keep sysbench sysbench --time=$seconds "${sb[@]}" run; then
    python sysbench '
print("committed", re.search(r"transactions:\s+(\d+)", text)[1]); print("throughput", re.search(r"transactions:.*\(([\d.]+) per", text)[1]); print("P95", re.search(r"95th percentile:\s+([\d.]+)", text)[1])'
  fi
else echo "left out: pgbench and sysbench, since there is no PostgreSQL server or no user postgres"; fi
ran=("$folder"/*.want)
echo "${#ran[@]} programs ran; their outputs are in $folder"
