"""A brute-force reference: one user at a time, in plain Python, written from the definitions.

A group is a tuple of the values of the ``by`` columns, ``()`` without them. A run is rows
(group, user, item, rank) or (group, user, item, score); a truth is rows (group, user, item, grade),
whose group holds the values of those ``by`` columns that the truth has.
"""

import math

thorough = False  # conftest.py sets it


def lists_from_ranks(run):
    """{(group, user): {item: rank}}; a null rank is not retrieved."""
    lists = {}
    for group, user, item, rank in run:
        if rank is not None:
            lists.setdefault((group, user), {})[item] = int(rank)
    return lists


def lists_from_scores(run, *, descending=True, ties="item"):
    """{(group, user): {item: rank}}; a null or NaN score is not retrieved."""
    scores = {}
    for group, user, item, score in run:
        if score is not None and not math.isnan(score):
            scores.setdefault((group, user), []).append((item, score))
    lists = {}
    for key, scored in scores.items():
        if ties == "item":  # descending; text by its bytes
            scored.sort(key=lambda s: s[0].encode() if isinstance(s[0], str) else s[0])
            scored.reverse()
        # Python's sort is stable: equal scores stay in item order, or in input order
        scored.sort(key=lambda s: -s[1] if descending else s[1])
        lists[key] = {item: position for position, (item, _) in enumerate(scored, start=1)}
    return lists


def judge(lists, truth, *, width=0, shared=()):
    """{(group, user): ({item: rank}, {item: grade})}, for every user of either side.

    `width` is the number of ``by`` columns, `shared` says which of them the truth has. Whatever
    the run has in the others (models, say) is judged by all of the truth, so that a user whom a
    model misses has an empty list there.
    """
    others = [i for i in range(width) if i not in shared]
    grades = {}
    for group, user, item, grade in truth:
        for model in {tuple(g[i] for i in others) for g, _ in lists}:
            value = dict(zip([*shared, *others], [*group, *model], strict=True))
            key = tuple(value[i] for i in range(width)), user
            grades.setdefault(key, {})[item] = grade
    return {key: (lists.get(key, {}), grades.get(key, {})) for key in {*lists, *grades}}


def cut(ranks, grades, *, depth=None, unjudged="miss"):
    """The list of one user, cut to `depth`, then without its unjudged items, the ranks closed."""
    if depth is not None:
        ranks = {item: rank for item, rank in ranks.items() if rank <= depth}
    if unjudged == "drop":
        kept = [item for item in sorted(ranks, key=ranks.get) if grades.get(item, -1) >= 0]
        ranks = {item: position for position, item in enumerate(kept, start=1)}
    return ranks


def is_selected(ranks, grades, users, relevant_at=None):
    """Whether the policy `users` takes a user with this uncut list and these judgments."""
    in_run, in_truth = len(ranks) > 0, len(grades) > 0
    return {
        "truth": any(g > 0 if relevant_at is None else g >= relevant_at for g in grades.values()),
        "judged": in_truth,
        "run": in_run,
        "both": in_run and in_truth,
        "all": in_run or in_truth,
    }[users]


def ratio(numerator, denominator):
    """A ratio whose denominator is what was returned, or found: 0 where nothing was."""
    return numerator / denominator if denominator else 0.0


class Binary:
    """The measures of one user that see an item as relevant or not.

    `found` are the ranks of the relevant items that were retrieved, `total` is R, `ranks` are those
    of all items of the list.
    """

    def __init__(self, ranks, grades, relevant_at):
        relevant = {
            item
            for item, grade in grades.items()
            if (grade > 0 if relevant_at is None else grade >= relevant_at)
        }
        self.found = sorted(rank for item, rank in ranks.items() if item in relevant)
        self.total = len(relevant)
        self.ranks = ranks.values()
        self.length = len(ranks)

    def returned(self, k):
        return sum(k is None or rank <= k for rank in self.ranks)

    def within(self, k):
        return [rank for rank in self.found if k is None or rank <= k]

    def attainable(self, k):
        return min(self.length if k is None else k, self.total)

    def precision(self, k, divide_by="k"):
        h = len(self.within(k))
        if divide_by == "attainable":
            return ratio(h, self.attainable(k))
        if divide_by == "returned" or k is None:
            return ratio(h, self.returned(k))
        return h / k

    def recall(self, k, divide_by="relevant"):
        h = len(self.within(k))
        return ratio(h, self.total if divide_by == "relevant" else self.attainable(k))

    def f(self, k, beta=1):
        h = len(self.within(k))
        size = self.length if k is None else k
        return ratio((1 + beta**2) * h, beta**2 * self.total + size)

    def e(self, k, beta=1):
        return 1 - self.f(k, beta)

    def hit(self, k):
        return 1.0 if self.within(k) else 0.0

    def all(self, k):
        return 1.0 if len(self.within(k)) == self.total else 0.0

    def ap(self, k, divide_by="relevant"):
        summed = sum(hits / rank for hits, rank in enumerate(self.within(k), start=1))
        divisors = {
            "relevant": self.total,
            "attainable": self.attainable(k),
            "returned": min(self.total, self.returned(k)),
            "hits": len(self.within(k)),
            "k": k or self.length,
        }
        return ratio(summed, divisors[divide_by])

    def rr(self, k):
        return 1 / self.within(k)[0] if self.within(k) else 0.0

    def r_precision(self, k):
        return len(self.within(self.total)) / self.total

    def attainable_precision(self, k):
        return min(1.0, self.total / k)

    def attainable_recall(self, k):
        return min(1.0, k / self.total)


