"""Writes scipy.json.gz: 1000 cases and what SciPy says about them, for TestAgreesWithSciPy.

    python3 -m venv venv && venv/bin/pip install numpy==2.2.6 scipy==1.15.3
    venv/bin/python cases.py scipy.json.gz

Each case has two independent samples a and b. What SciPy has a function for is that function's answer; Fieller's interval is found another way than in Go, as
the roots of its quadratic. A value that does not exist (no interval, no variation) is null. The file is the same on every run.
"""

import gzip
import json
import math
import sys

import numpy as np
from scipy import stats

assert np.__version__ == "2.2.6", np.__version__
CASES = 1000


def draw(rng, kind, n):
    match kind:
        case "normal":
            x = rng.normal(100, 10, n)
        case "lognormal":
            x = rng.lognormal(1, 1, n)
        case "around zero":
            x = rng.normal(0.5, 3, n)
        case "large":
            x = 1e9 + rng.normal(0, 1000, n)
        case "ties":
            x = rng.integers(1, 6, n).astype(float)
    return [float(f"{v:.6g}") if kind != "large" else round(float(v), 2) for v in x]


def finite(x):
    x = float(x)
    return x if math.isfinite(x) else None


def interval(result):
    ci = result.confidence_interval(0.95)
    return [finite(ci.low), finite(ci.high)]


def median(a):
    """The order-statistic interval: the narrowest of at least 95%, or that of minimum and maximum."""
    n, s = len(a), sorted(a)
    k = 1
    while k + 1 <= n // 2 and 1 - 2 * stats.binom.cdf(k, n, 0.5) >= 0.95:
        k += 1
    return [float(np.median(a)), s[k - 1], s[n - k], float(1 - 2 * stats.binom.cdf(k - 1, n, 0.5))]


def fieller(a, b):
    ma, mb = np.mean(a), np.mean(b)
    ua, ub = np.var(a, ddof=1) / len(a), np.var(b, ddof=1) / len(b)
    r = ma / mb
    if ua + r * r * ub == 0:
        return [float(r), float(r)]
    v = (ua + r**2 * ub) ** 2 / (ua**2 / (len(a) - 1) + r**4 * ub**2 / (len(b) - 1))
    t2 = stats.t.ppf(0.975, v) ** 2
    if mb**2 <= t2 * ub:
        return None
    # In units of the estimate, for the sake of the root finder's precision.
    roots = np.roots([mb**2 - t2 * ub, -2 * ma * mb, ma**2 - t2 * ua])
    if np.iscomplexobj(roots):
        return None
    return sorted(float(x) for x in roots)


def case(rng):
    kinds = ["normal", "lognormal", "around zero", "large", "ties"]
    kind = kinds[rng.integers(len(kinds))]
    most = 60 if rng.random() < 0.05 else 14
    a = draw(rng, kind, int(rng.integers(2, most)))
    b = draw(rng, kind, int(rng.integers(2, most)))
    k = min(len(a), len(b))
    u = stats.mannwhitneyu(a, b)
    tau = stats.kendalltau(a[:k], b[:k])
    slope = stats.theilslopes(b[:k], a[:k]).slope if len(set(a[:k])) > 1 and len(set(b[:k])) > 1 else None
    constant = len(set(a)) == 1
    together = [x - y for x, y in zip(a, b)]
    return {
        "a": a,
        "b": b,
        "mean": float(np.mean(a)),
        "stdDev": float(np.std(a, ddof=1)),
        "t": None if constant else interval(stats.ttest_1samp(a, 0)),
        "median": median(a),
        "welch": None if constant and len(set(b)) == 1 else interval(stats.ttest_ind(a, b, equal_var=False)),
        "fieller": fieller(a, b),
        "u": float(u.statistic),
        "uP": finite(u.pvalue),
        "paired": None if len(set(together)) == 1 else interval(stats.ttest_1samp(together, 0)),
        "tau": finite(tau.statistic),
        "tauP": finite(tau.pvalue),
        "slope": slope if slope is None else finite(slope),
    }


rng = np.random.default_rng(2026)
text = json.dumps([case(rng) for _ in range(CASES)], separators=(",", ":"))
with open(sys.argv[1], "wb") as f, gzip.GzipFile(filename="", mode="wb", fileobj=f, mtime=0, compresslevel=9) as z:
    z.write(text.encode())
