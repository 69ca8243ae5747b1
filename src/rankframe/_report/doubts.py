"""Says what may mislead about the comparison of a report: each doubt is one short sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import polars as pl

from rankframe._comparison import decision, notes, numerals, sentences, summaries, trials
from rankframe._evaluation import user_choice, user_columns
from rankframe._report import checks, facts, strips, verdict
from rankframe._report.facts import Numbers
from rankframe._report.verdict import Outcome, say, text_of

#: Notes of a comparison that other sentences of the card say, or that are of the method alone.
_SAID = (
    *(*verdict.REASONS, "no_list", "few_users", "primary", "secondary", "looks", "small_effect"),
    *("negative_baseline", "one_share", *trials.EXACT, "cut", "cut_difference", "groups"),
    *("clusters", "effective_users", "several_groups", "ratio", "jackknife", "moving"),
    *(
        "judge",
        "judge_is_right",
        "no_test_of_lists",
        "permuted",
        "design_effect",
        "first_system",
        "by_name",
        "resamples",
    ),
)
_MOST_NAMES = 4  # in a sentence
_MOST_SHARES = 3  # in a sentence


def doubts_of(numbers: Numbers, outcomes: Mapping[object, Outcome]) -> list[str]:
    """Return what may mislead about the outcomes of the systems in words, the worst first."""
    rows = [numbers.row(numbers.compared, system) for system in outcomes]
    without = [*filter(None, [user_choice.left_out(numbers.values.values.source)])]
    unjudged, missed, ties = _unjudged(numbers), _missed(numbers), _ties(numbers)
    is_open = any(outcome.kind == "unjudged" for outcome in outcomes.values())
    said = {
        "groups_without": bool(without),
        "unjudged_at": bool(unjudged) or is_open,
        "missed_users": bool(missed),
        "ties_at_the_cut": bool(ties),
    }
    is_few = numbers.users <= verdict.FEW_USERS
    is_few = is_few and [outcome.few for outcome in outcomes.values()] != [True]
    is_few = is_few and any(outcome.kind != "identical" for outcome in outcomes.values())
    return [
        *_human(numbers),
        *_served(numbers, outcomes),
        *without,
        *unjudged,
        *missed,
        *(text for row in rows for text in mixes_of(numbers, row).values()),
        *(text for row in rows for text in _groups(numbers, row)),
        *(text for row in rows for text in _secondary(numbers, row)),
        *ties,
        *([say(numbers, "doubts", "few", number=numbers.users)] if is_few else []),
        *(text for row in rows for text in _rare_losses(numbers, row)),
        *(text for row in rows for text in _small_effect(numbers, row)),
        *_identical(numbers, outcomes),
        *_noted(numbers, rows),
        *_undefined(numbers),
        *_checks(numbers, tuple(name for name, is_said in said.items() if is_said)),
    ]


def _human(numbers: Numbers) -> list[str]:
    """Say which parts human labels correct."""
    if numbers.call.human is None:
        return []
    row = numbers.row(numbers.means, numbers.chosen or numbers.systems[0])
    return [say(numbers, "doubts", "human", number=row["users_human"])]


def _served(numbers: Numbers, outcomes: Mapping[object, Outcome]) -> list[str]:
    """Write the claim on the users whom both serve, if it is another one; no labels correct it."""
    if numbers.call.human is not None:
        return []
    # their groups are not compared
    served = numbers._replace(compared=numbers.served, segments={}, of_relevant=None)
    lines: list[str] = []
    for system, outcome in outcomes.items():
        if not (row := numbers.row(numbers.served, system)):
            continue
        alone = verdict.outcome_of(served, system)
        if verdict.shown_by(outcome.kind) != verdict.shown_by(alone.kind):
            change = strips.change_of(row)
            text = change.text if change and change.value else None
            lines.append(say(numbers, "doubts", "served", title=alone.title, change=text))
    return lines


def _unjudged(numbers: Numbers) -> list[str]:
    """Write how many of the first items nobody judged, where the systems differ in it."""
    if not numbers.unjudged:
        return []
    least = min(numbers.unjudged, key=lambda name: numbers.unjudged[name].share)
    low, raised = numbers.unjudged[least]
    lines: list[str] = []
    for name, (share, value) in numbers.unjudged.items():
        if share == low or value is None or raised is None:
            continue
        if verdict.may_turn(numbers, name, least):
            continue  # an outcome of its own
        of = {"share": share, "system": text_of(name), "least": text_of(least), "low": low}
        means = {"raised": numerals.number(value, 3), "other": numerals.number(raised, 3)}
        lines.append(say(numbers, "doubts", "unjudged", **of, **means))
    return lines


def _missed(numbers: Numbers) -> list[str]:
    rows = [(text_of(name), "", numbers.users, count) for name, count in numbers.missed.items()]
    schema = ["system", "segment", "users", "num_missed"]
    of_users = numbers.values.rows
    without = of_users.filter(pl.col(user_columns.MISSED).fill_null(value=False))
    values = without.select(name for name in numbers.names if name in of_users.columns)
    counts = numbers.values.tables.users in ("truth", "judged", "rows")
    counts &= not any((column != 0).any() for column in values.iter_columns())
    table = pl.DataFrame(rows, schema=schema, orient="row")
    lines = sentences.missed_lines(table, nouns=numbers.nouns)
    zero = "" if counts else None
    return [say(numbers, "doubts", "missed", line=line, zero=zero) for line in lines]


def mixes_of(numbers: Numbers, row: Mapping[str, Any]) -> dict[str, str]:
    """Write which group's share explains a mean that moves against each group's, by column."""
    lines: dict[str, str] = {}
    for name, kinds in verdict.groups_of(numbers, row).items() if not numbers.trial.paired else ():
        (kind, rows), *others = kinds.items()
        if others or kind not in verdict.DIRECTIONS or verdict.direction_of(row) == kind:
            continue
        if any((of["difference"] or 0) * row["difference"] >= 0 for of in rows):
            continue
        new, old = (sum(of[which] for of in rows) for which in ("users", "baseline_users"))
        shares = [(of["users"] / new, of["baseline_users"] / old, of[name]) for of in rows]
        share, before, group = max(shares, key=lambda of: abs(of[0] - of[1]))
        of = {"kind": kind, "name": name, "group": text_of(group), "share": share, "before": before}
        rise = int(row["difference"] > 0)
        lines[name] = say(numbers, "doubts", "mix", row, rise=rise, **of)
    return lines


def _groups(numbers: Numbers, row: Mapping[str, Any]) -> list[str]:
    """Name the groups that are shown to go the other way than the whole."""
    mixed, lines = mixes_of(numbers, row), list[str]()
    for name, kinds in verdict.groups_of(numbers, row).items():
        for kind in verdict.DIRECTIONS:
            if kind in kinds and name not in mixed and kind != verdict.direction_of(row):
                names = _named([text_of(of[name]) for of in kinds[kind]], numbers)
                of = {"name": verdict.name_of(numbers, name), "kind": kind, "names": names}
                lines.append(say(numbers, "doubts", "groups", row, **of))
    return lines


def _secondary(numbers: Numbers, row: Mapping[str, Any]) -> list[str]:
    """Write the losses in metrics that count only if the primary one shows a difference."""
    if numbers.trial.primary is None or verdict.direction_of(row):
        return []
    system = row[numbers.call.by]
    rows = [numbers.row(numbers.compared, system, name) for name in numbers.names]
    lost = [of for of in rows if of and of["metric"] != row["metric"] and _is_loss(numbers, of)]
    texts = [verdict.change_in_words(numbers, of) for of in lost]
    return [
        say(numbers, "doubts", "secondary", changes=numerals.listed(part))
        for part in _parts(texts, _MOST_SHARES)
    ]


def _is_loss(numbers: Numbers, row: Mapping[str, Any]) -> bool:
    """Return whether a metric alone would show a loss."""
    rising = numbers.values.directions.get(row["metric"])
    if rising is None or row["p_value"] is None or not row["difference"]:
        return False
    loses = (row["difference"] < 0) == rising
    return loses and bool(decision.shows(row["p_value"], numbers.trial.alpha))


def _ties(numbers: Numbers) -> list[str]:
    """Write which systems have many lists whose first items depend on the order of ties."""
    tied = numbers.health.filter(
        pl.col("what") == "ties_at_the_cut", pl.col("share") >= facts.MATTERS
    )
    shares = {**{row[numbers.call.by]: row["share"] for row in tied.to_dicts()}, **numbers.tied}
    if not shares:
        return []
    most = sorted(shares, key=lambda name: -shares[name])
    lists = [
        say(numbers, "doubts", "tied", share=shares[name], system=text_of(name)) for name in most
    ]
    return [say(numbers, "doubts", "ties", lists=_named(lists, numbers, _MOST_SHARES))]


def _rare_losses(numbers: Numbers, row: Mapping[str, Any]) -> list[str]:
    """Write that losses too rare for these users to show one would turn a proved gain."""
    width = numbers.values.metric(numbers.decides).traits.width
    harm = numbers.row(numbers.harm, row[numbers.call.by])
    noted = "rare_losses" in notes.kinds(row["note"])  # the note says it
    if noted or not harm or harm["share"] != 0 or verdict.direction_of(row) != "better":
        return []
    loss = abs(row["difference"]) / harm["share_high"]
    if not isfinite(width) or loss > width:
        return []
    of = {"much": harm["more_than"], "most": harm["share_high"], "loss": loss}
    return [say(numbers, "doubts", "rare_losses", row, **of)]


def _small_effect(numbers: Numbers, row: Mapping[str, Any]) -> list[str]:
    """Write that many users prove a difference that may not matter, in place of the note."""
    change = strips.change_of(row)
    if change is None or "small_effect" not in notes.kinds(row["note"]):
        return []
    return [say(numbers, "doubts", "small_effect", change=change.text)] * bool(
        verdict.direction_of(row)
    )


def _identical(numbers: Numbers, outcomes: Mapping[object, Outcome]) -> list[str]:
    """Name the systems of several that may be the baseline, read twice."""
    copies = [system for system, outcome in outcomes.items() if outcome.step == "identical"]
    return [
        say(numbers, "doubts", "identical", system=text_of(system))
        for system in copies * (len(outcomes) > 1)
    ]


def _noted(numbers: Numbers, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write the notes of the comparisons that decide, such as left-out users."""
    systems: dict[str, list[str]] = {}
    for row in rows:
        for note in notes.rest_of(row["note"], _SAID):
            if note != verdict.why_of(row):
                text = notes.text([note], numbers.nouns) or ""
                systems.setdefault(text, []).append(text_of(row[numbers.call.by]))
    if len(rows) < 2:
        return [f"{text[:1].upper()}{text[1:]}." for text in systems]
    return [f"{_named(names, numbers)}: {text}." for text, names in systems.items()]


