"""The catalogue beyond the core metrics against brute force from the definitions.

One user at a time, in plain Python: a list of grades from the top, None where unjudged.
"""

import itertools
import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

import polars as pl
import pytest
import reference
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import rankframe as rf

#: Drawn tables may have nothing in common, or no relevant item: warnings, which others test.
pytestmark = pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")

LEVELS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
GAINS = {"linear": float, "exponential": lambda grade: 2.0**grade - 1}


def dcg(gains, i):
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:i], start=1))


def err(grades, top):
    """Expected reciprocal rank of a list of grades ≥ 0."""
    value, goes_on = 0.0, 1.0
    for rank, grade in enumerate(grades, start=1):
        stop = (2**grade - 1) / 2**top
        value += goes_on * stop / rank
        goes_on *= 1 - stop
    return value


class Listed:
    """What one user's list and judgments say; a method is a metric.

    `top` is the highest grade in the whole truth, of any user.
    """

    def __init__(self, ranks, grades, relevant_at, top):
        self.level = relevant_at or 1
        self.top = top
        self.truth = list(grades.values())
        self.total = sum(grade >= self.level for grade in self.truth)
        # the list from the top: grades, gains and, counted from 1, the ranks of the hits
        self.listed = [grades.get(item) for item in sorted(ranks, key=ranks.get)]
        self.n = len(self.listed)
        self.gains = [max(grade or 0, 0) for grade in self.listed]
        self.hits = [rank for rank, gain in enumerate(self.gains, start=1) if gain >= self.level]
        self.ideal = sorted((grade for grade in self.truth if grade > 0), reverse=True)
        self.m = len(self.ideal)

    def c(self, i):
        """Hits among the first i."""
        return sum(rank <= i for rank in self.hits)

    def misses_above(self, rank):
        """Judged items above this rank that are not relevant."""
        above = self.listed[: rank - 1]
        return sum(grade is not None and 0 <= grade < self.level for grade in above)

    # precision at points

    def interpolated_precision(self, recall, points="nearest"):
        wanted = recall * self.total
        if points == "nearest":
            needed = int(Decimal(wanted).quantize(Decimal(1), ROUND_HALF_UP))
        else:
            needed = math.floor(wanted + 0.9)
        if needed > len(self.hits):
            return 0.0
        start = self.hits[needed - 1] if needed else 1
        return max((self.c(j) / j for j in range(start, self.n + 1)), default=0.0)

    def eleven_point_precision(self, points="nearest", levels=LEVELS):
        found = [self.interpolated_precision(recall, points) for recall in levels]
        return math.fsum(found) / len(found)

    def r_precision(self, multiple=1):
        k = math.floor(multiple * self.total + 0.9)
        return self.c(k) / k

    def set_ap(self):
        return reference.ratio(len(self.hits) ** 2, self.n * self.total)

    def yaap(self):
        summed = math.fsum(self.c(rank) / rank for rank in self.hits)
        return math.log((1 + summed) / (1 + self.total - summed))

    # incomplete judgments

    def bpref(self):
        misses = sum(0 <= grade < self.level for grade in self.truth)
        value = 0.0
        for rank in self.hits:
            above = self.misses_above(rank)
            value += 1 - min(above, self.total) / min(misses, self.total) if above else 1
        return value / self.total

    def infap(self):
        epsilon, value = 0.00001, 0.0
        for i in self.hits:
            if i == 1:
                value += 1
                continue
            a, v = self.c(i - 1), self.misses_above(i)
            u = sum(grade is not None and grade < 0 for grade in self.listed[: i - 1])
            pooled = (a + v + u) / (i - 1)
            value += 1 / i + (i - 1) / i * pooled * (a + epsilon) / (a + v + 2 * epsilon)
        return value / self.total

    # gains

    def g(self):
        value = 0.0
        for i, gain in enumerate(self.gains, start=1):
            padded = [*self.ideal, *[0] * i][:i]
            best = sum(max(1, each) for each in padded)
            if gain > 0:
                value += gain / math.log2(2 + best - sum(self.gains[:i]))
        return value / sum(self.ideal)

    def bin_g(self):
        return math.fsum(1 / math.log2(2 + i - self.c(i)) for i in self.hits) / self.total

    def ndcg(self, i):
        return dcg(self.gains, i) / dcg(self.ideal, i)

    def ndcg_rel(self):
        found = [i for i, gain in enumerate(self.gains, start=1) if gain > 0]
        missed = (self.m - len(found)) * dcg(self.gains, self.n) / dcg(self.ideal, self.m)
        return (math.fsum(map(self.ndcg, found)) + missed) / self.m

    def rndcg(self):
        levels = sorted(set(self.ideal), reverse=True)
        terms = [self.ndcg(sum(grade >= level for grade in self.ideal)) for level in levels]
        if self.n >= self.m + 2:
            terms.append(dcg(self.gains, self.n) / dcg(self.ideal, self.m))
        return math.fsum(terms) / len(terms)

    def err(self, k=None, max_grade=None):
        return err(self.gains[:k], max_grade or self.top)

    def nerr(self, k=None, max_grade=None):
        return self.err(k, max_grade) / err(self.ideal[:k], max_grade or self.top)

    def rbp(self, k=None, p=0.8, gain="binary", max_grade=None, divide_by="one"):
        def biased(grades):
            value = 0.0
            for i, grade in enumerate(grades, start=1):
                useful = {
                    "binary": float(grade >= self.level),
                    "graded": grade / (max_grade or self.top),
                    "user": grade / max(self.ideal, default=1),
                }
                value += (1 - p) * p ** (i - 1) * useful[gain]
            return value

        value = biased(self.gains[:k])
        if divide_by == "one":
            return value
        return reference.ratio(value, biased(self.ideal[: len(self.listed[:k])]))

    def gap(self, k=None, gain="linear"):
        gains = [GAINS[gain](grade) for grade in self.gains]
        value = 0.0
        for i, one in enumerate(gains[:k], start=1):
            value += sum(min(one, other) for other in gains[:i]) / i
        return value / math.fsum(GAINS[gain](grade) for grade in self.ideal)

    # readers who go on with a chance

    def reading(self, k, max_grade, chance):
        """What a reader finds who goes on from rank i, T_i met, with chance(i, T_i): per rank read.

        Without k the list goes on, misses only: where the weights fall as 1/i² their sum beyond
        the last is that of the integral.
        """
        useful = [grade / (max_grade or self.top) for grade in self.gains[:k]]
        found, read, weight, met = 0.0, 0.0, 1.0, 0.0
        for i in range(1, (k or 10_000) + 1):
            own = useful[i - 1] if i <= len(useful) else 0.0
            met += own
            found += weight * own
            read += weight
            weight *= chance(i, met)
        if k is None:
            going = math.sqrt(chance(i, met))  # (w - 1) / w
            w = 1 / (1 - going)
            read += weight * w**2 / (w - 0.5)
        return found / read

    def insq(self, k=None, goals=1, max_grade=None):
        return self.reading(
            k, max_grade, lambda i, met: ((i + 2 * goals - 1) / (i + 2 * goals)) ** 2
        )

    def inst(self, k=None, goals=1, max_grade=None):
        def chance(i, met):
            left = goals - met
            return ((i + goals + left - 1) / (i + goals + left)) ** 2

        return self.reading(k, max_grade, chance)

    def compatibility(self, p=0.95, divide_by="ideal"):
        """By the depths: the nearest ideal list has equal grades in the order of the list."""
        found = sorted((-grade, i) for i, grade in enumerate(self.gains, start=1) if grade > 0)
        missed = list(self.ideal)
        for grade, _ in found:
            missed.remove(-grade)
        places = [*found, *((-grade, math.inf) for grade in missed)]
        ranks = [i for _, i in sorted(places)]
        depths = range(1, max(self.n, self.m) + 1)
        both = [sum(max(i, j) <= d for j, i in enumerate(ranks, start=1)) for d in depths]
        common = math.fsum(p ** (d - 1) * x / d for d, x in zip(depths, both, strict=True))
        best = math.fsum(p ** (d - 1) * min(d, self.m) / d for d in depths)
        return common / (best if divide_by == "ideal" else math.fsum(p ** (d - 1) for d in depths))

    # Sakai's

    def blended(self, i, beta, gain):
        """(hits + β·gain) / (rank + β·ideal gain) at rank i."""
        gain_of = GAINS.get(gain, lambda grade: float(grade >= self.level))
        gained = sum(map(gain_of, self.gains[:i]))
        ideal = sum(map(gain_of, self.ideal[:i]))
        return (self.c(i) + beta * gained) / (i + beta * ideal)

    def q(self, k=None, beta=1, gain="linear"):
        kept = [i for i in self.hits if k is None or i <= k]
        divisor = self.total if k is None else min(k, self.total)
        return math.fsum(self.blended(i, beta, gain) for i in kept) / divisor

    def o_measure(self, beta=1, gain="linear"):
        return self.blended(self.hits[0], beta, gain) if self.hits else 0.0

    def best_rank(self):
        return self.gains.index(max(self.gains)) + 1

    def p_measure(self, beta=1, gain="linear"):
        return self.blended(self.best_rank(), beta, gain) if self.hits else 0.0

    def p_plus(self, beta=1, gain="linear"):
        if not self.hits:
            return 0.0
        kept = [i for i in self.hits if i <= self.best_rank()]
        return math.fsum(self.blended(i, beta, gain) for i in kept) / len(kept)

    # rows of the list, and counts

    def unjudged(self, k):
        return sum(grade is None or grade < 0 for grade in self.listed[:k]) / k

    def judged(self, k):
        return reference.ratio(sum(grade is not None for grade in self.listed[:k]), min(k, self.n))

    def rbp_residual(self, p=0.8, counts="always"):
        unjudged = [i for i, grade in enumerate(self.listed, start=1) if grade is None or grade < 0]
        if counts == "unjudged" and not unjudged:
            return 0.0
        return p**self.n + (1 - p) * math.fsum(p ** (i - 1) for i in unjudged)

    def utility(self, relevant=1, nonrelevant=-1, missed=0, rest=0, collection=0):
        c = len(self.hits)
        others = collection + c - self.n - self.total
        kept = relevant * c + nonrelevant * (self.n - c)
        return float(kept + missed * (self.total - c) + rest * others)

    def auc(self, k=None, only_hits="null"):
        """Share of the pairs of a hit and a miss among the first k that have the hit above."""
        places = range(1, len(self.listed[:k]) + 1)
        hits = [i for i in places if i in self.hits]
        pairs = [hit < miss for hit in hits for miss in places if miss not in self.hits]
        if hits and not pairs and only_hits == "one":
            return 1.0
        return sum(pairs) / len(pairs) if pairs else None

    def in_order(self, items, misses):
        """Number of the pairs that have the relevant item above; None is below all that is listed.

        A list is taken to go on with misses."""
        ranks = [self.hits[j] if j < len(self.hits) else math.inf for j in range(items)]
        listed = [i for i in range(1, self.n + 1) if i not in self.hits]
        places = [listed[j] if j < len(listed) else self.n + 1 + j for j in range(misses)]
        return sum(rank < place for rank in ranks for place in places)

    def pauc(self, k):
        return self.in_order(self.total, k) / (k * self.total)

    def pap(self, k):
        items = min(k, self.total)
        return self.in_order(items, k) / (k * items)

    def lauc(self, k, collection):
        misses = collection - self.total
        if not misses:
            return None
        return self.in_order(self.c(k), misses) / misses / min(k, self.total)

    # agreement of order and grades, hits and misses

    def in_and_out_of_order(self):
        """Number of judged items of the list, and of their pairs with the higher grade above, and
        with the lower one."""
        grades = [grade for grade in self.listed if grade is not None and grade >= 0]
        pairs = list(itertools.combinations(grades, 2))
        return len(grades), sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)

    def concordance(self):
        _, above, below = self.in_and_out_of_order()
        return above / (above + below) if above + below else None

    def kendall_tau_b(self):
        n, above, below = self.in_and_out_of_order()
        differ = above + below
        return (above - below) / math.sqrt(n * (n - 1) / 2 * differ) if differ else None

    def fallout(self, k=None, collection=None):
        first = self.listed[:k]
        if collection is None:
            missed = self.misses_above(len(first) + 1)
            others = sum(0 <= grade < self.level for grade in self.truth)
        else:
            missed, others = len(first) - self.c(len(first)), collection - self.total
        return missed / others if others else None

    def mcc(self, k=None, collection=None):
        tp = self.c(len(self.listed[:k]))
        fp, fn = len(self.listed[:k]) - tp, self.total - tp
        tn = collection - tp - fp - fn
        if not tn + fp:
            return None
        divisor = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
        return (tp * tn - fp * fn) / divisor if divisor else 0.0

    def mean_hit_rank(self, k=None):
        ranks = [rank for rank in self.hits if k is None or rank <= k]
        return sum(ranks) / len(ranks) if ranks else None

    def mpr(self, collection):
        """Each unlisted item has the mean place of all that the list lacks."""
        places = [i - 1 for i, gain in enumerate(self.gains, start=1) for _ in range(int(gain))]
        rest = [*range(self.n, collection)]
        missed = sum(self.ideal) - len(places)
        total = sum(places) + (missed * sum(rest) / len(rest) if missed else 0)
        return total / (collection - 1) / sum(self.ideal)

    def lrap(self):
        shares = [self.c(rank) / rank for rank in self.hits]
        return math.fsum(shares) / len(shares) if shares else None

    def average_recall(self, k):
        return math.fsum(self.c(j) / self.total for j in range(1, k + 1)) / k

    def num_retrieved(self):
        return self.n

    def missed(self):
        return float(self.n == 0)

    def abstention_recall(self):
        return float(self.n == 0)

    def num_missed(self):
        return int(self.n == 0)

    def num_relevant(self):
        return self.total

    def num_hits(self, k=None):
        return len(self.hits) if k is None else self.c(k)

    def num_nonrelevant(self, k=None, of="listed"):
        if of == "judged":
            return self.misses_above((self.n if k is None else k) + 1)
        return len(self.listed[:k]) - self.num_hits(k)

    def arhr(self, k=None):
        return math.fsum(1 / rank for rank in self.hits if k is None or rank <= k)


