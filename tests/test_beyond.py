"""Metrics of lists and of shares, against definitions in plain Python."""

import itertools
import math
from collections import Counter, defaultdict

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import rankframe as rf

ITEMS = [*"abcdefgh"]
GENRES = {
    "a": ["x"],
    "b": ["x", "y"],
    "c": ["y", "z", "w"],
    "d": [],
    "e": None,
    "f": ["z"],
    "g": ["x", "z"],
}  # h is not in the catalogue
VECTORS = {"a": [1.0, 0.0], "b": [1.0, 1.0], "c": [0.0, 0.0], "d": [-1.0, 2.0], "f": [3.0, 4.0]}


class World:
    """Tables, and the same as dicts."""

    def __init__(self, lists, history, truth):
        self.lists = lists  # user → items in order
        self.history = history  # user → set of items
        self.truth = truth  # user → set of relevant items
        self.popularity = Counter(item for had in history.values() for item in had)
        self.users = len([user for user, had in history.items() if had])
        self.rows = sum(self.popularity.values())

    def tables(self):
        run = pl.DataFrame(
            [
                (user, item, place)
                for user, some in self.lists.items()
                for place, item in enumerate(some, 1)
            ],
            schema={"user": pl.Int64, "item": pl.String, "rank": pl.Int64},
            orient="row",
        )
        pairs = {"user": pl.Int64, "item": pl.String}
        history = [(user, item) for user, some in self.history.items() for item in sorted(some)]
        truth = [(user, item) for user, some in self.truth.items() for item in sorted(some)]
        return {
            "run": run,
            "history": pl.DataFrame(history, schema=pairs, orient="row"),
            "truth": pl.DataFrame(truth, schema=pairs, orient="row"),
            "items": pl.DataFrame(
                {
                    "item": [*GENRES],
                    "genre": [*GENRES.values()],
                    "vector": [VECTORS.get(i) for i in GENRES],
                },
                schema_overrides={"genre": pl.List(pl.String), "vector": pl.List(pl.Float64)},
            ),
        }


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else None


def worth(weight, rank, relevant=False):
    if weight == "hit":
        return float(relevant)
    words = {"none": 1.0, "log": 1 / math.log2(rank + 1), "clipped": 1 / math.log2(max(rank, 2))}
    return words[weight] if weight in words else float(weight) ** (rank - 1)


def bits(world, item, out_of="users", new="one"):
    count = world.popularity[item]
    if not count and new in ("zero", "skip"):
        return 0.0 if new == "zero" else None
    return -math.log2(max(count, 1) / (world.users if out_of == "users" else world.rows))


def place_of(world, item):
    counts = sorted(set(world.popularity.values()), reverse=True)
    return counts.index(world.popularity[item]) + 1 if world.popularity[item] else None


def quantile(world, item):
    count = world.popularity[item]
    if not count:
        return 0.0
    values = sorted(world.popularity.values())
    return mean(place for place, value in enumerate(values, 1) if value == count) / len(values)


def in_tail(world, item, head=0.8):
    above = sum(count for count in world.popularity.values() if count > world.popularity[item])
    return not world.popularity[item] or above >= head * world.rows


def distance(kind, one, other):
    if kind == "hamming":
        return len(set(one) ^ set(other))
    if kind == "euclidean2":
        return sum((x - y) ** 2 for x, y in zip(one, other, strict=True))
    if any(isinstance(x, float) for x in (*one, *other)):
        size = math.hypot(*one) * math.hypot(*other)
        return 1 - (sum(x * y for x, y in zip(one, other, strict=True)) / size if size else 0)
    size = math.sqrt(len(one) * len(other))
    return 1 - (len(set(one) & set(other)) / size if size else 0)


def ild(some, values, kind):
    known = [values[item] for item in some if values.get(item) is not None]
    return mean(distance(kind, x, y) for x, y in itertools.combinations(known, 2))


def exposure(world, users, of, weight, k):
    sums = defaultdict(float)
    for user in users:
        for rank, item in enumerate(world.lists[user][:k], 1):
            value = worth(weight, rank, item in world.truth.get(user, ()))
            if of in ("item", "shown"):
                sums[item] += value
            for genre in (GENRES.get(item) or []) if of == "genre" else []:
                sums[genre] += value / len(GENRES[item])
    return sums


