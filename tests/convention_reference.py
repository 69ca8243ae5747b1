"""What a metric gives under a convention, in plain Python: of one system and one truth.

A convention is a mapping of choices to values: the parameters of the metric, ``users``,
``undefined``, ``average``, and the changes of the tables: ``relevant_at``, ``ties``,
``duplicates``, ``depth``, ``unjudged`` and ``ranks`` (1, or 2: all ranks one lower). A choice that
it lacks has its default. A run is rows (user, item, score or rank); a truth is rows (user, item,
grade), in which a grade of None is no judgment.
"""

import itertools
import math
import struct

import reference

SHARED = ("users", "undefined", "average")
CHANGES = ("relevant_at", "ties", "duplicates", "depth", "unjudged", "ranks")
#: the defaults of parameters that the functions of ``reference`` do not have
RBP = {"p": 0.8, "gain": "binary", "max_grade": None, "divide_by": "one"}


def single(score):
    """Round a score to 32 bits."""
    return struct.unpack("f", struct.pack("f", score))[0]


def lists_of(run, grades, *, scored, ties="item", duplicates="error", ranks=1):
    """{user: all of its lists}, each {item: rank}: one, or one for each order of equal scores."""
    rows = {}
    for place, (user, item, number) in enumerate(run):
        if number is not None:
            rows.setdefault(user, []).append((number, item, place))
    lists = {}
    for user, own in rows.items():
        orders = ranked(own, grades.get(user, {}), ties) if scored else [placed(own)]
        lists[user] = [
            {item: rank + ranks - 1 for item, rank in once(order, duplicates).items()}
            for order in orders
        ]
    return lists


def placed(rows):
    """Pairs (rank, item) of a list that has ranks."""
    return sorted((int(rank), item) for rank, item, _ in rows)


def ranked(rows, grades, ties):
    """Pairs (rank, item) of a list that has scores, for each order of equal ones."""
    if ties == "32-bit":
        rows = [(single(score), item, place) for score, item, place in rows]
    # the first of equal scores first; text is ordered by its bytes
    rows = sorted(rows, key=lambda row: id_of(row[1]), reverse=ties != "order")
    if ties == "order":
        rows.sort(key=lambda row: row[2])
    if ties in ("pessimistic", "optimistic"):
        sign = 1 if ties == "pessimistic" else -1
        rows.sort(key=lambda row: sign * max(0, grades.get(row[1]) or 0))
    rows.sort(key=lambda row: -row[0])
    if ties != "expected":
        return [[(rank, item) for rank, (_, item, _) in enumerate(rows, start=1)]]
    blocks = [[*block] for _, block in itertools.groupby(rows, key=lambda row: row[0])]
    every = itertools.product(*map(itertools.permutations, blocks))
    flat = (itertools.chain.from_iterable(order) for order in every)
    return [[(rank, item) for rank, (_, item, _) in enumerate(rows, start=1)] for rows in flat]


def id_of(item):
    return item.encode() if isinstance(item, str) else item


def once(order, duplicates):
    """Keep the best place of each item; those below its others move up, or stay."""
    best = {}
    for rank, item in order:
        best.setdefault(item, rank)
    if duplicates == "first" and len(best) < len(order):
        return {item: place for place, item in enumerate(best, start=1)}
    assert duplicates != "error" or len(best) == len(order)
    return best


def value_of(name, ranks, grades, k, *, top, relevant_at=None, **parameters):
    """Return one metric of one user with this list, None where it is undefined."""
    if name == "rbp":
        return biased(ranks, grades, k, top, relevant_at, **{**RBP, **parameters})
    if name == "r_precision" and "multiple" in parameters:
        user = reference.Binary(ranks, grades, relevant_at)
        last = math.floor(parameters["multiple"] * user.total + 0.9)
        return reference.ratio(len(user.within(last)), last) if user.total else None
    return reference.measure(name, ranks, grades, k, top=top, relevant_at=relevant_at, **parameters)


def biased(ranks, grades, k, top, relevant_at, *, p, gain, max_grade, divide_by):
    """Return rank-biased precision of one user, who goes on to the next rank with chance p."""
    level = math.ulp(0) if relevant_at is None else relevant_at
    if not any(grade > 0 if gain != "binary" else grade >= level for grade in grades.values()):
        return None
    best = max([*grades.values(), 0])

    def useful(grade):
        if gain == "binary":
            return float(grade >= level)
        return max(grade, 0) / ((max_grade or top) if gain == "graded" else best)

    within = {item: rank for item, rank in ranks.items() if k is None or rank <= k}
    weight = lambda rank: (1 - p) * p ** (rank - 1)  # noqa: E731
    found = math.fsum(weight(r) * useful(grades[i]) for i, r in within.items() if i in grades)
    if divide_by == "one":
        return found
    ideal = sorted(map(useful, grades.values()), reverse=True)[: len(within)]
    return reference.ratio(found, math.fsum(weight(r) * x for r, x in enumerate(ideal, start=1)))


def divisor_of(name, ranks, grades, k, *, relevant_at=None, **parameters):
    """Return what the value of a user is divided by in a pooled mean."""
    user = reference.Binary(ranks, grades, relevant_at)
    by = parameters.get("divide_by")
    if name == "r_precision":
        return math.floor(parameters.get("multiple", 1) * user.total + 0.9)
    if name == "f":
        return parameters.get("beta", 1) ** 2 * user.total + (user.length if k is None else k)
    if by == "attainable":
        return user.attainable(k)
    if name == "recall":
        return user.total
    return user.returned(k) if k is None or by == "returned" else k


def mean(name, run, truth, convention, *, scored=True):
    """Return the value of a metric under a convention, None if it has none."""
    grades = {}
    for user, item, grade in truth:
        if grade is not None:
            grades.setdefault(user, {})[item] = grade
    changed = {choice: convention[choice] for choice in CHANGES if choice in convention}
    level, depth = changed.pop("relevant_at", None), changed.pop("depth", None)
    unjudged = changed.pop("unjudged", "miss")
    lists = lists_of(run, grades, scored=scored, **changed)
    top = max((grade for own in grades.values() for grade in own.values()), default=0)
    own = {n: x for n, x in convention.items() if n not in (*SHARED, *CHANGES, "k")}
    own["relevant_at"] = level
    k, undefined = convention.get("k"), convention.get("undefined")
    sums = []
    for user in {*lists, *grades}:
        orders, judged = lists.get(user, [{}]), grades.get(user, {})
        if not reference.is_selected(orders[0], judged, convention["users"], level):
            continue
        kept = [reference.cut(ranks, judged, depth=depth, unjudged=unjudged) for ranks in orders]
        values = [value_of(name, ranks, judged, k, top=top, **own) for ranks in kept]
        value = None if None in values else math.fsum(values) / len(values)
        weight = 1
        if convention.get("average") == "pooled":
            weight = divisor_of(name, kept[0], judged, k, **own)
        if value is None:
            value = undefined
        if value is not None:
            sums.append((value * weight, weight))
    whole = math.fsum(weight for _, weight in sums)
    return math.fsum(part for part, _ in sums) / whole if whole else None