OF_ROWS = {"missed", "num_missed"}
OF_ROWS |= {"utility", "rbp_residual", "unjudged", "judged", "num_retrieved", "num_nonrelevant"}
OF_GAINS = {"g", "ndcg_rel", "err", "nerr", "num_relevant", "num_hits"}
OF_GAINS |= {"gap", "insq", "inst", "compatibility", "mpr"}
OF_PAIRS = {"concordance", "kendall_tau_b"}  # which may have none
SUMMED = {"num_missed", "num_retrieved", "num_relevant", "num_hits", "num_nonrelevant"}


def is_defined(name, grades, *, relevant_at=None, gain="binary", **_):
    """Whether a user with these judgments has a value: by rows, by gains, or by relevant items."""
    if name in OF_ROWS or name in OF_PAIRS:
        return len(grades) > 0
    if name == "abstention_recall":
        return len(grades) > 0 and all(grade < (relevant_at or 1) for grade in grades.values())
    by_gain = name in OF_GAINS or (name == "rbp" and gain != "binary")
    least = 1 if by_gain else relevant_at or 1
    return any(grade >= least for grade in grades.values())


def per_user(table, metrics, *, users, undefined, relevant_at, unjudged, depth):
    """Rows (user, *values), sorted, of `metrics` = (name, k, parameters), ..."""
    top = max(grade for _, grades in table.values() for grade in grades.values())
    rows = []
    for (_, user), (ranks, grades) in table.items():
        if not reference.is_selected(ranks, grades, users, relevant_at):
            continue
        kept = reference.cut(ranks, grades, depth=depth, unjudged=unjudged)
        listed = Listed(kept, grades, relevant_at, top)
        row = [user]
        for name, k, parameters in metrics:
            value = None
            if is_defined(name, grades, relevant_at=relevant_at, **parameters):
                cut = () if k is None else (k,)
                value = getattr(listed, name)(*cut, **parameters)
            row.append(undefined if value is None else value)
        rows.append(tuple(row))
    return sorted(rows)