def target(world, what, users, of="genre"):
    sums = defaultdict(float)

    def add(item, times=1.0):
        for genre in GENRES.get(item) or []:
            sums[genre] += times / len(GENRES[item])

    for item in GENRES:
        if what == "catalogue":
            add(item)
        if what == "uniform":
            for genre in GENRES[item] or []:
                sums[genre] = 1.0
        if what == "candidates":
            add(item, sum(item not in world.history.get(user, ()) for user in users))
    for user in users:
        if what == "truth" or (what == "history" and len(users) == 1):
            for item in (world.history if what == "history" else world.truth).get(user, ()):
                add(item)
    if what == "history" and len(users) != 1:
        for had in world.history.values():
            for item in had:
                add(item)
    return sums


def apart(share, wanted, kind, alpha=0.01):
    whole, due = sum(share.values()), sum(wanted.values())
    if not whole or not due:
        return None
    pairs = [(wanted.get(v, 0) / due, share.get(v, 0) / whole) for v in {*share, *wanted}]

    def kl(some):
        return sum(p * math.log2(p / q) for p, q in some if p > 0)

    ratios = [q / p for p, q in pairs if p > 0]
    if kind == "tv":
        return sum(abs(p - q) for p, q in pairs) / 2
    if kind == "kl":
        return kl([(p, (1 - alpha) * q + alpha * p) for p, q in pairs])
    if kind == "js":
        return (
            kl([(p, (p + q) / 2) for p, q in pairs]) + kl([(q, (p + q) / 2) for p, q in pairs])
        ) / 2
    if kind == "hellinger":
        return math.sqrt(sum((math.sqrt(p) - math.sqrt(q)) ** 2 for p, q in pairs) / 2)
    if kind == "ratio":
        return min(ratios) / max(ratios) if max(ratios) else None
    middle = mean(ratios)
    return math.sqrt(mean((r - middle) ** 2 for r in ratios)) / middle if max(ratios) else None


def due_exposure(world, user, p):
    relevant = world.truth.get(user, set())
    everything = relevant | set(world.lists[user])
    m, n = len(relevant), len(everything)
    due = {}
    for item in everything:
        if item in relevant:
            due[item] = (1 - p**m) / (m * (1 - p))
        else:
            due[item] = (p**m - p**n) / ((n - m) * (1 - p))
    return due


