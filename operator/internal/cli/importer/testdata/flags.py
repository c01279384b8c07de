"""Prints the flags that the scripts of a clone of the Pequin artifact give its programs.

usage: flags.py SCRIPTS CONFIG.json...

SCRIPTS is the clone's experiment-scripts. For each configuration it calls their get_replica_cmd and
get_client_cmd, for the first point of the first series, the first replica and the first client. It
writes one line for each flag, with the number of the configuration: 0 server --flag=value. What the
scripts cannot do for a configuration is a line, too: 0 error TEXT.
"""
import json
import shlex
import sys


def first(value):
    return value[0] if isinstance(value, list) else value


def point(config):
    """The configuration at its first point, as the artifact's generator makes it."""
    loops = config.get("experiment_independent_vars", [])
    for names in loops[:2]:
        for name in names:
            if name in config:
                config[name] = first(config[name])
    return config


def flags(command):
    """Each flag and its value, whether they are written as one word or as two."""
    words = [w.strip("()&;") for w in shlex.split(command.replace(";", " "))]
    for word, following in zip(words, words[1:] + ["--"]):
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if not equals and not following.startswith(("--", "1>")):
                value = following
            yield name, value


def main():
    sys.path.insert(0, sys.argv[1])
    import lib.experiment_codebase  # noqa: F401 -- the other module needs it to be first
    from lib.indicus_codebase import IndicusCodebase

    codebase = IndicusCodebase()
    for number, file in enumerate(sys.argv[2:]):
        try:
            with open(file) as f:
                config = point(json.load(f))
            for program, command in (
                ("server", codebase.get_replica_cmd(config, 0, 0, 0, 0, "/local", "/remote")),
                ("client", codebase.get_client_cmd(config, 0, 0, 0, 0, "/local", "/remote")),
            ):
                for name, value in flags(command):
                    print(number, program, f"{name}={value}")
        except Exception as e:  # pylint: disable=broad-except -- of the clone's code
            print(number, "error", repr(e))


if __name__ == "__main__":
    main()
