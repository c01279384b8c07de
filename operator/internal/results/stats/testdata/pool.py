"""Prints what statsmodels says of the cases of TestPool.

    python3 -m venv venv && venv/bin/pip install numpy==2.3.5 scipy==1.16.3 statsmodels==0.14.5
    venv/bin/python pool.py
"""

import numpy as np
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

CASES = {
    "sites that differ": ([0.10, 0.42, 0.25, 0.61, 0.08], [0.05, 0.08, 0.04, 0.11, 0.06]),
    "sites that agree": ([1.02, 0.99, 1.00, 1.01], [0.03, 0.02, 0.04, 0.05]),
    "two sites": ([0.5, 0.9], [0.1, 0.1]),
}
for name, (y, se) in CASES.items():
    y, se = np.array(y), np.array(se)
    r = combine_effects(y, se**2, method_re="iterated", atol=1e-14)
    k, tau2 = len(y), max(0.0, r.tau2)
    w = 1 / (se**2 + tau2)
    m = np.sum(w * y) / np.sum(w)
    assert abs(m - r.mean_effect_re) < 1e-9, (m, r.mean_effect_re)
    s = np.sqrt(max(1, r.scale_hksj_re) / np.sum(w))
    t = stats.t.ppf(0.975, k - 1)
    q = np.sum((y - r.mean_effect_fe) ** 2 / se**2)
    low, high = (m - stats.t.ppf(0.975, k - 2) * np.sqrt(tau2 + s**2), m + stats.t.ppf(0.975, k - 2) * np.sqrt(tau2 + s**2)) if k > 2 else (0, 0)
    print(name, *(f"{x:.9f}" for x in (m, m - t * s, m + t * s, tau2, r.q, stats.chi2.sf(q, k - 1), max(0, r.i2), low, high)))
    assert abs(q - r.q) < 1e-9