def gain_of(grade, gain, relevant_at=None):
    if gain == "binary":
        return 1.0 if relevant_at is None or grade >= relevant_at else 0.0
    if gain == "linear":
        return float(grade)
    if gain == "exponential":
        return 2.0**grade - 1
    return gain[grade]


def weight(position, base, discount):
    """1 / log2(position + 1), or Järvelin and Kekäläinen's: no discount up to their base."""
    if discount == "rank":
        return 1 / position
    if discount != "log2":
        return discount[position - 1]
    if base is not None:
        return 1 / math.log(position, base) if position > base else 1.0
    return 1 / math.log2(position + 1)


def graded(
    name,
    ranks,
    grades,
    k,
    top,
    relevant_at,
    gain="linear",
    base=None,
    ideal="truth",
    discount="log2",
):
    """cg, dcg and ndcg of one user, who has an item of such a grade; `top` is anybody's best."""
    gains = {item: gain_of(grade, gain, relevant_at) for item, grade in grades.items() if grade > 0}
    cutoff = math.inf if k is None else k

    def cumulated(placed):
        kept = [(rank, gain) for rank, gain in placed if rank <= cutoff]
        if name == "cg":
            return math.fsum(gain for _, gain in kept)
        return math.fsum(gain * weight(rank, base, discount) for rank, gain in kept)

    value = cumulated([(rank, gains[item]) for item, rank in ranks.items() if item in gains])
    if name != "ndcg":
        return value
    if not any(gains.values()):
        return None
    best = {
        "truth": list(gains.values()),
        "returned": [gain for item, gain in gains.items() if item in ranks],
        "perfect": [gain_of(top, gain)] * (k or sum(gain > 0 for gain in gains.values())),
        "same_length": sorted(gains.values(), reverse=True)[
            : sum(rank <= cutoff for rank in ranks.values())
        ],
    }[ideal]
    return ratio(value, cumulated(enumerate(sorted(best, reverse=True), start=1)))


def measure(name, ranks, grades, k=None, *, top, relevant_at=None, **parameters):
    """One metric of one user with this list, None where it is undefined."""
    if name in ("cg", "dcg", "ndcg"):
        if not any(grade > 0 for grade in grades.values()):
            return None
        return graded(name, ranks, grades, k, top, relevant_at, **parameters)
    user = Binary(ranks, grades, relevant_at)
    return getattr(user, name)(k, **parameters) if user.total else None


def per_user(
    table,
    metrics,
    *,
    users="truth",
    undefined=None,
    relevant_at=None,
    unjudged="miss",
    depth=None,
):
    """Rows (*group, user, *values), sorted, of `metrics` = (name, k, parameters), ..."""
    rows = []
    top = max((grade for _, grades in table.values() for grade in grades.values()), default=0)
    for (group, user), (ranks, grades) in table.items():
        if not is_selected(ranks, grades, users, relevant_at):
            continue
        kept = cut(ranks, grades, depth=depth, unjudged=unjudged)
        values = [
            measure(name, kept, grades, k, top=top, relevant_at=relevant_at, **parameters)
            for name, k, parameters in metrics
        ]
        rows.append((*group, user, *(undefined if v is None else v for v in values)))
    width = max(len(group) for group, _ in table)
    return sorted(rows, key=lambda row: row[: width + 1])


def average(name, values, epsilon=1e-5):
    """The mean, or for gmap and gm_map the geometric mean, of the values that are defined."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    if name == "gmap":
        logs = [math.log(value + epsilon) for value in values]
        return math.exp(math.fsum(logs) / len(logs)) - epsilon
    if name == "gm_map":
        logs = [math.log(max(value, 1e-5)) for value in values]
        return math.exp(math.fsum(logs) / len(logs))
    return math.fsum(values) / len(values)


def evaluate(table, metrics, **options):
    """Rows (*group, users, *means), sorted, one for every group of the table."""
    geometric = ("gmap", "gm_map")
    by_user = per_user(
        table, [("ap", m[1], {}) if m[0] in geometric else m for m in metrics], **options
    )
    rows = []
    for group in sorted({group for group, _ in table}):
        own = [row[len(group) + 1 :] for row in by_user if row[: len(group)] == group]
        means = [
            average(name, [values[i] for values in own], **(parameters if name == "gmap" else {}))
            for i, (name, _, parameters) in enumerate(metrics)
        ]
        rows.append((*group, len(own), *means))
    return rows


def drawn(examples: int) -> int:
    """Draw an eighth of the examples, and all of them with ``--thorough``."""
    return examples if thorough else max(3, examples // 8)
