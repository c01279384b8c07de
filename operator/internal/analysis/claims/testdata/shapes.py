"""Prints what TestShapesAgreeWithSciPy wants: shapes of three points with their intervals.

    python3 -m venv venv && venv/bin/pip install numpy==2.2.6 scipy==1.15.3
    venv/bin/python shapes.py

The shape is looked for as the factor that brings all points nearest, by minimisation. Fieller's intervals of the contrasts are found as roots by bisection.
"""

import math

import numpy as np
from scipy import optimize, stats

CASES = {
    "3 rounds": ([100, 200, 400], [[31, 29, 30.5], [63, 58, 61], [180, 171, 176]]),
    "4 rounds": ([100, 250, 300], [[9.1, 9.9, 9.4, 9.6], [26, 24, 25, 24.5], [33, 32, 31, 34]]),
    "the same shape": ([5, 6, 7], [[50, 51, 49.5], [60.5, 59, 60], [69, 70, 72]]),
}


def half(ratio):
    return math.expm1(abs(math.log(ratio)) / 2)


for name, (reported, trials) in CASES.items():
    x = [np.array(t, float) for t in trials]
    ratios = np.log([a.mean() / r for a, r in zip(x, reported)])
    worst = optimize.minimize_scalar(lambda factor: np.max(np.abs(ratios - factor)), bounds=(ratios.min(), ratios.max()), method="bounded", options={"xatol": 1e-12})
    shape, low, high = math.expm1(worst.fun), 0.0, 0.0
    for i in range(3):
        for j in range(i):
            a, b = x[i], x[j]
            ua, ub = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
            r = a.mean() / b.mean()
            v = (ua + r**2 * ub) ** 2 / (ua**2 / (len(a) - 1) + r**4 * ub**2 / (len(b) - 1))
            t = stats.t.ppf(0.975, v)
            outside = lambda q: (a.mean() - q * b.mean()) ** 2 - t**2 * (ua + q**2 * ub)
            ends = np.array([optimize.bisect(outside, r / 10, r, xtol=1e-15), optimize.bisect(outside, r, 10 * r, xtol=1e-15)])
            by = reported[j] / reported[i]
            strict = (r + (ends - r) * stats.t.ppf(1 - 0.025 / 3, v) / t) * by
            high = max(high, *map(half, ends * by))
            if strict[0] > 1 or strict[1] < 1:
                low = max(low, min(map(half, strict)))
    print(name, *(f"{n:.9f}" for n in (low, shape, high)))
