"""Systems of the simulations have equal means, and covariances and zeros like real ones."""

import numpy as np
import pytest
from scipy import stats

from benchmarks import systems


@pytest.mark.parametrize("kinds", [systems.NEAR_COPIES, ["pop", "svd", "svd", "knn"]])
def test_recommenders_have_equal_means_and_unequal_variances_of_pairs(kinds):
    values = systems.recommenders(np.random.default_rng(0), 1000, 50, kinds)
    assert np.abs(values.mean(axis=(1, 2))).max() < 0.005
    zeros = [(of_system == of_system.min()).mean() for of_system in values]
    assert zeros == pytest.approx([systems.ZEROS[kind] for kind in kinds], abs=0.01)
    variances = [np.var(a - b) for a in values for b in values if a is not b]
    assert max(variances) > 3 * min(variances)


def test_pairs_have_the_difference_that_they_claim():
    rng = np.random.default_rng(0)
    system, baseline = systems.asymmetric(rng, 1000, 100)
    assert abs((system - baseline).mean()) < 0.005
    assert stats.skew((system - baseline).ravel()) == pytest.approx(0.5, abs=0.05)
    hits, before = systems.rare_losses(rng, 1000, 100, rate=0.02)
    assert (hits - before).mean() == pytest.approx(-0.02, abs=0.002)
    assert (hits <= before).all()
    spent = systems.revenue(rng, 1000, 100, most=50)
    assert spent.max() == 50
    assert (spent > 0).mean(axis=(1, 2)) == pytest.approx([0.05, 0.05], abs=0.005)
