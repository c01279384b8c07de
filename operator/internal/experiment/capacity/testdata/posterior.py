"""Prints cases for TestPosteriorAgreesWithSciPy.

    python3 -m venv venv && venv/bin/pip install numpy==2.1.3 scipy==1.14.1
    venv/bin/python posterior.py

It adds up all paths of the shared deviation, 5 to the power of the number of trials, in place of filtering them; the probabilities of a step are those of sums
of binomial numbers. The grid of capacities is the search's: quantiles are by straight lines within its cells.
"""

import itertools
import math

import numpy as np
from scipy.stats import binom, norm

LOW, HIGH, PRECISION, BEYOND = 100, 3000, 0.1, 0.15
n = math.ceil(5 * math.log(HIGH / LOW) / PRECISION)
step = math.log(HIGH / LOW) / n
grid = math.log(LOW) + (np.arange(n) + 0.5) * step
often = binom.pmf(np.arange(5), 4, 0.5)
move = np.array([[sum(binom.pmf(k, a, 0.95) * binom.pmf(b - k, 4 - a, 0.05) for k in range(b + 1)) for b in range(5)] for a in range(5)])


def posterior(trials):
    below, inside, above = 0.0, np.zeros(n), 0.0
    shared = trending = 0.0

    def model(prior, s, lapse, d, trend):
        nonlocal below, inside, above, shared, trending
        c = np.concatenate([[math.log(LOW) - 2 * s], grid, [math.log(HIGH) + 2 * s]])
        weight = prior * np.concatenate([[BEYOND], np.full(n, (1 - 2 * BEYOND) / n), [BEYOND]])
        likelihood = np.zeros(n + 2)
        chance = np.empty((len(trials), 5, n + 2))
        for i, (load, met) in enumerate(trials):
            for j in range(5):
                p = (1 - lapse) * norm.cdf((c + (j - 2) * d + trend * i - math.log(load)) / s)
                chance[i, j] = p if met else 1 - p
        for path in itertools.product(range(5), repeat=len(trials)) if d else [(2,) * len(trials)]:
            p = 1.0
            if d:
                p = often[path[0]] * math.prod(move[a, b] for a, b in zip(path, path[1:]))
            for i, j in enumerate(path):
                p = p * chance[i, j]
            likelihood += p
        weight = weight * likelihood
        below, inside, above = below + weight[0], inside + weight[1:-1], above + weight[-1]
        shared += weight.sum() if d else 0
        trending += weight.sum() if trend else 0

    deviations = [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64]
    for s in deviations:
        for lapse, prior in [(0, 0.4), (0.05, 0.25), (0.1, 0.2), (0.2, 0.15)]:
            model(0.7 * prior / len(deviations), s, lapse, 0, 0)
    for d in [0.03, 0.06, 0.12, 0.24]:
        for own in [0.25, 1]:
            model(0.25 / 8, own * d, 0, d, 0)
    for t in [0.005, 0.01, 0.02, 0.04]:
        model(0.05 / 8, 0.04, 0, 0, t)
        model(0.05 / 8, 0.04, 0, 0, -t)

    total = below + inside.sum() + above
    upto = np.concatenate([[below], below + np.cumsum(inside)]) / total
    quantiles = [math.exp(np.interp(q, upto, math.log(LOW) + step * np.arange(n + 1))) for q in (0.015, 0.5, 0.985)]
    return quantiles + [shared / total, trending / total]


for trials in [
    [(548, 1), (1300, 0), (850, 1), (1000, 0), (880, 1)],
    [(548, 1), (1300, 1), (850, 0), (1000, 0), (700, 0), (600, 0)],
    [(900, 0), (940, 1), (980, 1), (1030, 1), (1100, 1), (900, 0)],
]:
    numbers = ", ".join(f"{x:.12g}" for x in posterior(trials))
    print("\t\t{[]Trial{" + ", ".join(f"{{{load}, {'true' if met else 'false'}}}" for load, met in trials) + "}, [5]float64{" + numbers + "}},")