def evaluate(table, metrics, **options):
    """The one row (users, *values): sums of counts, geometric means, means."""
    users = len(per_user(table, [], **options))
    values = []
    for name, k, parameters in metrics:
        if name == "num_users":
            values.append(users)
            continue
        of_user = "bpref" if name == "gm_bpref" else name
        column = [row[1] for row in per_user(table, [(of_user, k, parameters)], **options)]
        if name in SUMMED:
            values.append(sum(value for value in column if value is not None))
        else:  # for "gm_map", reference.average is the geometric mean with trec_eval's floor
            values.append(reference.average("gm_map" if name == "gm_bpref" else name, column))
    return [(users, *values)]


FUNCTIONS = {
    "interpolated_precision": rf.metrics.interpolated_precision,
    "eleven_point_precision": rf.metrics.eleven_point_precision,
    "r_precision": rf.metrics.r_precision,
    "bpref": rf.metrics.bpref,
    "infap": rf.metrics.inferred_average_precision,
    "g": rf.metrics.g_measure,
    "bin_g": rf.metrics.binary_g_measure,
    "ndcg_rel": rf.metrics.ndcg_at_relevant,
    "rndcg": rf.metrics.ndcg_at_levels,
    "set_ap": rf.metrics.set_average_precision,
    "utility": rf.metrics.utility,
    "yaap": rf.metrics.yaap,
    "rbp": rf.metrics.rank_biased_precision,
    "rbp_residual": rf.metrics.rank_biased_residual,
    "unjudged": rf.metrics.unjudged_at,
    "judged": rf.metrics.judged_at,
    "abstention_recall": rf.metrics.abstention_recall,
    "missed": rf.metrics.missed,
    "num_missed": rf.metrics.num_missed,
    "num_retrieved": rf.metrics.num_retrieved,
    "num_relevant": rf.metrics.num_relevant,
    "num_hits": rf.metrics.num_hits,
    "num_nonrelevant": rf.metrics.num_nonrelevant,
    "arhr": rf.metrics.arhr_at,
    "err": rf.metrics.err_at,
    "nerr": rf.metrics.nerr_at,
    "q": rf.metrics.q_measure,
    "o_measure": rf.metrics.o_measure,
    "p_measure": rf.metrics.p_measure,
    "p_plus": rf.metrics.p_plus,
    "auc": rf.metrics.auc,
    "gap": rf.metrics.graded_average_precision,
    "insq": rf.metrics.insq_at,
    "inst": rf.metrics.inst_at,
    "compatibility": rf.metrics.compatibility,
    "pauc": rf.metrics.pauc_at,
    "pap": rf.metrics.pap_at,
    "lauc": rf.metrics.lauc_at,
    "average_recall": rf.metrics.average_recall_at,
    "concordance": rf.metrics.concordance,
    "kendall_tau_b": rf.metrics.kendall_tau_b,
    "fallout": rf.metrics.fallout_at,
    "mcc": rf.metrics.mcc_at,
    "mean_hit_rank": rf.metrics.mean_hit_rank,
    "mpr": rf.metrics.mean_percentile_rank,
    "lrap": rf.metrics.label_ranking_average_precision,
}
WITH_CUT = {"unjudged", "judged", "pauc", "pap", "lauc", "average_recall"}
MAY_HAVE_CUT = {"err", "nerr", "q", "rbp", "auc", "gap", "insq", "inst"}
MAY_HAVE_CUT |= {"arhr", "num_hits", "num_nonrelevant"}
MAY_HAVE_CUT |= {"fallout", "mcc", "mean_hit_rank"}
OVER_USERS = ["gm_bpref", "num_users"]
POINTS = [{}, {"points": "nearest"}, {"points": "floor"}]
BLENDED = [
    {},
    *({"beta": beta} for beta in (0, 0.5, 10)),
    *({"gain": gain} for gain in ("linear", "exponential", "binary")),
    {"beta": 2, "gain": "exponential"},
]
COLLECTIONS = [{"collection": 8}, {"collection": 20}]
READERS = [
    {},
    *({"goals": goals} for goals in (0.5, 2, 3.5)),
    {"max_grade": 4},
    {"goals": 2, "max_grade": 5},
]
PARAMETERS = {
    "interpolated_precision": [{"recall": r, **points} for r in LEVELS for points in POINTS],
    "eleven_point_precision": [
        {**points, **levels}
        for points in POINTS
        for levels in ({}, {"levels": (0.25, 0.5, 0.75)}, {"levels": (1, 0)})
    ],
    "r_precision": [{}, *({"multiple": x} for x in (0.2, 0.4, 0.6, 1, 1.5, 2))],
    "utility": [
        {},
        {"relevant": 2, "nonrelevant": -0.5, "missed": -1},
        {"rest": 0.5, "collection": 100},
        {"relevant": 0, "nonrelevant": 0, "rest": -1},
    ],
    "rbp": [
        {},
        *({"p": p} for p in (0.8, 0.5, 0.95)),
        *({"gain": gain} for gain in ("binary", "graded", "user")),
        *({"gain": "graded", "max_grade": grade} for grade in (4, 5)),
        *({"p": 0.3, "gain": gain} for gain in ("graded", "user")),
        *({"divide_by": "attainable", "gain": gain} for gain in ("binary", "graded", "user")),
    ],
    "rbp_residual": [
        {},
        {"p": 0.5},
        {"counts": "always"},
        *({"p": p, "counts": "unjudged"} for p in (0.8, 0.95)),
    ],
    "auc": [{}, {"only_hits": "one"}],
    "err": [{}, {"max_grade": 4}, {"max_grade": 5}],
    "nerr": [{}, {"max_grade": 4}, {"max_grade": 5}],
    **dict.fromkeys(("q", "o_measure", "p_measure", "p_plus"), BLENDED),
    "gap": [{}, *({"gain": gain} for gain in GAINS)],
    **dict.fromkeys(("insq", "inst"), READERS),
    "compatibility": [{}, {"p": 0.5}, *({"divide_by": by} for by in ("ideal", "weights"))],
    "lauc": COLLECTIONS,
    "mcc": COLLECTIONS,
    "mpr": COLLECTIONS,
    "fallout": [{}, *COLLECTIONS],
    "num_nonrelevant": [{}, {"of": "judged"}],
}


