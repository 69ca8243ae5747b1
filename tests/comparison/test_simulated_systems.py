"""Systems of the simulations have equal means, and covariances and zeros like real ones."""

import numpy as np
import pytest
from scipy import stats

from benchmarks import systems
from rankframe._comparison import statistics


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


@pytest.mark.parametrize("difference", [0.0, -0.01])
def test_tilted_users_have_the_difference_and_the_values_of_their_pool(difference):
    rng = np.random.default_rng(0)
    pool = systems.two_models(rng, 500, 1)[:, :, 0]
    drawn = systems.tilted(rng, pool, 1000, 200, difference)
    assert (drawn[0] - drawn[1]).mean() == pytest.approx(difference, abs=0.003)
    assert np.isin(drawn[0], pool[0]).all()


@pytest.mark.parametrize("clusters", [10, 30, 100])
def test_clusters_of_unequal_size_keep_the_level_of_t(clusters):
    """By CR1 with G − 1 degrees of freedom, t finds a difference in 7 to 16%."""
    means, sizes = systems.unequal_clusters(np.random.default_rng(clusters), clusters, 4000)
    p = statistics.t_test(statistics.Sample(means, sizes), 0.95).p
    assert (p < 0.05).mean() == pytest.approx(0.05, abs=0.012)
    spread = (sizes * (means - statistics.weighted_mean(means, sizes))) ** 2
    error = np.sqrt(clusters / (clusters - 1) * spread.sum(axis=0)) / sizes.sum(axis=0)
    t = np.abs(statistics.weighted_mean(means, sizes)) / error
    assert (2 * stats.t.sf(t, clusters - 1) < 0.05).mean() > 0.06
