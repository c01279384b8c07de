"""Prints the levels of looks for TestLevelsOfLooks, and in how many experiments two looks are wrong by SciPy's bivariate normal distribution.

    python3 -m venv venv && venv/bin/pip install numpy==2.3.5 scipy==1.16.3
    venv/bin/python looks.py
"""

import numpy as np
from scipy import optimize, stats


def levels(first, last, alpha=0.05, points=4001):
    """Two-sided levels, by Simpson's rule over the sums that have crossed no bound yet."""
    out, spent, sums = [], 0.0, None
    for n in range(first, last + 1):
        share = alpha * n / last - spent
        spent += share
        if sums is None:
            z = stats.norm.isf(share / 2)
        else:
            x, mass = sums
            z = optimize.brentq(lambda z: np.sum(mass * (stats.norm.sf(z * np.sqrt(n) - x) + stats.norm.cdf(-z * np.sqrt(n) - x))) - share, 0, 12, xtol=1e-13)
        out.append(2 * stats.norm.sf(z))
        y = np.linspace(-z * np.sqrt(n), z * np.sqrt(n), points)
        weight = np.full(points, 2.0)
        weight[1:-1:2], weight[0], weight[-1] = 4, 1, 1
        density = stats.norm.pdf(y, scale=np.sqrt(first)) if sums is None else np.array([np.sum(mass * stats.norm.pdf(v - x)) for v in y])
        sums = y, density * weight * (y[1] - y[0]) / 3
    return out


for first, last in [(3, 3), (3, 4), (3, 10), (5, 20)]:
    print(first, last, *(f"{x:.9f}" for x in levels(first, last)))
z = [stats.norm.isf(x / 2) for x in levels(3, 4)]
r = np.sqrt(3 / 4)
print("two looks together:", 1 - stats.multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf(z, lower_limit=[-x for x in z]))