def with_cut(name, parameters, k):
    """(name, k, parameters), where k may be None, and is where the metric takes none."""
    if name in WITH_CUT:
        k = k or 3
    elif name not in MAY_HAVE_CUT:
        k = None
    return name, k, parameters


def label(name, k, parameters):
    def text(value):
        return ";".join(map(str, value)) if isinstance(value, tuple) else value

    inside = ",".join(f"{key}={text(value)}" for key, value in parameters.items())
    return name + (f"({inside})" if inside else "") + ("" if k is None else f"@{k}")


CUTS = st.none() | st.integers(1, 9)


@st.composite
def asked_for(draw, names):
    """(name, k, parameters) of each metric by its column, and what rankframe is asked for."""
    k, turn = draw(CUTS), draw(st.integers(0, 83))
    choices = [(name, PARAMETERS.get(name, [{}])) for name in names]
    wanted = [with_cut(name, those[turn % len(those)], k) for name, those in choices]
    if draw(st.booleans()):
        return {label(*metric): metric for metric in wanted}, [label(*m) for m in wanted]
    metrics, asked = {}, []
    for name, k, parameters in wanted:
        if name in OVER_USERS:
            expression = column = name
        else:
            cut = {} if k is None else {"k": k}
            expression = FUNCTIONS[name](**cut, **parameters)
            column = expression.meta.output_name()
        # canonical: a spelt-out default is the same column again
        if column not in metrics:
            metrics[column] = name, k, parameters
            asked.append(expression)
    return metrics, asked


