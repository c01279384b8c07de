#!/usr/bin/env python3
"""Prints the flags that the artifact's own scripts give its programs.

usage: commands.py CHECKOUT CONFIG.json...

For each configuration it calls get_replica_cmd and get_client_cmd of the checkout's
experiment-scripts/lib/indicus_codebase.py, for the first point of the first series, the first
replica and the first client. It writes one line for each flag:

    CONFIG.json server --flag=value

testdata/commands.txt of operator/internal/pequin is its output. A test compares that with what
`kubectl assay import pequin` makes of the same configurations.
"""
import json
import os
import shlex
import sys


def first(value, depth):
    """The value of a setting in the first series, or in its first point."""
    for _ in range(depth):
        if isinstance(value, list):
            value = value[0]
    return value


def point(config):
    """The configuration at its first point, as the artifact's generator makes it."""
    loops = config.get("experiment_independent_vars", [])
    for number, names in enumerate(loops):
        for name in names:
            if name in config and number == 0:
                config[name] = first(config[name], 1)
    for name in loops[1] if len(loops) > 1 else []:
        config[name] = first(config[name], 1)
    return config


def flags(command):
    """Each flag and its value, whether they are written as one word or as two."""
    words = [w.strip("()&;") for w in shlex.split(command.replace(";", " "))]
    for i, word in enumerate(words):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals and i + 1 < len(words) and not words[i + 1].startswith(("--", "1>")):
                value = words[i + 1]
            yield name, value


def main():
    checkout, files = sys.argv[1], sys.argv[2:]
    sys.path.insert(0, os.path.join(checkout, "experiment-scripts"))
    import lib.experiment_codebase  # noqa: F401 -- the other module needs it to be first
    from lib.indicus_codebase import IndicusCodebase

    codebase = IndicusCodebase()
    for file in files:
        with open(file) as f:
            config = point(json.load(f))
        for program, command in (
            ("server", codebase.get_replica_cmd(config, 0, 0, 0, 0, "/local", "/remote")),
            ("client", codebase.get_client_cmd(config, 0, 0, 0, 0, "/local", "/remote")),
        ):
            for name, value in flags(command):
                print(os.path.basename(file), program, f"--{name}={value}")


if __name__ == "__main__":
    main()