def _undefined(numbers: Numbers) -> list[str]:
    left_out = numbers.means.filter(
        pl.col("num_left_out") >= facts.MATTERS * summaries.SELECTED, pl.col("num_left_out") > 0
    )
    most = left_out.group_by("metric", maintain_order=True).agg(pl.col("num_left_out").max())
    return [say(numbers, "doubts", "undefined", metric=m, number=count) for m, count in most.rows()]


def _checks(numbers: Numbers, said: tuple[str, ...]) -> list[str]:
    """Name the checks of the data that found a problem, unless another doubt says it."""
    names = checks.found(numbers, said)
    texts = [_named(names, numbers, _MOST_SHARES)] if names else []
    return [say(numbers, "doubts", "checks", found=text) for text in texts]


def _parts(texts: Sequence[str], most: int) -> list[Sequence[str]]:
    """Split texts for sentences that have so many numbers at most."""
    return [texts[first : first + most] for first in range(0, len(texts), most)]


def _named(names: Sequence[str], numbers: Numbers, most: int = _MOST_NAMES) -> str:
    """List names, of many the first ones and how many more there are."""
    if len(names) > most:
        more = say(numbers, "doubts", "more", number=len(names) - most + 1)
        names = [*names[: most - 1], more]
    return numerals.listed(names)
