"""Prints cases for TestReplicationsAgreeWithSciPy.

    python3 -m venv venv && venv/bin/pip install numpy==2.3.5 scipy==1.17.0
    venv/bin/python replications.py

The effect of small telescopes is a root of the power of a two-sided test. The sceptical P is found from its definition: of all levels, the one at which the
sceptical prior that the original just fails to refute is as far from the replication as that level.
"""

import math

from scipy.optimize import brentq
from scipy.stats import norm

z = norm.ppf(0.975)
third = brentq(lambda d: norm.cdf(d - z) + norm.cdf(-d - z) - 1 / 3, 0, 5, xtol=1e-14)
print("one in three:", third)
for se, effect, error in [(0.05, 0.2, 0.02), (0.05, 0.05, 0.02), (3.0, -1.0, 0.5)]:
    print(f"\t\t{{{se}, {effect}, {error}, {third * se:.12g}, {norm.cdf((effect - third * se) / error):.12g}}},")


def sceptical(zo, zr, c):
    def conflict(t):  # of the replication with the prior, less the level; in standard errors of the replication
        prior = c / (zo * zo / (t * t) - 1)
        return abs(zr) / math.sqrt(prior + 1) - t

    t = brentq(conflict, 1e-9, min(abs(zo), abs(zr)) * (1 - 1e-12), xtol=1e-14)
    return norm.sf(t) if zo * zr > 0 else norm.cdf(t)


for zo, zr, c in [(3.0, 3.0, 1.0), (4.0, 2.5, 2.0), (2.0, 6.0, 0.3), (5.0, -2.0, 1.5), (20.0, 15.0, 9.0)]:
    print(f"\t\t{{{zo}, {zr}, {c}, {sceptical(zo, zr, c):.12g}}},")
