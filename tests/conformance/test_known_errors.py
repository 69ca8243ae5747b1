"""Known errors: a wrong implementation fails each case beside it, and a right one passes it.

The wrong ones are like code in public repositories. Each is of one list, of the users, or of the
tables; the lists are (rank, item), the best first, and ``grades`` are those of the user.
"""

from functools import partial
from math import log2

import pytest
from conformance import runner

CASES = {case["id"]: (case, tables) for path in runner.FILES for case, tables in runner.cases(path)}


def read(case, tables):
    """Make lists and grades by user, and the cut-off; equal scores by id, descending."""
    by_score, run, truth = tables["run_by"] == "score", {}, {}
    rows = sorted(tables["run"], key=lambda row: row[1], reverse=True)
    for user, item, number in sorted(rows, key=lambda row: row[2], reverse=by_score):
        places = run.setdefault(user, [])
        places.append((len(places) if by_score else number - case["first_rank"], item))
    for user, item, grade in tables["truth"]:
        truth.setdefault(user, {})[item] = grade
    run = {user: [(i + 1, item) for i, item in places] for user, places in run.items()}
    return run, truth, case["metric"].get("k") or 1000


def likes(grades):
    return {item for item, grade in grades.items() if grade > 0}


def mean(values):
    values = list(values)
    return sum(values) / len(values)


# --- right


def of_users(value, case, tables):
    """Take the mean of a value of lists over the users with a relevant item."""
    run, truth, k = read(case, tables)
    return mean(value(run.get(u, []), truth[u], k) for u in truth if likes(truth[u]))


def hits(places, grades, k):
    """List the ranks of the relevant items down to k, where each item counts once."""
    best = {item: rank for rank, item in reversed(places)}
    return sorted(best[item] for item in likes(grades) if best.get(item, k + 1) <= k)


def precision(places, grades, k):
    return len(hits(places, grades, k)) / k


def recall(places, grades, k):
    return len(hits(places, grades, k)) / len(likes(grades))


def rr(places, grades, k):
    return 1 / min(hits(places, grades, k), default=float("inf"))


def ap(places, grades, k):
    ranks = hits(places, grades, k)
    return sum(i / rank for i, rank in enumerate(ranks, 1)) / len(likes(grades))


def dcg(places, grades, k, gain=float):
    best = {item: rank for rank, item in reversed(places)}
    ranks = [(best.get(item, k + 1), grades[item]) for item in likes(grades)]
    return sum(gain(grade) / log2(rank + 1) for rank, grade in ranks if rank <= k)


def ndcg(places, grades, k, gain=float):
    ideal = sorted(likes(grades), key=grades.get, reverse=True)
    return dcg(places, grades, k, gain) / dcg([*enumerate(ideal, 1)], grades, k, gain)


def f(places, grades, k, beta=1):
    found = len(hits(places, grades, k))
    return (1 + beta**2) * found / (beta**2 * len(likes(grades)) + k)


def exponential(grade):
    return 2**grade - 1


# --- wrong, of one list


def rr_from_0(places, grades, k):
    return next((1 / (rank - 1) for rank, item in places if item in likes(grades)), 0)


def by_position(value, places, grades, k):
    return value([(i, item) for i, (_, item) in enumerate(places, 1)], grades, k)


def precision_by_length(places, grades, k):
    return len(hits(places, grades, k)) / max(len(places[:k]), 1)


def precision_of_nonzero(places, grades, k):
    return sum(bool(grades.get(item, 0)) for _, item in places[:k]) / k


def precision_of_integers(places, grades, k):
    return precision(places, {item: int(grade) for item, grade in grades.items()}, k)


def precision_of_judged(places, grades, k):
    return sum(item in grades for _, item in places[:k]) / k


def recall_of_rows(places, grades, k):
    return sum(item in likes(grades) for _, item in places[:k]) / len(likes(grades))


def recall_of_any(places, grades, k):
    return bool(hits(places, grades, k))


def rr_of_judged(places, grades, k):
    return next((1 / rank for rank, item in places if item in grades), 0)


def ap_by(divisor, places, grades, k):
    ranks, R = hits(places, grades, k), len(likes(grades))  # noqa: N806
    size = {"hits": len(ranks) or 1, "k": k, "min(k,R)": min(k, R)}[divisor]
    return sum(i / rank for i, rank in enumerate(ranks, 1)) / size


