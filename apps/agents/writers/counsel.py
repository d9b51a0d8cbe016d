"""A Conductor's answer, checked: JSON of a known shape whose evidence is in the profile and true of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.agents.words import Evidence, Prediction
from apps.agents.writers.objects import object_in, text_of
from apps.agents.writers.unusable import Unusable
from apps.kernels.evaluation import Metric

_RELATIONS = {">": ">", ">=": ">", "≥": ">", "<": "<", "<=": "<", "≤": "<"}
_MOST = 8  # pieces of evidence, and predictions: more than that is no reading of a profile
_LONGEST = 2000  # characters of a text


@dataclass(frozen=True)
class Counsel:
    """What the model advises. Of `problems` each names something that can't be used and was left out."""

    bottleneck: str = ""
    change: str = ""
    why: str = ""
    evidence: tuple[Evidence, ...] = ()
    expected: tuple[Prediction, ...] = ()
    nothing_to_gain: str = ""
    problems: tuple[str, ...] = field(default=())

    @property
    def complete(self) -> bool:
        """Whether there is an advice in it, or a reason for none."""
        return bool(self.nothing_to_gain or (self.bottleneck and self.change))


def counsel_in(answer: str, metrics: Mapping[str, Metric]) -> Counsel:
    """The counsel that an answer gives of a version with these metrics. Raises `Unusable` where it holds no object."""
    data = object_in(answer, {"bottleneck", "change", "nothing_to_gain"})
    if data is None:
        raise Unusable("it holds no JSON object with `bottleneck`, `evidence`, `change` and `expected`")
    if nothing := text_of(data, "nothing_to_gain", _LONGEST):
        return Counsel(nothing_to_gain=nothing)
    problems: list[str] = []
    evidence = [e for item in _list(data, "evidence", problems) if (e := _evidence(item, metrics, problems))]
    expected = [p for item in _list(data, "expected", problems) if (p := _prediction(item, metrics, problems))]
    bottleneck, change = text_of(data, "bottleneck", _LONGEST), text_of(data, "change", _LONGEST)
    if not bottleneck:
        problems.append("`bottleneck` is missing")
    if not change:
        problems.append("`change` is missing")
    if not evidence and metrics:
        problems.append("there is no evidence that holds. Name at least one metric of the table")
    if not expected and metrics:
        problems.append("there is no prediction. Say at least what becomes of `time_over_reference`")
    return Counsel(
        bottleneck, change, text_of(data, "why", _LONGEST), tuple(evidence), tuple(expected), "", tuple(problems)
    )


def _evidence(item: Any, metrics: Mapping[str, Metric], problems: list[str]) -> Evidence | None:
    """Evidence with the value that was measured, whatever value the model gave."""
    metric = _metric(item, metrics, problems, "evidence")
    if metric is None:
        return None
    relation, threshold = _RELATIONS.get(str(item.get("relation"))), _number(item.get("threshold"))
    if relation is None or threshold is None:
        problems.append(f"the evidence on `{metric.name}` needs a `relation` (> or <) and a number as `threshold`")
        return None
    if not (metric.value >= threshold if relation == ">" else metric.value <= threshold):
        problems.append(f"`{metric.name}` is {metric.value:.5g}, which is not {relation} {threshold:.5g}")
        return None
    return Evidence(metric.name, metric.value, metric.unit, relation, threshold)


def _prediction(item: Any, metrics: Mapping[str, Metric], problems: list[str]) -> Prediction | None:
    metric = _metric(item, metrics, problems, "prediction")
    if metric is None:
        return None
    ratio = _number(item.get("ratio"))
    low, high = _number(item.get("low")), _number(item.get("high"))
    low, high = ratio if low is None else low, ratio if high is None else high
    if ratio is None or low is None or high is None or not 0 <= low <= ratio <= high:
        problems.append(f"the prediction of `{metric.name}` needs `low` <= `ratio` <= `high`, none of them negative")
        return None
    return Prediction(metric.name, ratio, low, high)


def _metric(item: Any, metrics: Mapping[str, Metric], problems: list[str], what: str) -> Metric | None:
    name = str(item.get("metric", "")) if isinstance(item, dict) else ""
    if name not in metrics:
        problems.append(f"the {what} names `{name[:60]}`, and no metric of the profile is called so")
        return None
    return metrics[name]


def _list(data: dict[str, Any], name: str, problems: list[str]) -> list[Any]:
    value = data.get(name, [])
    if isinstance(value, dict):
        return [value]
    if not isinstance(value, list):
        problems.append(f"`{name}` is no list")
        return []
    return value[:_MOST]


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