@dataclass
class Case:
    """What rankframe is given, a run and its truth or a judged table, and the reference's table."""

    frame: pl.DataFrame | pl.LazyFrame
    truth: dict
    table: dict


@st.composite
def cases(draw):
    """Ranks without gaps, users and judgments missing on either side."""
    items = st.sampled_from(range(1, 9))
    users = range(1, draw(st.integers(1, 4)) + 1)
    run, truth = [], []
    for user in users:
        listed = draw(st.lists(items, unique=True, max_size=8))
        run += [((), user, item, rank) for rank, item in enumerate(listed, start=1)]
        judged = draw(st.dictionaries(items, st.integers(-2, 4), max_size=8))
        truth += [((), user, item, grade) for item, grade in judged.items()]
    assume({row[1] for row in run} & {row[1] for row in truth})
    shuffle = draw(st.randoms(use_true_random=False)).shuffle
    frames = []
    for rows, value in ((run, "rank"), (truth, "relevance")):
        shuffle(rows)
        made = pl.DataFrame([row[1:] for row in rows], ["user", "item", value], orient="row")
        frames.append(made.lazy() if draw(st.booleans()) else made)
    note(f"run={sorted(row[1:] for row in run)}\ntruth={sorted(row[1:] for row in truth)}")
    table = reference.judge(reference.lists_from_ranks(run), truth)
    if draw(st.booleans()):
        return Case(rf.judge(*frames), {}, table)
    return Case(frames[0], {"truth": frames[1]}, table)