def ap_at_all_ranks(places, grades, k):
    return mean(precision(places, grades, i) for i in range(1, k + 1))


def ap_of_rows(places, grades, k):
    ranks = [rank for rank, item in places[:k] if item in likes(grades)]
    return sum(i / rank for i, rank in enumerate(ranks, 1)) / len(likes(grades))


def ndcg_of_rows(places, grades, k):
    best = sorted(grades.values(), reverse=True)[:k]
    gains = sum(grades.get(item, 0) / log2(rank + 1) for rank, item in places[:k])
    return gains / sum(gain / log2(rank + 1) for rank, gain in enumerate(best, 1))


def ndcg_of_own_top(places, grades, k):
    own = {item: grades[item] for _, item in places[:k] if item in likes(grades)}
    return ndcg(places, own, k) if own else 0


def ndcg_by_constants(places, grades, k):
    return dcg(places, grades, k) / sum(1 / log2(rank + 1) for rank in range(1, k + 1))


def ndcg_in_given_order(places, grades, k):
    return dcg(places, grades, k) / dcg([*enumerate(grades, 1)], grades, k)


def ndcg_of_whole_ideal(places, grades, k):
    ideal = sorted(likes(grades), key=grades.get, reverse=True)
    return dcg(places, grades, k) / dcg([*enumerate(ideal, 1)], grades, 1000)


def dcg_of_negative(gain, places, grades, k):
    return sum(gain(grades.get(item, 0)) / log2(rank + 1) for rank, item in places if rank <= k)


def dcg_from_rank_2(places, grades, k):
    gains = [(rank, grades.get(item, 0)) for rank, item in places if rank <= k]
    return sum(gain / max(log2(rank), 1) for rank, gain in gains)


# --- wrong, of the users


def over_hits(value, case, tables):
    run, truth, k = read(case, tables)
    values = [value(run.get(u, []), truth[u], k) for u in truth if likes(truth[u])]
    return mean(x for x in values if x > 0)


def over_lists(value, case, tables):
    run, truth, k = read(case, tables)
    return mean(value(run[u], truth[u], k) for u in truth if likes(truth[u]) and u in run)


def over_all(value, undefined, case, tables):
    run, truth, k = read(case, tables)
    users = {u: truth.get(u, {}) for u in [*truth, *run]}
    return mean(value(run.get(u, []), g, k) if likes(g) else undefined for u, g in users.items())


def recall_pooled(case, tables):
    run, truth, k = read(case, tables)
    found = sum(len(hits(run.get(u, []), truth[u], k)) for u in truth)
    return found / sum(len(likes(grades)) for grades in truth.values())


def f_of_means(case, tables):
    p, r = of_users(precision, case, tables), of_users(recall, case, tables)
    return 2 * p * r / (p + r)


# --- wrong, of the tables


def of_row_order(value, case, tables):
    run = [[user, item, rank] for rank, (user, item, _) in enumerate(tables["run"], 1)]
    return of_users(value, case, tables | {"run": run})


def of_optimistic_ties(value, case, tables):
    grades = {(user, item): grade for user, item, grade in tables["truth"]}
    run = [[u, item, score + grades.get((u, item), 0) / 1e6] for u, item, score in tables["run"]]
    return of_users(value, case, tables | {"run": run})


def of_ids_as_numbers(value, case, tables):
    both = {name: [[u, i.zfill(9), x] for u, i, x in tables[name]] for name in ("run", "truth")}
    return of_users(value, case, tables | both)


def of_positive_scores(value, case, tables):
    return of_users(value, case, tables | {"run": [row for row in tables["run"] if row[2] > 0]})


right = partial(partial, of_users)

