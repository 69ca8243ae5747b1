"""Definitions in plain Python of the metrics of lists and of shares, and tables that they read."""

import itertools
import math
from collections import Counter, defaultdict

import polars as pl

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
        self.lists = lists  # user → items in order, None for a rank that no item has
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
                for place, item in placed(some)
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


def placed(some, k=None):
    """The ranks and items of a list down to k."""
    return [(rank, item) for rank, item in enumerate(some[:k], 1) if item is not None]


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else None


def worth(discount, rank, relevant=False):
    if discount == "hit":
        return float(relevant)
    words = {"none": 1.0, "log2": 1 / math.log2(rank + 1), "clipped": 1 / math.log2(max(rank, 2))}
    return words[discount] if discount in words else float(discount) ** (rank - 1)


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


def exposure(world, users, of, discount, k):
    sums = defaultdict(float)
    for user in users:
        for rank, item in placed(world.lists[user], k):
            value = worth(discount, rank, item in world.truth.get(user, ()))
            if of == "shown" or (of == "item" and item in GENRES):
                sums[item] += value
            for genre in (GENRES.get(item) or []) if of == "genre" else []:
                sums[genre] += value / len(GENRES[item])
    return sums


def target(world, what, users, of="genre"):
    sums = defaultdict(float)

    def add(item, times=1.0):
        if of == "item" and item in GENRES:
            sums[item] += times
        for genre in (GENRES.get(item) or []) if of == "genre" else []:
            sums[genre] += times / len(GENRES[item])

    for item in GENRES:
        if what == "catalogue":
            add(item)
        if what == "uniform":
            for value in [item] if of == "item" else GENRES[item] or []:
                sums[value] = 1.0
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
    everything = relevant | {item for _, item in placed(world.lists[user])}
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
        of_ranks = name in ("epc", "efd", "serendipity") or name.startswith("ee_")
        return {
            user: value(user, placed(some, k) if of_ranks else [i for _, i in placed(some, k)])
            for user, some in world.lists.items()
        }

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
            return per_user(lambda u, some: None)
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
                if some and world.history.get(u)
                else None
            )
        )
    if name == "filled":
        return per_user(lambda u, some: len(some) / k)
    if name in ("epc", "efd"):
        discount = options.get("discount", "log2")

        def novelty(item):
            if name == "epc":
                return 1 - world.popularity[item] / world.users
            return -math.log2(max(world.popularity[item], 1) / world.rows)

        def relevant_novelty(user, some):
            each = [(worth(discount, r), i) for r, i in some]
            found = sum(w * novelty(i) for w, i in each if i in world.truth.get(user, ()))
            return found / sum(w for w, _ in each) if each else None

        return per_user(relevant_novelty)
    if name == "serendipity":
        n = len(GENRES)

        def gain(user, rank, item):
            place = place_of(world, item)
            others = (n + 1 - place) / n if place else 0
            return max((n + 1 - rank) / n - others, 0) * (item in world.truth.get(user, ()))

        return per_user(lambda u, some: ratio([gain(u, r, i) for r, i in some], some))
    if name == "ild":
        of, kind = options["of"], options.get("distance", "cosine")
        return per_user(lambda u, some: ild(some, GENRES if of == "genre" else VECTORS, kind))
    if name == "categories":
        number = k if options.get("divide_by") != "values" else 4
        return per_user(lambda u, some: len(exposure(world, [u], "genre", "none", k)) / number)
    if name == "miscalibration":
        discount, kind = options.get("discount", "none"), options.get("distance", "kl")
        return per_user(
            lambda u, some: apart(
                exposure(world, [u], "genre", discount, k), target(world, "history", [u]), kind
            )
        )
    if name in ("awrf", "disparity"):
        over = options.get("over", "user" if name == "awrf" else "all")
        discount = options.get("discount", "clipped" if name == "awrf" else "none")
        kind = "js" if name == "awrf" else options.get("distance", "tv")
        of, what = options["of"], options.get("target", "catalogue")

        def value(users):
            share = exposure(world, users, of, discount, k)
            wanted = (
                target(world, what, users, of) if over == "user" else all_target(world, what, of)
            )
            found = apart(share, wanted, kind)
            return found if name == "disparity" or found is None else 1 - math.log(2) * found

        if over == "user":
            return per_user(lambda u, some: value([u]))
        return value([*world.lists])
    if name == "coverage":
        shown = {i for some in world.lists.values() for _, i in placed(some, k)}
        if options.get("of") == "shown":
            return len(shown)
        shown &= set(GENRES)
        if options.get("of") == "genre":
            known = {g for v in GENRES.values() for g in v or []}
            shown = {g for i in shown for g in GENRES[i] or []}
        else:
            known = set(GENRES)
        return len(shown) if options.get("count") == "true" else len(shown) / len(known)
    if name == "gini":
        of, discount = options.get("of", "item"), options.get("discount", "none")
        sums = exposure(world, [*world.lists], of, discount, k)
        if of == "shown":
            sums = {i: sums[i] for some in world.lists.values() for _, i in placed(some, k)}
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
        of, discount = options.get("of", "item"), options.get("discount", "none")
        base = float(options.get("base", 2))
        known = len(GENRES) if of == "item" else 4

        def of_users(users):
            sums = exposure(world, users, of, discount, k)
            whole = sum(sums.values())
            if not whole:
                return None
            value = -sum(v / whole * math.log(v / whole, base) for v in sums.values() if v)
            if options.get("normalize") != "true":
                return value
            most = math.log(len(sums) if of == "shown" else known, base)
            return value / most if most else None

        if options.get("over") == "user":
            return per_user(lambda u, some: of_users([u]))
        return of_users([*world.lists])
    if name == "personalization":
        lists = [{i for _, i in placed(some, k)} for some in world.lists.values()]
        lists = [some for some in lists if some]
        pairs = itertools.combinations(lists, 2)
        cosine = mean(len(x & y) / math.sqrt(len(x) * len(y)) for x, y in pairs)
        return None if cosine is None else 1 - cosine
    if name.startswith("ee_"):
        p = float(options.get("p", 0.5))

        def ee(user, some):
            eps = {item: p ** (r - 1) for r, item in some}
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


