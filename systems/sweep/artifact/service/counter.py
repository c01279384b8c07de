#!/usr/bin/env python3
"""Counts per key. A shard is one lock, or one queue with a thread of its own."""
import argparse
import queue
import socketserver
import threading
import time

a = argparse.ArgumentParser()
a.add_argument("--policy", choices=["lock", "queue"], required=True)
a.add_argument("--shards", type=int, required=True)
a.add_argument("--port", type=int, required=True)
a = a.parse_args()

WORK = 0.0005  # seconds that one count takes, within its shard


class Shard:
    def __init__(self):
        self.counts, self.lock, self.jobs = {}, threading.Lock(), queue.Queue()
        if a.policy == "queue":
            threading.Thread(target=self.work, daemon=True).start()

    def add(self, key):
        if a.policy == "lock":
            with self.lock:
                return self.count(key)
        reply = queue.Queue()
        self.jobs.put((key, reply))
        return reply.get()

    def work(self):
        while True:
            key, reply = self.jobs.get()
            reply.put(self.count(key))

    def count(self, key):
        time.sleep(WORK)
        self.counts[key] = self.counts.get(key, 0) + 1
        return self.counts[key]


shards = [Shard() for _ in range(a.shards)]


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            key = int(line)
            self.wfile.write(b"%d\n" % shards[key % len(shards)].add(key))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 64


with Server(("0.0.0.0", a.port), Handler) as server:
    print("ready", flush=True)
    server.serve_forever()
