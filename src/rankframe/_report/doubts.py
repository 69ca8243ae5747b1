"""Says what may mislead about the comparison of a report: each doubt is one short sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import polars as pl

from rankframe._comparison import decision, notes, numerals, sentences, summaries, trials
from rankframe._evaluation import user_choice
from rankframe._report import checks, facts, strips, verdict
from rankframe._report.facts import Numbers
from rankframe._report.verdict import say, text_of

#: Notes of a comparison that other sentences of the card say, or that are of the method alone.
_SAID = (
    *(*verdict.REASONS, "no_list", "few_users", "primary", "secondary", "looks", "small_effect"),
    *("negative_baseline", "one_share", *trials.EXACT, "cut", "cut_difference", "groups"),
)
_MOST_NAMES = 4  # in a sentence
_MOST_SHARES = 3  # in a sentence


def doubts_of(numbers: Numbers) -> list[str]:
    """Return what may mislead, the worst first."""
    without = [*filter(None, [user_choice.left_out(numbers.values.values.source)])]
    unjudged, missed, ties = _unjudged(numbers), _missed(numbers), _ties(numbers)
    said = {
        "groups_without": bool(without),
        "unjudged_at": bool(unjudged) or _is_open(numbers),
        "missed_users": bool(missed),
        "ties_at_the_cut": bool(ties),
    }
    return [
        *_served(numbers),
        *without,
        *unjudged,
        *missed,
        *_mixes(numbers),
        *_groups(numbers),
        *_secondary(numbers),
        *ties,
        *_few(numbers),
        *_rare_losses(numbers),
        *_small_effects(numbers),
        *_identical(numbers),
        *_noted(numbers),
        *_undefined(numbers),
        *_checks(numbers, tuple(name for name, is_said in said.items() if is_said)),
    ]


def _served(numbers: Numbers) -> list[str]:
    """Write the claim on the users whom both serve, if it is another one."""
    # their groups are not compared
    served = numbers._replace(compared=numbers.served, segments={}, of_relevant=None)
    lines: list[str] = []
    for system in numbers.shown:
        row = numbers.row(numbers.served, system)
        if not row:
            continue
        whole, alone = verdict.outcome_of(numbers, system), verdict.outcome_of(served, system)
        if verdict.shown_by(whole.kind) != verdict.shown_by(alone.kind):
            change = strips.change_of(row)
            text = None if change is None or not change.value else change.text
            lines.append(say(numbers, "doubts", "served", title=alone.title, change=text))
    return lines


def _unjudged(numbers: Numbers) -> list[str]:
    """Write how many of the first items nobody judged, where the systems differ in it."""
    if not numbers.unjudged:
        return []
    least = min(numbers.unjudged, key=lambda name: numbers.unjudged[name].share)
    low, raised, _ = numbers.unjudged[least]
    lines: list[str] = []
    for name, (share, value, _) in numbers.unjudged.items():
        if share == low or value is None or raised is None:
            continue
        if verdict.may_turn(numbers, name, least):
            continue  # an outcome of its own
        of = {"share": share, "system": text_of(name), "least": text_of(least), "low": low}
        means = {"raised": numerals.number(value, 3), "other": numerals.number(raised, 3)}
        lines.append(say(numbers, "doubts", "unjudged", **of, **means))
    return lines


def _is_open(numbers: Numbers) -> bool:
    """Return whether the outcome of a system says that judgments are missing."""
    kinds = [verdict.outcome_of(numbers, system).kind for system in numbers.shown]
    return "unjudged" in kinds


def _missed(numbers: Numbers) -> list[str]:
    rows = [(text_of(name), "", numbers.users, count) for name, count in numbers.missed.items()]
    schema = ["system", "segment", "users", "num_missed"]
    counts = (numbers.call.settings.users or "truth") in ("truth", "judged")
    table = pl.DataFrame(rows, schema=schema, orient="row")
    lines = sentences.missed_lines(table, nouns=numbers.nouns)
    zero = "" if counts else None
    return [say(numbers, "doubts", "missed", line=line, zero=zero) for line in lines]


def _mixes(numbers: Numbers) -> list[str]:
    """Write which group's share explains a mean that moves against each group's."""
    shown = [numbers.row(numbers.compared, system) for system in numbers.shown]
    return [text for row in shown for text, _ in mixes_of(numbers, row)]


def mixes_of(numbers: Numbers, row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return such sentences, and the columns of their groups."""
    lines: list[tuple[str, str]] = []
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
        lines.append((say(numbers, "doubts", "mix", row, rise=rise, **of), name))
    return lines


def _groups(numbers: Numbers) -> list[str]:
    """Name the groups that are shown to go the other way than the whole."""
    lines: list[str] = []
    for system in numbers.shown:
        row = numbers.row(numbers.compared, system)
        mixed = {name for _, name in mixes_of(numbers, row)}
        for name, kinds in verdict.groups_of(numbers, row).items():
            for kind in {*verdict.DIRECTIONS} & {*kinds} - {verdict.direction_of(row)}:
                if name not in mixed:
                    names = _named([text_of(of[name]) for of in kinds[kind]], numbers)
                    of = {"name": verdict.name_of(numbers, name), "kind": kind, "names": names}
                    lines.append(say(numbers, "doubts", "groups", row, **of))
    return sorted(lines)


