#!/usr/bin/env bash
# run.sh FOLDER: run benchmark programs for 2 s at least, each against a server on the loopback
# address. FOLDER/NAME.out is what a program prints, and FOLDER/NAME.want its numbers, taken out by
# want.py and not by Assay. A program that is not there, or that ran for less, is named and left out.
#
# It installs the programs from Debian, the Go module proxy and Maven Central, at the versions below
# and in pom.xml; INSTALL=no takes what is there. ONLY="wrk hey" runs these alone.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd)
export GOBIN=$folder/bin CGO_ENABLED=0
seconds=3 # of the programs that take a time
least=2   # seconds that each must have run
only=${ONLY:-wrk hey vegeta ghz gatling jmeter ycsb redis-benchmark iperf3 fio nats-bench etcd-benchmark kafka-producer-perf-test pgbench sysbench}
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

debian=(wrk sysbench redis-server fio iperf3 postgresql etcd-server default-jdk-headless maven)
modules=(github.com/rakyll/hey@v0.1.4 github.com/tsenart/vegeta/v12@v12.13.0 github.com/bojand/ghz/cmd/ghz@v0.120.0
  github.com/nats-io/nats-server/v2@v2.15.2 github.com/nats-io/natscli/nats@v0.5.0)
etcd=v3.6.8 # its benchmark cannot be installed by a version: its go.mod has replacements
install_programs() {
  local module program profile
  apt-get install -y -q --no-install-recommends "${debian[@]}" >"$folder/apt.log" 2>&1 || echo "apt-get failed: see $folder/apt.log"
  for module in "${modules[@]}"; do
    program=${module%@*} && program=${program%/v[0-9]*}
    [[ -x $GOBIN/${program##*/} ]] || go install "$module" >>"$folder/go.log" 2>&1 || echo "$module cannot be built: see $folder/go.log"
  done
  if [[ ! -x $GOBIN/benchmark ]]; then
    rm -rf "$folder/etcd-module" && mkdir -p "$folder/etcd-module"
    (cd "$folder/etcd-module" && go mod init example.com/programs && go get "go.etcd.io/etcd/v3/tools/benchmark@$etcd" && go install go.etcd.io/etcd/v3/tools/benchmark) \
      >>"$folder/go.log" 2>&1 || echo "the benchmark of etcd cannot be built: see $folder/go.log"
  fi
  for profile in ycsb jmeter gatling kafka; do
    [[ -d $folder/$profile ]] || mvn -q -B -f "$here/pom.xml" -P "$profile" dependency:copy-dependencies "-DoutputDirectory=$folder/$profile" \
      >>"$folder/mvn.log" 2>&1 || echo "the jars of $profile cannot be fetched: see $folder/mvn.log"
  done
}
if [[ ${INSTALL:-yes} == yes ]]; then install_programs; fi
PATH=$GOBIN:$PATH
for programs in /usr/lib/postgresql/*/bin; do PATH=$PATH:$programs; done
export PATH

wanted() { [[ " $only " == *" $1 "* ]]; }
left_out() { echo "left out: $1, since $2"; rm -f "$folder/$1.out"; return 1; }

# keep NAME COMMAND...: run a program, and keep what it prints.
keep() {
  local name=$1 began took; shift
  command -v "$1" >/dev/null || { left_out "$name" "$1 is not there"; return; }
  began=$(date +%s%N)
  timeout 300 "$@" >"$folder/$name.out" 2>"$folder/$name.err" || { left_out "$name" "it failed: $(tail -1 "$folder/$name.err")"; return; }
  took=$(($(date +%s%N) - began))
  ((took >= least * 1000000000)) || { left_out "$name" "it ran for $((took / 1000000)) ms only"; return; }
  echo "ran: $name, $((took / 1000000)) ms"
}
# numbers NAME [FILE]: take the numbers out of what a program printed.
numbers() {
  local name=$1
  python3 "$here/want.py" "$@" <"$folder/$name.out" >"$folder/$name.want" || { rm -f "$folder/$name.want"; left_out "$name" "want.py does not know its output" || true; }
}
# count NAME COUNT COMMAND...: as keep, for a program that carries out a number of operations, which
# is @N@ in the command. It is doubled until the program runs long enough.
count() {
  local name=$1 n=$2; shift 2
  for _ in 1 2 3 4 5 6 7 8; do
    if keep "$name" "${@//@N@/$n}" >"$folder/$name.tries"; then cat "$folder/$name.tries"; return; fi
    grep -q 'ms only' "$folder/$name.tries" || break
    n=$((2 * n))
  done
  cat "$folder/$name.tries"
  return 1
}
# server NAME COMMAND...: start it, and end it at last.
server() {
  local name=$1; shift
  "$@" >"$folder/$name.log" 2>&1 & pids+=($!)
}
# up PORT: wait until a server listens.
up() {
  for _ in $(seq 120); do (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return; sleep 0.5; done
  echo "nothing listens at port $1"
}

rm -f "$folder"/*.out "$folder"/*.want
url=http://127.0.0.1:18080/
go build -o "$folder/bin/hello" "$here/server"
server hello "$folder/bin/hello"
up 18080

if wanted wrk && keep wrk wrk --latency -t1 -c4 -d${seconds}s $url; then numbers wrk; fi
if wanted hey && keep hey hey -z ${seconds}s -c 4 $url; then numbers hey; fi
if wanted vegeta; then
  echo "GET $url" >"$folder/vegeta.targets"
  if keep vegeta vegeta attack -rate 300 -duration ${seconds}s -output "$folder/vegeta.bin" -targets "$folder/vegeta.targets"; then
    vegeta report "$folder/vegeta.bin" >"$folder/vegeta.out"
    vegeta report -type=json "$folder/vegeta.bin" >"$folder/vegeta.json"
    numbers vegeta "$folder/vegeta.json"
  fi
fi
if wanted ghz && keep ghz ghz --insecure -O json --call grpc.health.v1.Health.Check -z ${seconds}s -c 4 127.0.0.1:18081; then numbers ghz; fi
if wanted gatling; then
  mkdir -p "$folder/gatling-classes"
  rm -rf "$folder/gatling-results"
  if javac -cp "$folder/gatling/*" -d "$folder/gatling-classes" "$here/Hello.java" &&
    keep gatling java -Durl=$url -cp "$folder/gatling-classes:$folder/gatling/*" io.gatling.app.Gatling -s Hello -nr -bf "$folder/gatling-classes" -rf "$folder/gatling-results"; then
    mv "$folder/gatling.out" "$folder/gatling.console"
    mv "$folder"/gatling-results/*/simulation.log "$folder/gatling.out"
    numbers gatling "$folder/gatling.console"
  fi
fi
if wanted jmeter; then
  home=$folder/jmeter-home
  rm -rf "$home" "$folder/jmeter.jtl"
  mkdir -p "$home/lib/ext" "$home/lib/junit"
  if (cd "$home" && jar xf "$folder"/jmeter/ApacheJMeter_config-*.jar) &&
    keep jmeter java "-Djmeter.home=$home" -cp "$folder/jmeter/*" org.apache.jmeter.NewDriver -n -d "$home" -t "$here/plan.jmx" -l "$folder/jmeter.jtl" -j "$folder/jmeter.log"; then
    mv "$folder/jmeter.out" "$folder/jmeter.console"
    mv "$folder/jmeter.jtl" "$folder/jmeter.out"
    numbers jmeter "$folder/jmeter.console"
  fi
fi
if wanted ycsb && keep ycsb java -cp "$folder/ycsb/*" site.ycsb.Client -t -db site.ycsb.BasicDB -threads 4 -p workload=site.ycsb.workloads.CoreWorkload \
  -p recordcount=1000 -p operationcount=100000000 -p maxexecutiontime=$seconds -p basicdb.verbose=false -p basicdb.simulatedelay=2; then numbers ycsb; fi

if wanted redis-benchmark; then
  server redis redis-server --port 16379 --bind 127.0.0.1 --save ''
  up 16379
  if count redis-benchmark 50000 redis-benchmark -p 16379 -t set -n @N@ -c 8; then numbers redis-benchmark; fi
fi
if wanted iperf3; then
  server iperf3-server iperf3 -s -p 15201 -B 127.0.0.1
  sleep 1 # a connection that asks nothing confuses it
  if keep iperf3 iperf3 -J -c 127.0.0.1 -p 15201 -t $seconds; then numbers iperf3; fi
fi
if wanted fio && keep fio fio --name=a --filename="$folder/fio.data" --size=16m --rw=randrw --bs=4k --time_based --runtime=$seconds --output-format=json --group_reporting; then numbers fio; fi
if wanted nats-bench; then
  server nats nats-server -a 127.0.0.1 -p 14222
  up 14222
  if count nats-bench 500000 nats -s nats://127.0.0.1:14222 bench pub subject --clients 2 --msgs @N@ --no-progress; then numbers nats-bench; fi
fi
if wanted etcd-benchmark; then
  at=http://127.0.0.1:12379 peer=http://127.0.0.1:12380
  rm -rf "$folder/etcd-data"
  server etcd etcd --data-dir "$folder/etcd-data" --listen-client-urls $at --advertise-client-urls $at --listen-peer-urls $peer --initial-advertise-peer-urls $peer --initial-cluster default=$peer
  up 12379
  # It prints the 99.9th percentile of 1000 requests and more.
  if count etcd-benchmark 2000 benchmark put --endpoints=127.0.0.1:12379 --clients=4 --conns=2 --total=@N@; then numbers etcd-benchmark; fi
fi
if wanted kafka-producer-perf-test; then
  cat >"$folder/kafka.properties" <<END
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:19093
listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093
advertised.listeners=PLAINTEXT://127.0.0.1:19092
controller.listener.names=CONTROLLER
log.dirs=$folder/kafka-data
offsets.topic.replication.factor=1
END
  rm -rf "$folder/kafka-data"
  if java -cp "$folder/kafka/*" kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qg -c "$folder/kafka.properties" --standalone >"$folder/kafka-format.log" 2>&1; then
    server kafka java -Xmx512m -cp "$folder/kafka/*" kafka.Kafka "$folder/kafka.properties"
    up 19092
    if count kafka-producer-perf-test 10000 java -cp "$folder/kafka/*" org.apache.kafka.tools.ProducerPerformance --topic t --num-records @N@ --record-size 100 \
      --throughput -1 --producer-props bootstrap.servers=127.0.0.1:19092; then numbers kafka-producer-perf-test; fi
  else left_out kafka-producer-perf-test "its server cannot be set up: see $folder/kafka-format.log" || true; fi
fi
if wanted pgbench || wanted sysbench; then
  if command -v initdb >/dev/null && id postgres >/dev/null 2>&1; then
    rm -rf "$folder/pg"; install -d -o postgres "$folder/pg"
    su postgres -s /bin/sh -c "PATH=$PATH initdb -D '$folder/pg' -A trust" >"$folder/initdb.log" 2>&1 || echo "initdb failed: see $folder/initdb.log"
    server postgres su postgres -s /bin/sh -c "PATH=$PATH exec postgres -D '$folder/pg' -p 15432 -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
    for _ in $(seq 60); do pg_isready -q -h 127.0.0.1 -p 15432 && break; sleep 1; done
    pg=(-h 127.0.0.1 -p 15432 -U postgres)
    if pgbench "${pg[@]}" -i -q postgres >"$folder/pg-init.log" 2>&1; then
      if wanted pgbench && keep pgbench pgbench "${pg[@]}" -n -T $seconds -c 2 postgres; then numbers pgbench; fi
    else left_out pgbench "its tables cannot be made: see $folder/pg-init.log" || true; fi
    sb=(--db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port=15432 --pgsql-user=postgres --pgsql-db=postgres --table-size=1000 oltp_read_only)
    if sysbench "${sb[@]}" prepare >"$folder/sysbench-prepare.log" 2>&1; then
      if wanted sysbench && keep sysbench sysbench --time=$seconds "${sb[@]}" run; then numbers sysbench; fi
    else left_out sysbench "its table cannot be made: see $folder/sysbench-prepare.log" || true; fi
  else echo "left out: pgbench and sysbench, since there is no PostgreSQL server or no user postgres"; fi
fi
ran=("$folder"/*.want)
echo "${#ran[@]} programs ran; their outputs are in $folder"
