"""Writes trends.json: trends within rounds, and what other code says about them, for TestFindTrendWithin.

    python3 -m venv venv && venv/bin/pip install numpy==2.2.6 scipy==1.15.3
    venv/bin/python trends.py trends.json

P is the share of all orders of all rounds, each tried, whose C - D is as far from 0; with deviations, C - D is first divided by the root of how much greater its
variance is. That is from SciPy's bivariate normal distribution: the chance that two differences with a point in common have the same sign. With ties P is that
of the normal distribution, with the variance of independent rounds with ties.
"""

import itertools
import json
import math
import sys

import numpy as np
from scipy import stats

assert np.__version__ == "2.2.6", np.__version__


def net(y):
    return sum(np.sign(y[i] - y[j]) for i in range(len(y)) for j in range(i))


def orthant(rho):
    """E[sign(u) sign(v)] of standard normals with this correlation."""
    both = stats.multivariate_normal.cdf([0, 0], cov=[[1, rho], [rho, 1]], abseps=1e-12, releps=1e-12)
    return 4 * both - 1


def variance(sd):
    n = len(sd)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    total = 0.0
    for i, j in pairs:
        for k, l in pairs:
            a, b = np.zeros(n), np.zeros(n)
            a[i], a[j], b[k], b[l] = 1, -1, 1, -1
            cov = (a * b * np.array(sd) ** 2).sum()
            rho = cov / math.sqrt(((a * np.array(sd)) ** 2).sum() * ((b * np.array(sd)) ** 2).sum())
            total += 1.0 if (i, j) == (k, l) else orthant(rho) if abs(rho) > 1e-12 else 0.0
    return total


def case(rounds, sd=None):
    s = sum(net(y) for y in rounds)
    alike = sum(len(y) * (len(y) - 1) * (2 * len(y) + 5) / 18 for y in rounds)
    if sd:
        s *= math.sqrt(alike / sum(max(len(y) * (len(y) - 1) * (2 * len(y) + 5) / 18, variance(sd)) for y in rounds))
    ties = any(len(set(y)) < len(y) for y in rounds)
    if ties:
        alike -= sum(t * (t - 1) * (2 * t + 5) / 18 for y in rounds for t in np.unique(y, return_counts=True)[1])
        p = 2 * stats.norm.sf(abs(s) / math.sqrt(alike))
    else:
        counts = {0: 1}
        for y in rounds:
            of = {}
            for order in itertools.permutations(range(len(y))):
                of[net(order)] = of.get(net(order), 0) + 1
            added = {}
            for a, m in counts.items():
                for b, k in of.items():
                    added[a + b] = added.get(a + b, 0) + m * k
            counts = added
        p = sum(m for a, m in counts.items() if abs(a) >= abs(s) - 1e-9) / sum(counts.values())
    return {"Rounds": [[float(v) for v in y] for y in rounds], "Deviations": sd, "P": min(1.0, p)}


rng = np.random.default_rng(30)
cases = []
for _ in range(40):
    n, k = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    cases.append(case([np.round(rng.normal(np.arange(n) * rng.choice([0, 0.5]), 1), 6) for _ in range(k)]))
for _ in range(20):
    n, k = int(rng.integers(3, 6)), int(rng.integers(2, 6))
    sd = [float(f"{v:.3g}") for v in rng.uniform(0.01, 0.1, n)]
    cases.append(case([np.round(rng.normal(np.arange(n) * 0.5, 1), 6) for _ in range(k)], sd))
for _ in range(10):
    n, k = int(rng.integers(3, 7)), int(rng.integers(2, 6))
    cases.append(case([rng.integers(0, 3, n).astype(float) for _ in range(k)]))
json.dump(cases, open(sys.argv[1], "w"))