def all_target(world, what, of):
    users = [*world.lists]
    if what == "history":
        whole = World({}, {0: [i for had in world.history.values() for i in had]}, {})
        return target(whole, what, [0], of)
    return target(world, what, users, of)


OF_USERS = [
    *("popularity", "popularity(out_of=rows)", "popularity(out_of=users,divide_by=k)"),
    *("novelty", "novelty(out_of=rows)", "novelty(new=zero)", "novelty(new=skip)"),
    *(
        "novelty(normalize=true)",
        "novelty(normalize=true,divide_by=k)",
        "popularity_quantile",
        "tail",
        "tail(head=0.5)",
    ),
    *("tail(count=true)", "unseen", "unseen(divide_by=k)", "new", "popularity_lift", "filled"),
    *(
        "epc",
        "efd",
        "epc(discount=none)",
        "efd(discount=0.7)",
        "epc(discount=clipped)",
        "serendipity",
    ),
    *("ild(of=genre)", "ild(of=genre,distance=hamming)", "ild(of=vector)"),
    *("ild(of=vector,distance=euclidean2)", "categories(of=genre)"),
    "categories(of=genre,divide_by=values)",
    *(f"miscalibration(of=genre,distance={d})" for d in ("kl", "hellinger", "js", "tv")),
    *("miscalibration(of=genre,discount=log2)", "awrf(of=genre)", "awrf(of=genre,target=uniform)"),
    *("awrf(of=genre,target=history)", "awrf(of=genre,target=truth,discount=0.8)"),
    *(f"disparity(of=genre,over=user,target=candidates,distance={d})" for d in ("tv", "cv")),
    *("disparity(of=item,over=user)", "awrf(of=item)", "awrf(of=item,target=history)"),
    *("entropy(of=genre,over=user)", "entropy(over=user,discount=log2)"),
    *("entropy(over=user,normalize=true)", "entropy(of=shown,over=user,normalize=true)"),
    *("ee_disparity", "ee_relevance", "ee_loss", "ee_loss(p=0.8)"),
]
OF_ALL = [
    *("coverage", "coverage(count=true)", "coverage(of=genre)", "gini", "gini(of=shown)"),
    *("coverage(of=shown,count=true)", "gini(of=shown,discount=hit)", "disparity(of=item)"),
    *("entropy(of=shown,normalize=true)", "entropy(of=shown,discount=hit,normalize=true)"),
    *("awrf(of=item,over=all)", "disparity(of=item,target=history)"),
    *("gini(divide_by=n1)", "gini(of=genre,discount=log2)", "gini(discount=0.85)", "entropy"),
    *("entropy(of=genre,normalize=true)", "entropy(discount=clipped,base=3)", "personalization"),
    *(f"disparity(of=genre,distance={d})" for d in ("tv", "kl", "js", "hellinger", "ratio", "cv")),
    *(f"disparity(of=genre,target={t})" for t in ("uniform", "history", "truth", "candidates")),
    *("disparity(of=genre,target=truth,discount=hit)", "awrf(of=genre,over=all)"),
]


def labels_at(k, labels):
    return [f"{label.replace(',', ', ')}@{k}" for label in labels]


WORLD = World(
    {0: [*"abcg"], 1: [*"hgfa"], 2: [*"ba"], 3: [None, *"cf", None, *"dbe"]},
    {0: {"b", "c"}, 1: {"a", "h", "f"}, 2: {"a"}, 3: set(), 9: {"a", "b", "g"}},
    {0: {"b"}, 1: {"a", "g"}, 2: {"d"}, 3: {"c", "f"}},
)
