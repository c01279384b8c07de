"""want.py NAME [FILE]: the numbers of a benchmark program's output, which is on stdin.

FILE is what else the program printed: the console of Gatling and JMeter, vegeta's report as JSON.
A line is a name as the samples of operator/internal/results/benchmarks have it, and a number in operations,
operations per second, or milliseconds.
"""

import csv
import io
import json
import math
import re
import sys

UNITS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1e3, "m": 60e3}
text = sys.stdin.read()


def other():
    with open(sys.argv[2]) as f:
        return f.read()


def put(**numbers):
    for name, x in numbers.items():
        print(name, repr(float(x)))


def one(pattern, source=None):
    """The first group of the first line that matches."""
    found = re.findall(pattern, text if source is None else source, re.M)
    assert found, pattern
    return found[0]


def total(pattern):
    """The sum of a number that is printed where there is something to count."""
    return sum(int(x) for x in re.findall(pattern, text, re.M))


def plain(number):
    return float(number.replace(",", ""))


def time_of(duration):
    """1m2.5s, 402us in milliseconds."""
    return sum(float(x) * UNITS[u] for x, u in re.findall(r"([\d.]+)(ns|us|µs|ms|s|m)", duration))


def wrk():
    n, t = one(r"(\d+) requests in ([\d.]+\w+),")
    put(committed=n, throughput=int(n) / time_of(t) * 1e3, mean=time_of(one(r"^ +Latency +(\d\S+)")))
    put(errors=total(r"Non-2xx or 3xx responses: (\d+)"), timeouts=total(r"Socket errors: .*timeout (\d+)"))
    for p in 50, 75, 90, 99:
        put(**{f"P{p}": time_of(one(rf"^ +{p}% +(\S+)"))})


def hey():
    n = total(r"\[200\]\t(\d+) responses")
    put(errors=total(r"\[[013-9]\d\d\]\t(\d+) responses") + total(r"^  \[(\d+)\]\t\D"))
    put(committed=n, throughput=n / float(one(r"Total:\t([\d.]+) secs")))
    put(mean=1e3 * float(one(r"Average:\t([\d.]+)")), max=1e3 * float(one(r"Slowest:\t([\d.]+)")))
    for p in 50, 90, 95, 99:
        put(**{f"P{p}": 1e3 * float(one(rf"^  {p}%+ in ([\d.]+) secs"))})


def vegeta():
    r = json.loads(other())
    # The text is rounded: to hundredths, and to thousandths of the unit of a time.
    put(errors=r["requests"] - r["status_codes"]["200"])
    put(committed=r["status_codes"]["200"], throughput=round(r["throughput"], 2))
    for ours, theirs in {"mean": "mean", "max": "max", "P50": "50th", "P90": "90th", "P95": "95th", "P99": "99th"}.items():
        t = r["latencies"][theirs]
        step = 1 if t < 1e6 else 1e3 if t < 1e9 else 1e6
        put(**{ours: round(t / step) * step / 1e6})


def ghz():
    r = json.loads(text)
    n = r["statusCodeDistribution"]["OK"]
    put(committed=n, errors=r["count"] - n, throughput=n / (r["total"] / 1e9), mean=r["average"] / 1e6, max=r["slowest"] / 1e6)
    for d in r["latencyDistribution"]:
        if d["percentage"] in (50, 90, 95, 99):
            put(**{f"P{d['percentage']}": d["latency"] / 1e6})


def of_records(latencies, committed, errors):
    """A log with a line for each operation; the counts are those of the program's own summary."""
    latencies.sort()
    put(committed=committed, errors=errors, mean=sum(latencies) / len(latencies), max=latencies[-1])
    for p in 50, 75, 90, 95, 99:
        put(**{f"P{p}": latencies[math.ceil(p * len(latencies) / 100) - 1]})


def gatling():
    rows = [line.split("\t") for line in text.splitlines() if line.startswith("REQUEST")]
    # The progress is printed several times; the last one is of all.
    ok, ko = re.findall(r"> Global +\(OK=(\d+) +KO=(\d+) *\)", other())[-1]
    of_records([float(r[4]) - float(r[3]) for r in rows if r[5] == "OK"], ok, ko)


def jmeter():
    rows = [r for r in csv.DictReader(io.StringIO(text)) if r["success"] == "true"]
    n, failed = re.findall(r"summary = +(\d+) in .* Err: +(\d+)", other())[-1]
    of_records([float(r["elapsed"]) for r in rows], int(n) - int(failed), failed)