def oracle(world, label, k):
    """The value of each user, or of all lists."""
    name, _, text = label.partition("(")
    options = dict(part.split("=") for part in text.rstrip(")").split(",") if part)

    def per_user(value):
        return {user: value(user, some[:k]) for user, some in world.lists.items() if some}

    def ratio(values, some):
        values = [v for v in values if v is not None]
        if options.get("divide_by") == "k" and k:
            return sum(values) / k
        return mean(values)

    if name == "popularity":
        whole = {None: 1, "rows": world.rows, "users": world.users}[options.get("out_of")]
        return per_user(lambda u, some: ratio([world.popularity[i] / whole for i in some], some))
    if name == "novelty":
        out_of, new = options.get("out_of", "users"), options.get("new", "one")
        whole = math.log2(world.users if out_of == "users" else world.rows)
        scale = whole if options.get("normalize") == "true" else 1
        if not scale:
            return per_user(lambda u, some: 0.0 if options.get("divide_by") == "k" and k else None)
        return per_user(
            lambda u, some: ratio(
                [None if (b := bits(world, i, out_of, new)) is None else b / scale for i in some],
                some,
            )
        )
    if name == "popularity_quantile":
        return per_user(lambda u, some: ratio([quantile(world, i) for i in some], some))
    if name == "tail":
        head = float(options.get("head", 0.8))
        tail = per_user(lambda u, some: [float(in_tail(world, i, head)) for i in some])
        if options.get("count") == "true":
            return {user: sum(values) for user, values in tail.items()}
        return {user: ratio(values, values) for user, values in tail.items()}
    if name == "unseen":
        return per_user(
            lambda u, some: ratio([float(i not in world.history.get(u, ())) for i in some], some)
        )
    if name == "new":
        return per_user(lambda u, some: ratio([float(not world.popularity[i]) for i in some], some))
    if name == "popularity_lift":
        return per_user(
            lambda u, some: (
                mean(world.popularity[i] for i in some)
                / mean(world.popularity[i] for i in world.history[u])
                - 1
                if world.history.get(u)
                else None
            )
        )
    if name == "filled":
        return per_user(lambda u, some: len(some) / k)
    if name in ("epc", "efd"):
        weight = options.get("weight", "log")

        def novelty(item):
            if name == "epc":
                return 1 - world.popularity[item] / world.users
            return -math.log2(max(world.popularity[item], 1) / world.rows)

        def relevant_novelty(user, some):
            each = [(worth(weight, r), i) for r, i in enumerate(some, 1)]
            found = sum(w * novelty(i) for w, i in each if i in world.truth.get(user, ()))
            return found / sum(w for w, _ in each)

        return per_user(relevant_novelty)
    if name == "serendipity":
        n = len(GENRES)

        def gain(user, rank, item):
            place = place_of(world, item)
            others = (n + 1 - place) / n if place else 0
            return max((n + 1 - rank) / n - others, 0) * (item in world.truth.get(user, ()))

        return per_user(lambda u, some: ratio([gain(u, r, i) for r, i in enumerate(some, 1)], some))
    if name == "ild":
        of, kind = options["of"], options.get("distance", "cosine")
        return per_user(lambda u, some: ild(some, GENRES if of == "genre" else VECTORS, kind))
    if name == "categories":
        number = k if options.get("divide_by") != "values" else 4
        return per_user(lambda u, some: len(exposure(world, [u], "genre", "none", k)) / number)
    if name == "calibration":
        weight, kind = options.get("weight", "none"), options.get("distance", "kl")
        return per_user(
            lambda u, some: apart(
                exposure(world, [u], "genre", weight, k), target(world, "history", [u]), kind
            )
        )
    if name in ("awrf", "disparity"):
        over = options.get("over", "user" if name == "awrf" else "all")
        weight = options.get("weight", "clipped" if name == "awrf" else "none")
        kind = "js" if name == "awrf" else options.get("distance", "tv")

        def value(users):
            found = apart(
                exposure(world, users, "genre", weight, k),
                target(world, options.get("target", "catalogue"), users)
                if over == "user"
                else all_target(world, options.get("target", "catalogue")),
                kind,
            )
            return found if name == "disparity" or found is None else 1 - math.log(2) * found

        if over == "user":
            return per_user(lambda u, some: value([u]))
        return value([*world.lists])
    if name == "coverage":
        shown = {i for some in world.lists.values() for i in some[:k]} & set(GENRES)
        if options.get("of") == "genre":
            known = {g for v in GENRES.values() for g in v or []}
            shown = {g for i in shown for g in GENRES[i] or []}
        else:
            known = set(GENRES)
        return len(shown) if options.get("count") == "true" else len(shown) / len(known)
    if name == "gini":
        of, weight = options.get("of", "item"), options.get("weight", "none")
        sums = exposure(world, [*world.lists], of, weight, k)
        if of == "item":
            sums = {item: sums.get(item, 0.0) for item in GENRES}
        if of == "genre":
            sums = {g: sums.get(g, 0.0) for v in GENRES.values() for g in v or []}
        x = sorted(sums.values())
        n = len(x)
        divisor = n if options.get("divide_by", "n") == "n" else n - 1
        if not sum(x) or not divisor:
            return None
        return sum((2 * j - n - 1) * v for j, v in enumerate(x, 1)) / divisor / sum(x)
    if name == "entropy":
        of, weight = options.get("of", "item"), options.get("weight", "none")
        base = float(options.get("base", 2))
        known = len(GENRES) if of == "item" else 4

        def of_users(users):
            sums = exposure(world, users, of, weight, k)
            if of == "item" and options.get("over") != "user":
                sums = {i: v for i, v in sums.items() if i in GENRES}
            whole = sum(sums.values())
            if not whole:
                return None
            value = -sum(v / whole * math.log(v / whole, base) for v in sums.values() if v)
            return value / math.log(known, base) if options.get("normalize") == "true" else value

        if options.get("over") == "user":
            return per_user(lambda u, some: of_users([u]))
        return of_users([*world.lists])
    if name == "personalization":
        lists = [set(some[:k]) for some in world.lists.values() if some]
        pairs = itertools.combinations(lists, 2)
        cosine = mean(len(x & y) / math.sqrt(len(x) * len(y)) for x, y in pairs)
        return None if cosine is None else 1 - cosine
    if name.startswith("ee_"):
        p = float(options.get("p", 0.5))

        def ee(user, some):
            eps = {item: p ** (r - 1) for r, item in enumerate(some, 1)}
            if name == "ee_disparity":
                return sum(v * v for v in eps.values())
            if not world.truth.get(user):
                return None
            due = due_exposure(world, user, p)
            if name == "ee_relevance":
                return sum(eps.get(item, 0) * v for item, v in due.items())
            return sum((eps.get(item, 0) - v) ** 2 for item, v in due.items())

        return per_user(ee)
    raise AssertionError(label)


def all_target(world, what):
    users = [*world.lists]
    if what == "history":
        sums = defaultdict(float)
        for had in world.history.values():
            for item in had:
                for genre in GENRES.get(item) or []:
                    sums[genre] += 1 / len(GENRES[item])
        return sums
    if what == "truth":
        users = [user for user in users if world.truth.get(user)]
    return target(world, what, users)


