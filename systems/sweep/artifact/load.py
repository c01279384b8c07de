#!/usr/bin/env python3
"""Eight clients in a closed loop; prints one row of the table."""
import argparse
import random
import socket
import sys
import threading
import time

a = argparse.ArgumentParser()
a.add_argument("--policy")
a.add_argument("--shards", type=int)
a.add_argument("--seconds", type=float)
a.add_argument("--port", type=int)
a.add_argument("hosts", nargs="+")
a = a.parse_args()

times, errors, lock, end = [], [], threading.Lock(), time.monotonic() + a.seconds


def client(number):
    mine, rng = [], random.Random(number)
    try:
        with socket.create_connection((a.hosts[number % len(a.hosts)], a.port), timeout=5) as s:
            answers = s.makefile("rb")
            while time.monotonic() < end:
                begin = time.monotonic()
                s.sendall(b"%d\n" % rng.randrange(1 << 20))
                if not answers.readline():
                    raise OSError("the server closed the connection")
                mine.append(time.monotonic() - begin)
    except OSError as e:
        errors.append(e)
    with lock:
        times.extend(mine)


threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
if not times:
    sys.exit(f"nothing was counted: {errors}")
times.sort()
at = lambda q: 1e6 * times[min(len(times) - 1, int(q * len(times)))]
print(f"{a.policy}\t{a.shards}\t{len(times) / a.seconds:.1f}\t{at(0.5):.0f}\t{at(0.99):.0f}")
