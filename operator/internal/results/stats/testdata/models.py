"""Writes models.json: measurement windows, runs in order and models of all points, and what NumPy and SciPy say of them, for TestModelsAgreeWithSciPy.

    python3 -m venv venv && venv/bin/pip install numpy==2.2.6 scipy==1.15.3
    venv/bin/python models.py models.json

Each number is found another way than in Go where there is one. The slope of a window is SciPy's linear regression. The best levels of a window are looked for
from its end, by recursion. The variance of runs that wander is a quadratic form in the covariance of a random walk. Whether variances are unlike is said by
SciPy's test of Bartlett, of samples that have these variances.
"""

import functools
import json
import math
import sys

import numpy as np
from scipy import optimize, special, stats

assert np.__version__ == "2.2.6", np.__version__


def grows(deviations, correction):
    """By how much the variance of a mean grows since neighbours depend on each other."""
    f = np.dot(deviations[1:], deviations[:-1]) / np.dot(deviations, deviations) + correction / len(deviations)
    f = min(0.95, max(0.0, f))
    return (1 + f) / (1 - f)


def levels(z, penalty):
    """The first batch of each level, of the split that costs least."""

    @functools.cache
    def best(start):
        options = [(penalty + len(z[start:]) * np.var(z[start:]), ())]
        for end in range(start + 2, len(z) - 1):
            cost, rest = best(end)
            options.append((cost + penalty + (end - start) * np.var(z[start:end]), (end, *rest)))
        return min(options)

    return [0, *best(0)[1]]


