"""Prints intervals of shares whose cases come in bursts, for TestBurstyShareAgreesWithSciPy.

    python3 -m venv venv && venv/bin/pip install numpy==2.3.5 scipy==1.17.0
    venv/bin/python shares.py

The posterior is on the grid that rates.go names, from SciPy's beta-binomial distribution.
"""

import numpy as np
from scipy import stats

CASES = {
    "alike": ([20, 22, 18], [2000, 2000, 2000]),
    "one burst": ([1, 2, 90, 0, 3], [2000, 2000, 2000, 2100, 1900]),
    "few cases": ([0, 1, 0], [5000, 5000, 5000]),
    "no case": ([0, 0, 0], [2000, 2000, 2000]),
    "one trial": ([3], [1000]),
    "most are cases": ([1500, 1400, 1700], [2000, 2000, 2000]),
}


def interval(some, all_):
    some, all_ = np.array(some), np.array(all_)
    observed = (some.sum() + 0.5) / all_.sum()
    if 2 * some.sum() > all_.sum():
        low, high = interval(all_ - some, all_)
        return 1 - high, 1 - low
    logs = np.linspace(np.log(observed / 1000), np.log(min(0.9999, observed * 1000)), 140)
    c = 0.05 * (3.5 / 0.05) ** (np.arange(20) / 19)
    m, s = np.exp(logs)[:, None], 1 / c[None, :] ** 2
    total = np.log(c)[None, :] / 2 + np.log(m) / 10 + sum(stats.betabinom.logpmf(x, n, s, s * (1 - m) / m) for x, n in zip(some, all_))
    weights = np.exp(total - total.max()).sum(axis=1)
    sums = np.cumsum(weights) / weights.sum()
    at = lambda q: np.exp(np.interp(q, sums, logs))
    return at(0.025) if some.sum() else 0.0, at(0.975)


for name, (some, all_) in CASES.items():
    low, high = interval(some, all_)
    go = lambda xs: "[]int64{" + ", ".join(map(str, xs)) + "}"
    print(f'\t\t"{name}": {{{go(some)}, {go(all_)}, {low:.12g}, {high:.12g}}},')