def _secondary(numbers: Numbers) -> list[str]:
    """Write the losses in metrics that count only if the primary one shows a difference."""
    lines: list[str] = []
    primary = numbers.trial.primary
    for system in numbers.shown if primary is not None else ():
        if verdict.direction_of(numbers.row(numbers.compared, system)):
            continue
        rows = [numbers.row(numbers.compared, system, name) for name in numbers.names]
        lost = [row for row in rows if row and row["metric"] != primary and _is_loss(numbers, row)]
        for first in range(0, len(lost), _MOST_SHARES):
            some = lost[first : first + _MOST_SHARES]
            changes = numerals.listed([verdict.change_in_words(numbers, row) for row in some])
            lines.append(say(numbers, "doubts", "secondary", changes=changes))
    return lines


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


def _few(numbers: Numbers) -> list[str]:
    """Write that there are few users, unless the title does."""
    if numbers.users > verdict.FEW_USERS:
        return []
    said = len(numbers.shown) == 1 and verdict.outcome_of(numbers, numbers.chosen).few
    return [] if said else [say(numbers, "doubts", "few", number=numbers.users)]


def _rare_losses(numbers: Numbers) -> list[str]:
    """Write that losses too rare for these users to show one would turn a proved gain."""
    width = numbers.values.metric(numbers.decides).traits.width
    lines: list[str] = []
    for system in numbers.shown:
        row = numbers.row(numbers.compared, system)
        harm = numbers.row(numbers.harm, system)
        if not harm or harm["share"] != 0 or verdict.direction_of(row) != "better":
            continue
        loss = abs(row["difference"]) / harm["share_high"]
        if isfinite(width) and loss <= width:
            of = {"much": harm["more_than"], "most": harm["share_high"], "loss": loss}
            lines.append(say(numbers, "doubts", "rare_losses", row, **of))
    return lines


def _small_effects(numbers: Numbers) -> list[str]:
    """Write that many users prove a difference that may not matter, in place of the note."""
    rows = [numbers.row(numbers.compared, system) for system in numbers.shown]
    small = [
        strips.change_of(row)
        for row in rows
        if "small_effect" in notes.kinds(row["note"]) and verdict.direction_of(row)
    ]
    return [
        say(numbers, "doubts", "small_effect", change=change.text) for change in small if change
    ]


def _identical(numbers: Numbers) -> list[str]:
    """Name the systems of several that may be the baseline, read twice."""
    if len(numbers.systems) == 2:
        return []
    rows = [numbers.row(numbers.compared, system) for system in numbers.shown]
    steps = [verdict.outcome_of(numbers, system).step for system in numbers.shown]
    return [
        say(numbers, "doubts", "identical", row)
        for row, step in zip(rows, steps, strict=True)
        if step == "identical"
    ]


def _noted(numbers: Numbers) -> list[str]:
    """Write the notes of the comparisons that decide, such as left-out users."""
    systems: dict[str, list[str]] = {}
    for system in numbers.shown:
        row = numbers.row(numbers.compared, system)
        for note in notes.unpacked(row["note"]):
            if note.kind not in _SAID and note != verdict.why_of(row):
                text = notes.text([note], numbers.nouns) or ""
                systems.setdefault(text, []).append(text_of(system))
    if len(numbers.shown) < 2:
        return [f"{text[:1].upper()}{text[1:]}." for text in systems]
    return [f"{_named(names, numbers)}: {text}." for text, names in systems.items()]


def _undefined(numbers: Numbers) -> list[str]:
    left_out = numbers.means.filter(
        pl.col("num_left_out") >= facts.MATTERS * summaries.SELECTED, pl.col("num_left_out") > 0
    )
    most = left_out.group_by("metric", maintain_order=True).agg(pl.col("num_left_out").max())
    return [say(numbers, "doubts", "undefined", metric=m, number=count) for m, count in most.rows()]


def _checks(numbers: Numbers, said: tuple[str, ...]) -> list[str]:
    """Name the checks of the data that found what may do harm, unless another doubt says it."""
    found = [
        name + ("" if share is None else f" ({numerals.percent(share)})")
        for name, share in checks.found(numbers, said)
    ]
    some = [found[first : first + _MOST_NAMES] for first in range(0, len(found), _MOST_NAMES)]
    return [say(numbers, "doubts", "checks", found=numerals.listed(names)) for names in some]


def _named(names: Sequence[str], numbers: Numbers, most: int = _MOST_NAMES) -> str:
    """List names, of many the first ones and how many more there are."""
    if len(names) > most:
        more = say(numbers, "doubts", "more", number=len(names) - most + 1)
        names = [*names[: most - 1], more]
    return numerals.listed(names)