def window(rng, kind):
    n = int(rng.choice([50, 100, 150]))
    noise = rng.normal(0, 10, n)
    if kind == "dependent":
        for i in range(1, n):
            noise[i] += 0.8 * noise[i - 1]
    t = np.arange(n) / n
    shape = {
        "steady": 100 + 0 * t,
        "dependent": 100 + 0 * t,
        "warms up": 100 * (1 - 0.5 * np.exp(-t * 10)),
        "falls": 100 - 20 * t,
        "steps": np.where(t < 0.6, 100, 70),
    }[kind]
    xs = np.round(np.maximum(0, shape + noise), 3)
    z = xs.reshape(-1, 5).mean(axis=1)
    errors = [np.sum((z[d:] - z[d:].mean()) ** 2) / len(z[d:]) ** 2 for d in range(len(z) // 2 + 1)]
    d = int(np.argmin(errors))
    apart = 0.0
    if d:
        rest = z[d:]
        apart = abs(z[:d].mean() - rest.mean()) / (rest.std(ddof=1) * math.sqrt(grows(rest - rest.mean(), 2) * (1 / d + 1 / len(rest))))
    line = stats.linregress(np.arange(len(z)), z)
    residuals = z - line.intercept - line.slope * np.arange(len(z))
    k = grows(residuals, 4)
    p = 2 * stats.t.sf(abs(line.slope) / (line.stderr * math.sqrt(k)), max(1, len(z) / k - 2))
    one, two = (np.mean((xs[lag:] - xs[:-lag]) ** 2) for lag in (1, 2))
    f = min(0.95, max(0.0, two / one - 1))
    alone = np.quantile(np.diff(z) ** 2, 0.5, method="inverted_cdf") / (2 * 0.4549)
    variance = max(alone, one / 2 * (1 + f) / (1 - f) ** 2 / 5)
    starts = levels(z, 3 * max(variance, 1e-6 * z.mean() ** 2) * math.log(len(z)))
    return {"Observations": xs.tolist(), "Truncation": d, "Apart": apart, "Rise": line.slope * len(z) / z.mean(), "P": p, "Variance": variance, "Starts": starts}


def runs(rng):
    a, b = int(rng.integers(1, 5)), int(rng.integers(2, 6))
    places = rng.permutation(a + b)
    if rng.random() < 0.5:  # one after the other, which widens most
        places = np.arange(a + b)
    means = [float(f"{m:.6g}") for m in 100 + np.cumsum(rng.normal(0, rng.choice([1, 5]), a + b))[places] + rng.normal(0, 0.5, a + b)]
    at = {"A": sorted((int(p), m) for p, m in zip(places[:a], means[:a])), "B": sorted((int(p), m) for p, m in zip(places[a:], means[a:]))}
    steps = [(y[1] - x[1]) ** 2 / (y[0] - x[0]) for group in at.values() for x, y in zip(group, group[1:])]
    walk = np.array([[min(p, q) for q in range(a + b)] for p in range(a + b)], float)
    weights = np.zeros(a + b)
    weights[[p for p, _ in at["A"]]] = -1 / a
    weights[[p for p, _ in at["B"]]] = 1 / b
    wandering = math.sqrt(np.mean(steps) * (weights @ walk @ weights))
    ys, xs = np.array([m for _, m in at["B"]]), np.array([m for _, m in at["A"]])
    pooled = math.sqrt((np.sum((xs - xs.mean()) ** 2) + np.sum((ys - ys.mean()) ** 2)) / (a + b - 2) * (1 / a + 1 / b))
    se, freedom = (wandering, len(steps)) if wandering > pooled else (pooled, a + b - 2)
    d = ys.mean() - xs.mean()
    half = stats.t.ppf(0.975, freedom) * se
    return {**at, "Difference": [d - half, d, d + half], "P": 2 * stats.t.sf(abs(d) / se, freedom), "Widened": bool(wandering > pooled)}


def blocks(rng):
    points, n = int(rng.integers(4, 14)), int(rng.integers(2, 8))
    spread = rng.lognormal(0, rng.choice([0, 0.5, 1.5]), points)
    x = np.outer(rng.uniform(1, 100, points), np.ones(n)) * (1 + rng.normal(0, 0.03, n) + 0.03 * spread[:, None] * rng.normal(0, 1, (points, n)))
    x = np.maximum(np.round(x, 5), 1e-5)
    own = n - 1
    d = x / x.mean(axis=1, keepdims=True) - 1
    rounds = d.mean(axis=0)
    squares = np.sum((d - rounds) ** 2, axis=1)
    v = points / (points - 2) * (squares - squares.sum() / (points * (points - 1))) / own
    v = np.maximum(v, squares / own / 4)
    v = np.maximum(v, 1e-5 * np.sort(v)[points // 2])
    logs = np.log(v) - special.digamma(own / 2) + math.log(own / 2)
    beyond = logs.var(ddof=1) - special.polygamma(1, own / 2)
    prior, middle = math.inf, v.mean()
    if beyond > 0:
        prior = 2 * optimize.brentq(lambda y: special.polygamma(1, y) - beyond, 1e-3, 1e9, xtol=1e-14, rtol=1e-14)
        middle = math.exp(logs.mean() + special.digamma(prior / 2) - math.log(prior / 2))
    shape = np.linspace(-1, 1, n)
    shape /= shape.std(ddof=1)
    unlike = stats.bartlett(*(math.sqrt(s) * shape for s in v)).pvalue < 0.001
    if unlike and points < 12 and n < 5:
        middle = max(middle, v.mean())
    v = np.full(points, middle) if math.isinf(prior) else np.maximum(middle, (prior * middle + own * v) / (prior + own))
    freedom = min(prior + own * (1 if unlike else max(1, 2 - 6 / points)), own * (points - 1))
    ratio = x[0].mean() / x[1].mean()
    half = stats.t.ppf(0.975, freedom) * math.sqrt((v[0] + v[1]) / n)
    mean = x[0].mean()
    of_rounds = rounds.var(ddof=1) / n
    of_trials = max(0.0, v[0] / n - v.sum() / points**2 / n)
    both = of_trials + of_rounds
    of_both = 1 / ((of_trials / both) ** 2 / freedom + (of_rounds / both) ** 2 / own)
    half_mean = mean * stats.t.ppf(0.975, of_both) * math.sqrt(both)
    return {"Samples": x.tolist(), "Ratio": [ratio * math.exp(-half), ratio, ratio * math.exp(half)], "Mean": [mean - half_mean, mean, mean + half_mean]}


rng = np.random.default_rng(31)
kinds = ["steady", "dependent", "warms up", "falls", "steps"]
found = {"Windows": [window(rng, kinds[i % 5]) for i in range(50)], "Runs": [runs(rng) for _ in range(60)], "Blocks": [blocks(rng) for _ in range(60)]}
json.dump(found, open(sys.argv[1], "w"))