OPTIONS = st.fixed_dictionaries(
    {
        "users": st.sampled_from(["judged", "truth", "both", "all"]),
        "undefined": st.sampled_from([None, 0.0]),
        "relevant_at": st.sampled_from([None, 2]),
        "unjudged": st.sampled_from(["miss", "drop"]),
        "depth": st.sampled_from([None, 3]),
    }
)
quick = settings(deadline=None, max_examples=reference.drawn(40))


def assert_rows(result, columns, expected):
    """The columns, and the rows in order, numbers to 1e-12."""
    result = result.lazy().collect()
    assert result.columns == columns
    assert result.height == len(expected)
    for row, wanted in zip(result.rows(), expected, strict=True):
        for column, got, want in zip(columns, row, wanted, strict=True):
            if got is None or want is None:
                same = got is want
            else:
                same = math.isclose(got, want, rel_tol=1e-12, abs_tol=1e-12)
            assert same, f"{column} in {row}: {got}, not {want}"


def check(ours, theirs, case, chosen, options):
    """Compare the reference's per_user or evaluate with rankframe's."""
    metrics, asked = chosen
    expected = ours(case.table, metrics.values(), **options)
    result = theirs(case.frame, *asked, **case.truth, **options)
    assert isinstance(result, type(case.frame))
    assert_rows(result, ["user" if ours is per_user else "users", *metrics], expected)