#: What is wrong: the wrong, the right, and the cases that tell them apart.
ERRORS = {
    "queries without a hit are dropped": (
        partial(over_hits, rr),
        right(rr),
        "who_counts-01 who_counts-09",
    ),
    "users missing from the run are left out": (
        partial(over_lists, rr),
        right(rr),
        "who_counts-01 who_counts-09",
    ),
    "no relevant item counts as 1": (partial(over_all, rr, 1), right(rr), "undefined_values-09"),
    "no relevant item counts as 0": (partial(over_all, rr, 0), right(rr), "undefined_values-09"),
    "no relevant item is left out": (right(rr), partial(over_all, rr, 0), "undefined_values-10"),
    "the ideal is the own top k": (
        right(ndcg_of_own_top),
        right(ndcg),
        "ideal_lists-01 ideal_lists-05",
    ),
    "the ideal is of constants": (
        right(ndcg_by_constants),
        right(ndcg),
        "ideal_lists-01 ideal_lists-16",
    ),
    "the ideal is in the order of rows": (
        right(ndcg_in_given_order),
        right(ndcg),
        "ideal_lists-17",
    ),
    "the ideal is not cut": (right(ndcg_of_whole_ideal), right(ndcg), "ideal_lists-03"),
    "duplicates count twice": (right(recall_of_rows), right(recall), "duplicates-11"),
    "duplicates count twice in AP": (right(ap_of_rows), right(ap), "duplicates-09"),
    "duplicates count twice in nDCG": (right(ndcg_of_rows), right(ndcg), "duplicates-16"),
    "ranks from 0 are not shifted": (right(rr_from_0), right(rr), "ranks-19 ranks-20"),
    "precision divides by the length": (
        right(precision_by_length),
        right(precision),
        "denominators-02",
    ),
    "MAP divides by hits": (
        right(partial(ap_by, "hits")),
        right(ap),
        "denominators-22 denominators-25",
    ),
    "MAP divides by k": (right(partial(ap_by, "k")), right(ap), "denominators-22 denominators-38"),
    "MAP divides by min(k, R)": (right(partial(ap_by, "min(k,R)")), right(ap), "denominators-22"),
    "AP is the mean of precision": (right(ap_at_all_ranks), right(ap), "denominators-36"),
    "ties are broken optimistically": (
        partial(of_optimistic_ties, rr),
        right(rr),
        "ties-01 ties-15",
    ),
    "ids are sorted as numbers": (partial(of_ids_as_numbers, rr), right(rr), "ties-07 ties-09"),
    "negative scores are misses": (partial(of_positive_scores, ap), right(ap), "ranks-28"),
    "negative grades are gains": (right(partial(dcg_of_negative, float)), right(dcg), "grades-23"),
    "negative grades are relevant": (right(precision_of_nonzero), right(precision), "grades-25"),
    "rows of grade 0 are relevant": (right(precision_of_judged), right(precision), "grades-18"),
    "rows of grade 0 are relevant in RR": (right(rr_of_judged), right(rr), "grades-20"),
    "grades are cut to integers": (right(precision_of_integers), right(precision), "grades-15"),
    "the gain is exponential": (
        right(partial(ndcg, gain=exponential)),
        right(ndcg),
        "gains_and_discounts-01",
    ),
    "the gain is linear": (
        right(ndcg),
        right(partial(ndcg, gain=exponential)),
        "gains_and_discounts-02",
    ),
    "the gain of grade 0 is 1": (
        right(partial(dcg_of_negative, lambda grade: 2**grade)),
        right(partial(dcg, gain=exponential)),
        "gains_and_discounts-16",
    ),
    "rank 2 has no discount": (right(dcg_from_rank_2), right(dcg), "gains_and_discounts-08"),
    "gaps of ranks are closed": (right(partial(by_position, ap)), right(ap), "ranks-06"),
    "rows are taken as sorted": (partial(of_row_order, ap), right(ap), "ranks-01"),
    "the mean is pooled": (recall_pooled, right(recall), "pooled_means-01"),
    "the mean is not pooled": (right(recall), recall_pooled, "pooled_means-02"),
    "recall is the hit rate": (right(recall_of_any), right(recall), "denominators-14"),
    "F is of mean precision and recall": (f_of_means, right(f), "denominators-21"),
    "the parameter of F is its square": (
        right(partial(f, beta=2**0.5)),
        right(partial(f, beta=2)),
        "denominators-20",
    ),
}


@pytest.mark.parametrize("error", ERRORS)
def test_cases_tell_wrong_from_right(error):
    wrong, good, names = ERRORS[error]
    for name in names.split():
        case, tables = CASES[name]
        assert runner.outcome(good, case, tables) == "passed", case
        assert runner.outcome(wrong, case, tables) != "passed", case
