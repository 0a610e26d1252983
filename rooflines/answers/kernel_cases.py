"""Cases of a question about a kernel: an answer, or a table of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.answers.basis import BOUND_BASIS, ESTIMATE_BASIS
from rooflines.answers.case_table import MAX_CASES, Cases
from rooflines.answers.chain_answer import chain_answer
from rooflines.answers.collective_answer import collective_answer
from rooflines.answers.kernel_estimate import KernelChip
from rooflines.answers.kind_answer import kind_answer
from rooflines.answers.measured_kernel import IN_SWITCH
from rooflines.basics.errors import RooflinesError, quote
from rooflines.fits.calibration_files import AUTO_CALIBRATION
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.kinds.collectives import PAYLOAD
from rooflines.kinds.placed_kernels import EXPONENTIALS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.answers.kernel_answer import KernelAnswer
    from rooflines.answers.kernel_question import AskedCase, KernelQuestion
    from rooflines.answers.question import QuestionCatalogues

AMOUNTS = {
    "flops": "FLOP",
    "memory_bytes": "bytes",
    "network_bytes": "bytes sent",
    IN_SWITCH: "in the switch",
    "busbw_bytes_per_s": "busbw",
    "t_serial_s": "serialized",
}
"""Column titles of amounts that a table has where they are above zero."""


def kernel_cases(
    question: KernelQuestion,
    catalogues: QuestionCatalogues,
    options: Mapping[str, Any],
    *,
    bound: bool = False,
) -> KernelAnswer | Cases:
    """Answer a question about a kernel; tabulate several cases.

    Args:
        question: The question.
        catalogues: Chips and calibrations.
        options: Options of the command: `memory`, `network`, `calibration`.
        bound: True for the bound alone.

    Raises:
        RooflinesError: Something is invalid, the chips cannot do it, or there are too many cases.
    """
    shards = [*dict.fromkeys(question.shards)] if question.collective else [""]
    cases = [(case, count) for case in question.cases() for count in shards]
    if len(cases) > MAX_CASES:
        problem = f"has {len(cases):,} cases, more than the {MAX_CASES} of a table"
        raise RooflinesError("the question", problem, "ask for fewer, or run a config of them")
    if question.measured and len(cases) > 1:
        problem = f"is a number for one case, but the question has {len(cases)}"
        raise RooflinesError("measured", problem, "ask for one chip, dtype and size")
    subject_cases = _Asked(question, catalogues, options, bound=bound)
    answers = [subject_cases.answer(case, count) for case, count in cases]
    return answers[0] if len(answers) == 1 else _table(question, answers)


class _Asked:
    """A question with its catalogues and options.

    Args:
        question: The question.
        catalogues: Chips and calibrations.
        options: Options of the command.
        bound: True for the bound alone.
    """

    def __init__(
        self,
        question: KernelQuestion,
        catalogues: QuestionCatalogues,
        options: Mapping[str, Any],
        *,
        bound: bool,
    ) -> None:
        self.question, self.catalogues, self.options = question, catalogues, options
        named = options.get("calibration") or AUTO_CALIBRATION
        softwares = named.split(",") if isinstance(named, str) else named
        self.calibration = None if bound or "none" in softwares else softwares

    def answer(self, case: AskedCase, shards: str) -> KernelAnswer:
        """Answer to one case."""
        question, network = self.question, self.options.get("network")
        target = KernelChip(
            case.chip,
            self.catalogues.chips[case.chip],
            self.options.get("memory") or MAIN_MEMORY,
            network.split(",") if isinstance(network, str) else network,
            self.catalogues.calibrations,
            self.calibration,
        )
        subject, measured = question.subject, question.measured
        if question.collective:
            payload = case.sizes[PAYLOAD]
            return collective_answer(subject, payload, shards, target, measured=measured)
        if question.kind is None:
            return chain_answer(subject, case.sizes, case.dtypes, target, measured=measured)
        kind, options = question.kind, question.options
        return kind_answer(
            kind,
            case.sizes,
            case.dtypes,
            options,
            target,
            measured=measured,
            counts_exp=self._counts_exp(),
        )

    def _counts_exp(self) -> bool:
        """Tell whether exponentials are a resource of the bound."""
        resource = self.options.get("resource")
        if resource not in (None, EXPONENTIALS):
            problem = f"is {quote(resource)}, but only exponentials are asked for"
            raise RooflinesError("resource", problem, "write --resource exp, or leave it out")
        return resource is not None


def _table(question: KernelQuestion, answers: Sequence[KernelAnswer]) -> Cases:
    """Several answers as a table."""
    rows = [answer.row for answer in answers]
    keys = ("chip", "dtypes", "shards", *question.sizes)
    titles = {
        column: column
        for column in rows[0]
        if column in keys and len({row[column] for row in rows}) > 1
    }
    estimated = all(row.get(ESTIMATE_BASIS.column) is not None for row in rows)
    titles |= {ESTIMATE_BASIS.column: ESTIMATE_BASIS.title} if estimated else {}
    in_switch = any(row.get(IN_SWITCH) is not None for row in rows)
    titles |= {BOUND_BASIS.column: "ring" if in_switch else BOUND_BASIS.title, "bound": "bound"}
    titles |= {name: title for name, title in AMOUNTS.items() if any(row.get(name) for row in rows)}
    axis = answers[0].thresholds[0].axis if answers[0].thresholds else ""
    titles |= {"compute_bound_from": "compute-bound from"} if axis else {}
    basis = ESTIMATE_BASIS if estimated else BOUND_BASIS
    notes = [f"Compute-bound from this {axis} on, other sizes fixed."] if axis else []
    return Cases(_title(question), rows, titles, axis, basis, [*notes, *_common_facts(answers)])


def _title(question: KernelQuestion) -> str:
    """Question in words, without what differs between the rows."""
    sizes = (f"{letter}={values[0]}" for letter, values in question.sizes.items() if not values[1:])
    options = (name if value is True else value for name, value in question.options.items())
    dtypes = question.dtypes if len(question.dtypes) == 1 else []
    roles = (f"{role}={form}" for role, form in question.roles.items())
    return " ".join([question.subject, *sizes, *options, *dtypes, *roles])


def _common_facts(answers: Sequence[KernelAnswer]) -> Iterator[str]:
    """Facts that all rows share, as notes."""
    facts = [{(line.label, line.text) for line in answer.facts} for answer in answers]
    for line in answers[0].facts:
        if line.label not in ("intensity", "uncounted") and all(
            (line.label, line.text) in shared for shared in facts
        ):
            yield f"{line.label.capitalize()}: {line.text}"