OF_USERS = [
    *("popularity", "popularity(out_of=rows)", "popularity(out_of=users,divide_by=k)"),
    *("novelty", "novelty(out_of=rows)", "novelty(new=zero)", "novelty(new=skip)"),
    *("novelty(normalize=true,divide_by=k)", "popularity_quantile", "tail", "tail(head=0.5)"),
    *("tail(count=true)", "unseen", "unseen(divide_by=k)", "new", "popularity_lift", "filled"),
    *("epc", "efd", "epc(weight=none)", "efd(weight=0.7)", "epc(weight=clipped)", "serendipity"),
    *("ild(of=genre)", "ild(of=genre,distance=hamming)", "ild(of=vector)"),
    *("ild(of=vector,distance=euclidean2)", "categories(of=genre)"),
    "categories(of=genre,divide_by=values)",
    *(f"calibration(of=genre,distance={d})" for d in ("kl", "hellinger", "js", "tv")),
    *("calibration(of=genre,weight=log)", "awrf(of=genre)", "awrf(of=genre,target=uniform)"),
    *("awrf(of=genre,target=history)", "awrf(of=genre,target=truth,weight=0.8)"),
    *(f"disparity(of=genre,over=user,target=candidates,distance={d})" for d in ("tv", "cv")),
    *("entropy(of=genre,over=user)", "entropy(over=user,weight=log)"),
    *("ee_disparity", "ee_relevance", "ee_loss", "ee_loss(p=0.8)"),
]
OF_ALL = [
    *("coverage", "coverage(count=true)", "coverage(of=genre)", "gini", "gini(of=shown)"),
    *("gini(divide_by=n1)", "gini(of=genre,weight=log)", "gini(weight=0.85)", "entropy"),
    *("entropy(of=genre,normalize=true)", "entropy(weight=clipped,base=3)", "personalization"),
    *(f"disparity(of=genre,distance={d})" for d in ("tv", "kl", "js", "hellinger", "ratio", "cv")),
    *(f"disparity(of=genre,target={t})" for t in ("uniform", "history", "truth", "candidates")),
    *("disparity(of=genre,target=truth,weight=hit)", "awrf(of=genre,over=all)"),
]


@st.composite
def worlds(draw):
    users = range(1, draw(st.integers(2, 6)))
    lists = {
        u: draw(st.lists(st.sampled_from(ITEMS), unique=True, min_size=0, max_size=6))
        for u in users
    }
    lists[0] = ["a", *draw(st.permutations(["b", "g", "c"]))]
    history = {u: draw(st.sets(st.sampled_from(ITEMS), max_size=5)) for u in [*users, 8, 9]}
    history[0] = {"b", "c"}
    history[0] |= draw(st.sets(st.sampled_from(ITEMS)))
    truth = {u: draw(st.sets(st.sampled_from(ITEMS), max_size=4)) for u in users}
    truth[0] = {"b"}
    return World({u: some for u, some in lists.items() if some}, history, truth)


def close(got, expected):
    if expected is None:
        return got is None
    return got is not None and math.isclose(got, expected, rel_tol=1e-11, abs_tol=1e-11)


@settings(deadline=None, max_examples=25)
@given(worlds(), st.sampled_from([1, 2, 3, 10]))
def test_values_of_users_follow_their_definitions(world, k):
    tables = world.tables()
    labels = [f"{label.replace(',', ', ')}@{k}" for label in OF_USERS]
    run = tables.pop("run")
    got = rf.per_user(run, *labels, users="run", **tables)
    for label, asked in zip(OF_USERS, labels, strict=True):
        expected = oracle(world, label, k)
        values = dict(zip(got["user"], got[asked], strict=True))
        assert values.keys() == world.lists.keys()
        for user, value in values.items():
            assert close(value, expected.get(user)), (asked, user, value, expected.get(user))


@settings(deadline=None, max_examples=25)
@given(worlds(), st.sampled_from([1, 2, 3, 10]))
def test_numbers_of_all_lists_follow_their_definitions(world, k):
    tables = world.tables()
    labels = [f"{label.replace(',', ', ')}@{k}" for label in OF_ALL]
    run = tables.pop("run")
    got = rf.evaluate(run, *labels, users="run", **tables).row(0, named=True)
    for label, asked in zip(OF_ALL, labels, strict=True):
        expected = oracle(world, label, k)
        assert close(got[asked], expected), (asked, got[asked], expected)