@quick
@given(cases(), asked_for(FUNCTIONS), OPTIONS)
def test_per_user_of_all(case, chosen, options):
    check(per_user, rf.per_user, case, chosen, options)


@quick
@given(cases(), asked_for([*FUNCTIONS, *OVER_USERS]), OPTIONS)
def test_evaluate_of_all(case, chosen, options):
    check(evaluate, rf.evaluate, case, chosen, options)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", FUNCTIONS)
@settings(deadline=None, max_examples=reference.drawn(10))
@given(st.data(), cases(), OPTIONS)
def test_metric_alone_equals_the_oracle(name, data, case, options):
    """What one metric reads is derived without the help of another."""
    chosen = data.draw(asked_for([name]))
    check(per_user, rf.per_user, case, chosen, options)
    check(evaluate, rf.evaluate, case, chosen, options)


@pytest.mark.parametrize("name", OVER_USERS)
@quick
@given(cases(), OPTIONS)
def test_metric_over_users_alone_equals_the_oracle(name, case, options):
    check(evaluate, rf.evaluate, case, ({name: (name, None, {})}, [name]), options)


@pytest.mark.parametrize("unjudged", ["miss", "drop"])
@pytest.mark.parametrize("name", sorted(OF_ROWS))
def test_user_with_nothing_but_negative_grades(name, unjudged):
    """Rows of the truth they are, so what counts rows is defined, dropped or not."""
    ranks, grades = {1: 1, 2: 2}, {2: -1}
    run = pl.DataFrame({"user": 1, "item": list(ranks), "rank": list(ranks.values())})
    truth = pl.DataFrame({"user": 1, "item": list(grades), "relevance": list(grades.values())})
    options = {"users": "judged", "undefined": None, "relevant_at": None, "depth": None}
    options["unjudged"] = unjudged
    case = Case(run, {"truth": truth}, {((), 1): (ranks, grades)})
    metric = with_cut(name, {}, 2)
    check(per_user, rf.per_user, case, ({label(*metric): metric}, [label(*metric)]), options)