def ycsb():
    n = total(r"^\[(?:READ|UPDATE)\], Operations, (\d+)")
    put(errors=total(r"^\[(?:READ|UPDATE)-FAILED\], Operations, (\d+)"))
    put(committed=n, throughput=1000 * n / float(one(r"RunTime\(ms\), (\d+)")))
    for ours, theirs in {"mean": "AverageLatency", "max": "MaxLatency", "P95": "95thPercentileLatency", "P99": "99thPercentileLatency"}.items():
        put(**{ours: float(one(rf"^\[READ\], {theirs}\(us\), ([\d.]+)")) / 1e3})


def redis_benchmark():
    lines = text.replace("\r", "\n")
    row = lines[lines.index("latency summary"):].splitlines()[2].split()
    put(committed=one(r"(\d+) requests completed", lines), throughput=one(r"throughput summary: ([\d.]+)", lines))
    put(mean=row[0], P50=row[2], P95=row[3], P99=row[4], max=row[5])


def iperf3():
    r = json.loads(text)["end"]
    put(committed=r["sum_received"]["bytes"], throughput=r["sum_received"]["bits_per_second"] / 8, retransmits=r["sum_sent"]["retransmits"])


def fio():
    job = json.loads(text[text.index("{"):])["jobs"][0]
    put(committed=sum(job[k]["total_ios"] for k in ("read", "write")), throughput=sum(job[k]["iops"] for k in ("read", "write")))
    read = job["read"]
    put(mean=read["lat_ns"]["mean"] / 1e6, max=read["lat_ns"]["max"] / 1e6)
    for ours, theirs in {"P50": "50.000000", "P95": "95.000000", "P99": "99.000000", "P999": "99.900000", "P9999": "99.990000"}.items():
        put(**{ours: read["clat_ns"]["percentile"][theirs] / 1e6})


def nats_bench():
    put(committed=sum(plain(x) for x in re.findall(r"\(([\d,]+) msgs\)$", text, re.M)), throughput=plain(one(r"aggregated stats: ([\d,]+) msgs/sec")))
    line = one(r"^ latencies per operation (.*)$")
    for ours, theirs in {"mean": "avg", "max": "max", "P50": "P50", "P90": "P90", "P99": "P99", "P999": r"P99\.9:"}.items():
        put(**{ours: plain(one(rf"(?:^|\| ){theirs} ([\d.,]+)us", line)) / 1e3})


def etcd_benchmark():
    put(throughput=one(r"Requests/sec:\t([\d.]+)"), committed=total(r"^  [\d.]+ \[(\d+)\]\t\|"), errors=total(r"^  \[(\d+)\]\t\D"))
    put(mean=1e3 * float(one(r"Average:\t([\d.]+)")), max=1e3 * float(one(r"Slowest:\t([\d.]+)")))
    for p in "50", "90", "95", "99", "99.9":
        put(**{f"P{p.replace('.', '')}": 1e3 * float(one(rf"^  {re.escape(p)}% in ([\d.]+) secs"))})


def kafka_producer_perf_test():
    line = [x for x in text.splitlines() if "50th" in x][-1]
    put(committed=one(r"^(\d+) records sent", line), throughput=one(r"([\d.]+) records/sec", line))
    put(mean=one(r"([\d.]+) ms avg", line), max=one(r"([\d.]+) ms max", line))
    for ours, theirs in {"P50": "50th", "P95": "95th", "P99": "99th", "P999": r"99\.9th"}.items():
        put(**{ours: one(rf"(\d+) ms {theirs}", line)})


def pgbench():
    put(committed=one(r"actually processed: (\d+)"), aborted=one(r"failed transactions: (\d+)"))
    put(throughput=one(r"tps = ([\d.]+)"), mean=one(r"latency average = ([\d.]+)"))


def sysbench():
    n, x = one(r"transactions: +(\d+) +\(([\d.]+) per sec")
    put(committed=n, throughput=x, aborted=one(r"ignored errors: +(\d+)"))
    put(mean=one(r"^ +avg: +([\d.]+)"), max=one(r"^ +max: +([\d.]+)"), P95=one(r"95th percentile: +([\d.]+)"))


globals()[sys.argv[1].replace("-", "_")]()
