"""Makes the card of a report: a claim, how much, for how many users, what to doubt, what next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from rankframe._comparison import notes, numerals, power, trials
from rankframe._inputs import several_users
from rankframe._report import checks, doubts, nouns, strips, verdict
from rankframe._report.facts import Numbers
from rankframe._report.markup import Card, Step, UserBar
from rankframe._report.verdict import Outcome, outcome_of, say, text_of

_MOST_NEEDED = 10_000_000
_MOST_NAMES = 3  # of systems of one outcome
_MOST_BEST = 4  # systems that may be the best
#: Where the links of steps lead.
_LINKS = {"better": "lists", "worse": "lists", "judge": "judge", "judge_all": "judge"}


def card_of(numbers: Numbers) -> Card:
    """Return the card: of a system, of one system and its baseline, or of several."""
    outcomes = {s: outcome_of(numbers, s) for s in numbers.systems[1:] if numbers.pairs}
    if not outcomes:
        card = _of_one(numbers)
    elif len(outcomes) > 1:
        card = _of_several(numbers, outcomes)
    else:
        card = _of_pair(numbers, outcomes[numbers.chosen])
    lines = doubts.doubts_of(numbers, {system: outcomes[system] for system in numbers.shown})
    number, problems = checks.number_of(numbers)
    passed = "" if lines or problems else say(numbers, "bar", "passed", number=number)
    return card._replace(doubts=lines, passed=passed)


def text_of_card(card: Card) -> str:
    """Write the card as lines of text."""
    lines = [f"{card.title}.", card.sentence, *(f"⚠ {line}" for line in card.doubts)]
    if card.bar is not None:
        lines.append(f"{', '.join(text for _, _, text in card.bar.parts)} {card.bar.below}.")
    lines += [f"✓ {card.passed}"] * bool(card.passed)
    return nouns.in_text("\n".join([*lines, "".join(card.step[:3])]))


def _of_one(numbers: Numbers) -> Card:
    row = numbers.row(numbers.means, numbers.systems[0])
    low, high = (
        None if (end := row[n]) is None else numerals.number(end) for n in ("ci_low", "ci_high")
    )
    system = text_of(numbers.systems[0])
    kind = "valueless" if row["mean"] is None else "only"
    title = say(numbers, "titles", kind, system=system, mean=row["mean"])
    sentence = say(numbers, "sentences", "only", low=low, high=high)
    return Card("open", title, sentence, step=_step(numbers, "only"))


def _of_pair(numbers: Numbers, outcome: Outcome) -> Card:
    row = numbers.row(numbers.compared, numbers.chosen)
    bar = None if outcome.kind in ("identical", "unjudged") else _bar(numbers, row)
    step = _step_of(numbers, outcome, row)
    strip = verdict.strip_of(numbers, outcome, row)
    return Card(outcome.kind, outcome.title, outcome.sentence, strip, bar, step=step)


def _of_several(numbers: Numbers, outcomes: Mapping[object, Outcome]) -> Card:
    """Count the outcomes of several systems, and say which of the best ones may be the best."""
    best = "higher" if numbers.values.directions.get(numbers.decides) is None else "better"
    systems: dict[str, list[object]] = {}
    for system, outcome in outcomes.items():
        systems.setdefault(outcome.kind, []).append(system)
    won, number = systems.get(best, []), len(outcomes)
    kind = ("several_higher" if best == "higher" else "several") + ("" if won else "_none")
    title = say(numbers, "titles", kind, better=len(won), number=number)
    texts = [
        _count(numbers, kind, systems[kind])
        for kind in notes.templates("outcomes")
        if kind in systems and (kind != best or len(won) <= _MOST_NAMES)
    ]
    lines = [say(numbers, "sentences", "several", outcomes="; ".join(texts))] if texts else []
    lines += _best_of(numbers, won)
    chosen = numbers.chosen
    step = _step_of(numbers, outcomes[chosen], numbers.row(numbers.compared, chosen))
    return Card("open", title, " ".join(lines), step=step)


def _count(numbers: Numbers, kind: str, systems: Sequence[object]) -> str:
    names = numerals.listed([*map(text_of, systems)])
    who = names if len(systems) <= _MOST_NAMES else f"{len(systems):,}"
    return f"{who} {say(numbers, 'outcomes', kind, number=len(systems))}"


def _best_of(numbers: Numbers, won: Sequence[object]) -> list[str]:
    """Say which of the systems better than the baseline may be the best."""
    leaders = [system for system in won if system in numbers.leaders]
    if len(won) < 2 or not leaders:  # no direction is better, or one of another outcome is
        return []
    if len(leaders) == len(won):
        kind = "neither_best" if len(won) == 2 else "none_best"
        return [say(numbers, "sentences", kind, number=len(won))]
    names = numerals.listed([*map(text_of, leaders)])
    if len(leaders) > _MOST_BEST:
        return [say(numbers, "sentences", "many_best", number=len(won), best=len(leaders))]
    if len(leaders) > 1:
        return [say(numbers, "sentences", "best", number=len(won), best=names)]
    row = numbers.row(numbers.compared, leaders[0])
    change = strips.change_of(row)
    low, high = (change and change.ends) or (None, None)
    of = {"mean": numerals.number(row["mean"], 3), "change": change and change.text}
    return [
        say(numbers, "sentences", "the_best", number=len(won), best=names, low=low, high=high, **of)
    ]


def _bar(numbers: Numbers, row: Mapping[str, Any]) -> UserBar | None:
    """Count the users who do worse, the same and better, and those who lose much."""
    if row["higher"] is None or row["users"] < 2:
        return None
    rising = numbers.values.directions.get(row["metric"])
    kinds = ("lower", "higher") if rising is None else ("worse", "better")
    down, up = (
        (row["lower"], row["higher"]) if rising is not False else (row["higher"], row["lower"])
    )
    counts = {kinds[0]: down, "same": row["equal"], kinds[1]: up}
    parts = [(kind, n, say(numbers, "bar", kind, number=n)) for kind, n in counts.items()]
    harm = numbers.row(numbers.harm, row[numbers.call.by])
    lost = round(harm["share"] * harm["users"]) if harm and harm["more_than"] else None
    much = None if lost is None else harm["more_than"]
    return UserBar(parts, say(numbers, "bar", "below", row, lost=lost, much=much))


# ------------------------------------------------------------------ what to do next


def _step_of(numbers: Numbers, outcome: Outcome, row: Mapping[str, Any]) -> Step:
    """Write what follows from an outcome."""
    kind, bar = outcome.kind, _bar(numbers, row)
    number = _differing_groups(row, numbers)
    if outcome.step:
        user = numbers.values.values.user
        users = [text_of(several_users.text_of(name, user)) for name in numbers.to_judge]
        names = numerals.listed(users) if users else None
        return _step(numbers, outcome.step, number=len(users), names=names)
    if doubts.mixes_of(numbers, row):
        return _step(numbers, "equal_shares")
    if numbers.unjudged:
        return _step(numbers, "judge_all")
    if verdict.shown_by(kind) in ("undecided", "same", "not worse") and number:
        return _step(numbers, "confirm", number=number)
    if kind == "untested" and not outcome.few:
        return _step(numbers, "other_metric")
    if verdict.shown_by(kind) == "undecided":
        return _more_users(numbers, row)
    has_lists = numbers.trial.paired and (bar is None or bar.parts[0][1] > 0)
    if kind == "better" and not has_lists:
        return _step(numbers, "no_loss")
    same = kind in ("same", "not worse")
    return _step(numbers, "same" if same else kind.partition(" within")[0])


def _step(numbers: Numbers, kind: str, **values: Any) -> Step:
    chosen = text_of(numbers.chosen) if len(numbers.systems) > 2 else None
    lead, *rest = say(numbers, "steps", kind, one=chosen, **values).split("|")
    text, after = rest or ("", "")
    link = _LINKS.get(kind, "")
    people = numbers.people
    has_target = people is not None and bool(people.to_judge if link == "judge" else people.persons)
    return Step(lead, text, after, link * has_target)


def _differing_groups(row: Mapping[str, Any], numbers: Numbers) -> int:
    """Count the groups that differ, where the whole is not shown to."""
    groups = verdict.groups_of(numbers, row).values()
    return sum(len(of.get(kind, [])) for of in groups for kind in verdict.DIRECTIONS)


def _more_users(numbers: Numbers, row: Mapping[str, Any]) -> Step:
    """Write how many users a difference of the observed size needs."""
    needed = _needed(numbers, row)
    if needed is not None and needed > _MOST_NEEDED:
        return _step(numbers, "margin", number=_MOST_NEEDED)
    change = strips.change_of(row)
    digits = 10 ** max(0, len(str(needed)) - 2)
    about = None if needed is None else f"{-(-needed // digits) * digits:,}"
    return _step(numbers, "undecided", needed=about, size=change and change.size)


def _needed(numbers: Numbers, row: Mapping[str, Any]) -> int | None:
    """Return the number of users by ``power``, for one of the comparisons adjusted.

    The difference of a few users is no estimate to plan with.
    """
    trial, settings = numbers.trial, numbers.call.settings
    if numbers.call.human is not None:  # more of whom: all, or those with human labels?
        return None
    if not trial.paired or settings.weights is not None or not row["detectable"]:
        return None
    if (
        row["users"] < verdict.FEW_USERS
        or not round(row["difference"], verdict.SAME)
        or verdict.few_differ(row)
    ):
        return None
    family = 1 if trial.correction is None else max(1, numbers.family)
    by = numbers.call.by
    rows = numbers.values.rows.filter(pl.col(by).is_in([trial.baseline, row[by]]))
    plan = power.plan_of(
        numbers.values.only([row["metric"]], rows),
        trials.Trial(trial.baseline, confidence=trial.confidence, cluster=trial.cluster),
        trials.POWER,
        abs(row["difference"]),
        family,
    )
    needed = plan.collect()["needed"].item()
    return _MOST_NEEDED + 1 if needed is None else needed
