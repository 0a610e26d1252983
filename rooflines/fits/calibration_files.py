"""Calibration files: fitted numbers by chip and software, with source, errors and bands."""

from __future__ import annotations

import re
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from rooflines.basics.errors import Mistakes, check_choice
from rooflines.basics.file_kinds import named_kind
from rooflines.basics.files import CONFIG_DIR
from rooflines.basics.memo import Memo
from rooflines.basics.numbers import exact
from rooflines.basics.yaml_file import in_file, read_yaml
from rooflines.fits.fit_keys import FitKey, Software
from rooflines.fits.held_out import QUARTER
from rooflines.fits.time_form import (
    AttentionNumbers,
    CollectiveNumbers,
    ExpertsNumbers,
    Numbers,
)
from rooflines.hardware.dtype_catalogue import DTYPES_FILE, dtype_entries
from rooflines.hardware.entry_cache import cached_entries
from rooflines.hardware.entry_forms import (
    Entry,
    MeasuredShare,
    Name,
    NonNegative,
    Positive,
    PositiveInt,
    Text,
    validate_entry,
)
from rooflines.models.architecture import DECODE, PHASES
from rooflines.theory.network import RING_PASSES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from fractions import Fraction
    from pathlib import Path

CALIBRATIONS_FILE = CONFIG_DIR / "calibrations.yaml"

STEP_BAND, EXPERTS_BAND = "step", "step-experts"
"""Bands of decode steps: of models without and with routed experts."""

Bound = Literal["compute", "memory", "network", "mixed", "step", "step-experts"]

SAME_NUMBERS = "fp16", "bf16"
"""Compute dtypes with the same width and peak: the first takes the second's fit where it has
none."""

RANGED_SIZES = ("D", "F", "Fe", "S", "H", "bytes", "shards")
"""Sizes with a fit range: an estimate beyond their timed minimum and maximum says so."""

REFERENCE_DTYPE = "bf16"
"""Compute dtype whose matmuls neither read scales nor quantize: they show best what share of the
memory rate other kernels reach."""

WIDTH = 110
"""Characters per line in a written file [1]."""


class Errors(Entry):
    """Errors in the estimate: |estimated / measured - 1|."""

    n: PositiveInt = Field(description="timings [1]")
    median: NonNegative = Field(description="median error [1]")
    mean: NonNegative = Field(description="mean error [1]")
    p90: NonNegative = Field(description="error that one timing in ten exceeds [1]")


class Fitted(Entry):
    """Errors, bands and origin, common to all fits.

    Attributes:
        KIND: The key in a file that holds such fits.
    """

    KIND: ClassVar[str]

    bands: dict[Bound, tuple[Positive, Positive]] = Field(
        description="p10 and p90 of measured over estimated time, by bound of the estimate [1]"
    )
    held: list[Text] = Field(
        default_factory=list,
        description="parameters not identifiable from the timings, kept at the prior",
    )
    fitted: Errors = Field(description="errors at the timings of the fit")
    held_out: Errors | None = Field(
        None, description="errors at the sites that were held out; null: too few sites"
    )
    held_out_below: NonNegative = Field(
        QUARTER, description="place of a site, by its hash, below which it was held out [1]"
    )
    sizes: dict[Text, tuple[PositiveInt, PositiveInt]] = Field(
        default_factory=dict,
        description="smallest and largest sizes of the timings, held-out ones included: how far "
        "the numbers reach",
    )
    outside: tuple[Positive, Positive] | None = Field(
        None,
        description="p10 and p90 of measured over estimated time at the smallest and largest sites "
        "by a fit to the others: the band of sizes beyond the timings",
    )
    elsewhere: tuple[Positive, Positive] | None = Field(
        None,
        description="p10 and p90 of the timings of other engines over this estimate: the band "
        "where it is the fallback for another engine",
    )
    contents: Text | None = Field(
        None, description="what the timings include besides the operation; shown with an estimate"
    )
    source: Text = Field(description="where the timings come from")
    version: Text | None = Field(None, description="version of the software that was timed")
    date: Text = Field(description="when it was fitted")


class FittedMatmul(Fitted):
    """Numbers fitted to matmul timings in one compute dtype; see `time_form.Numbers`."""

    KIND = "calibrations"
    FORM: ClassVar[type[Numbers]] = Numbers

    math: MeasuredShare = Field(description="share of the peak that is reached [1]")
    memory: MeasuredShare = Field(description="share of the memory rate that is reached [1]")
    overhead_s: NonNegative = Field(description="fixed time of every operation [s]")
    activation_passes: NonNegative = Field(
        0, description="further passes over x, as dynamic quantization makes them [1]"
    )
    mixed_math: NonNegative = Field(
        0, description="mixed piece: times the nominal time at the peak [1]"
    )
    mixed_memory: NonNegative = Field(
        0, description="mixed piece: times the nominal time of the memory traffic [1]"
    )
    mixed_activations: NonNegative = Field(
        0, description="mixed piece: times the nominal time of x and out [1]"
    )
    mixed_depth_s: NonNegative = Field(
        0, description="mixed piece: time per contracted element [s]"
    )
    sustained: NonNegative = Field(
        0, description="share of the time beyond 1 ms that a lower, sustained clock adds [1]"
    )
    tile: PositiveInt = Field(1, description="rows that are computed together [1]")

    @cached_property
    def numbers(self) -> Numbers:
        """Fitted numbers, exact."""
        fields = self.FORM.__dataclass_fields__
        names = [name for name in fields if name in type(self).model_fields]
        values = {name: exact(getattr(self, name)) for name in names if name != "tile"}
        return self.FORM(**values, tile=self.tile)


class FittedAttention(FittedMatmul):
    """Numbers fitted to timings with grouped-query attention; depth is the context."""

    KIND = "attention"
    FORM = AttentionNumbers

    mixed_head_s: NonNegative = Field(
        0, description="mixed piece: time per sequence and KV head [s]"
    )
    bulk_overhead_s: NonNegative = Field(
        0, description="fixed time beside memory traffic at the share `bulk` [s]"
    )
    bulk: NonNegative = Field(
        0,
        description="share of the memory rate for large caches, where that is faster than `memory` "
        "alone; 0: one share for all [1]",
    )


class FittedExperts(FittedMatmul):
    """Numbers fitted to timings with routed experts; see `time_form.ExpertsNumbers`."""

    KIND = "experts"
    FORM = ExpertsNumbers

    token_passes: NonNegative = Field(
        0, description="passes over the tokens of all experts, which are sorted by expert [1]"
    )
    expert_s: NonNegative = Field(0, description="time of every activated expert [s]")


class FittedCollective(Fitted):
    """Numbers fitted to a collective's timings; see `time_form.CollectiveNumbers`."""

    KIND = "collectives"

    overhead_s: NonNegative = Field(description="fixed time of every collective [s]")
    low_latency: Positive = Field(
        description="share of the network rate, protocol for small payloads [1]"
    )
    bulk_overhead_s: NonNegative = Field(
        description="further fixed time of the protocol for large payloads [s]"
    )
    bulk: Positive = Field(description="share of the network rate, protocol for large payloads [1]")
    hop_s: NonNegative = Field(description="time of every step around the ring [s]")

    @cached_property
    def numbers(self) -> CollectiveNumbers:
        """Fitted numbers, exact."""
        names = CollectiveNumbers.__dataclass_fields__
        return CollectiveNumbers(**{name: exact(getattr(self, name)) for name in names})


ENTRIES: Mapping[str, type[FittedMatmul | FittedCollective]] = {
    fit_type.KIND: fit_type
    for fit_type in (FittedMatmul, FittedAttention, FittedExperts, FittedCollective)
}
"""Fit types by their key in a file."""

STEP_NUMBERS = ("prompts", "layer_s", "sequence_s")
"""Numbers in a step fit."""


AUTO_CALIBRATION = "auto"
"""Calibration by default: the chip's own, else the first engine that has one."""

AUTO_ENGINES = ("vllm", "trtllm", "sglang")
"""Engines of `auto`, in order."""

AUTO_COLLECTIVES = "nccl"
"""Library whose collectives `auto` takes where the engine has none of its own."""

ALL_ENGINES = "all"
"""Key for the step fit to all engines; its held-out error covers all runs."""


class FittedStep(Fitted):
    """Engine overhead: step time besides kernels, fitted to runs with served models."""

    KIND = "steps"

    prompts: NonNegative = Field(
        description="times the least time to read the prompts that arrive during a step [1]"
    )
    layer_s: NonNegative = Field(description="time of every layer besides its kernels [s]")
    sequence_s: NonNegative = Field(description="time of every sequence of a replica besides [s]")
    models: list[Text] = Field(
        default_factory=list, description="models in the runs: estimates of others are forecasts"
    )
    waiting: dict[Text, tuple[Positive, Positive, Positive]] = Field(
        default_factory=dict,
        description="p10, median and p90 of measured TTFT over prefill_estimate_s, by requests in "
        "flight a replica: waiting, which no estimate has",
    )

    @cached_property
    def numbers(self) -> dict[str, Fraction]:
        """Fitted numbers by name, exact."""
        return {name: exact(getattr(self, name)) for name in STEP_NUMBERS}

    def band_of(self, *, experts: bool) -> tuple[float, float] | None:
        """Band for a model, with routed experts or without; None: the fit has none."""
        names = (EXPERTS_BAND, STEP_BAND) if experts else (STEP_BAND,)
        ends = next((self.bands[name] for name in names if name in self.bands), None)
        return None if ends is None else (float(ends[0]), float(ends[1]))


TYPICAL_WIDTH = 8192
"""Model width D at which the slowdown of training steps is given [1]."""

NEWER_RELEASE = 0.83
"""Factor on the lower end of the band for a release newer than the fit's steps [1].

Two rounds of published steps of Megatron-Bridge, judged by fits to the rounds before, take 0.83 to
0.88 times as long as estimated in the median."""


class FittedTraining(Fitted):
    """Slowdown in training, fitted to measured steps: measured time / time without overlap or math.

    Of the math: t = times * (D / 8192)^width_power * t_math_s / (1 - bubble), at least
    t_serial_s [s].
    """

    KIND = "training"

    times: Positive = Field(description="times the time that `base` names [1]")
    base: Literal["upper", "math"] = Field(
        "upper",
        description="upper: the time without overlap, t_upper_s; math: compute time with the "
        "bubble, t_math_s / (1 - bubble)",
    )
    width_power: float = Field(
        0.0, description="exponent of the model's width D over 8,192, by which `times` changes [1]"
    )
    release: Text | None = Field(None, description="newest release of the stack in the steps")
    models: list[Text] = Field(default_factory=list, description="models in the steps")
    chips: list[Text] = Field(
        default_factory=list, description="chips in the steps, where they are others"
    )

    def slowdown(self, width: int) -> float:
        """Measured time over the time that `base` names [1].

        Args:
            width: Model width D [1].
        """
        times = float(self.times)
        return times * (width / TYPICAL_WIDTH) ** self.width_power if self.width_power else times

    def is_newer(self, release: str | None) -> bool:
        """True if a release of the stack, such as 26.08, is newer than those in the steps."""
        if release is None or self.release is None:
            return False
        newest, typed = (
            tuple(int(part) for part in re.findall(r"\d+", text))
            for text in (self.release, release)
        )
        return typed > newest


class Calibrations(Entry):
    """Calibrations in one file."""

    calibrations: dict[Text, dict[Name, FittedMatmul]] = Field(
        default_factory=dict, description="by `<chip>/<software>`, then by compute dtype"
    )
    attention: dict[Text, dict[Text, FittedAttention]] = Field(
        default_factory=dict,
        description="by `<chip>/<software>`, then `decode-<cache dtype>`, with `-mha` where query "
        "heads share no KV head, or `prefill-<compute dtype>-<cache dtype>`",
    )
    experts: dict[Text, dict[Text, FittedExperts]] = Field(
        default_factory=dict,
        description="by `<chip>/<software>`, then by the experts' format, with the compute dtype "
        "where it is another: `fp8`, `mxfp4-bf16`",
    )
    collectives: dict[Text, dict[Text, FittedCollective]] = Field(
        default_factory=dict, description="by `<chip>/<software>`, then by collective"
    )
    steps: dict[Text, dict[Literal["decode"], FittedStep]] = Field(
        default_factory=dict,
        description="by engine, `<chip>/<engine>`, or `all` for all engines, then by phase",
    )

    training: dict[Text, dict[Text, FittedTraining]] = Field(
        default_factory=dict,
        description="by `<chip>/<software>`, then `train-<compute dtype>`, with `-experts` for "
        "models with routed experts, or `train` for all",
    )
    kin: dict[Text, Text] = Field(
        default_factory=dict,
        description="chips without timings, by the chip of the same design whose fits hold for "
        "them: shares, so that their own rates count",
    )

    @cached_property
    def by_key(self) -> Memo[str, Mapping[FitKey, Mapping[str, Any]]]:
        """Fits by kind, then by chip and software, then by name."""
        return Memo(lambda kind: {FitKey.parse(key): fits for key, fits in self[kind].items()})

    def __getitem__(self, kind: str) -> Mapping[str, Mapping[str, Any]]:
        """Fits in a kind, by text as in a file."""
        fits: Mapping[str, Mapping[str, Any]] = getattr(self, kind)
        return fits

    def keys_of(self, *kinds: str) -> Iterator[FitKey]:
        """Chips and software with fits in these kinds."""
        return chain.from_iterable(map(self.by_key.__getitem__, kinds))

    @cached_property
    def softwares(self) -> list[str]:
        """Software names, sorted."""
        keys = self.keys_of("calibrations", "collectives", "training")
        return sorted({str(key.software) for key in keys})

    @cached_property
    def engines(self) -> set[str]:
        """Engines with a step fit, on any chip."""
        return {str(key.software) for key in self.by_key["steps"]} - {ALL_ENGINES}

    def softwares_of(self, chip: str) -> list[str]:
        """Software names with a fit on a chip, sorted."""
        keys = self.keys_of("calibrations", "experts", "collectives")
        chips = self.chips_behind(chip)
        return sorted({str(key.software) for key in keys if key.chip in chips})

    def chips_behind(self, chip: str) -> tuple[str, ...]:
        """Chips whose fits hold for a chip: its own, then its kin's."""
        return (chip, self.kin[chip]) if chip in self.kin else (chip,)

    def by_kin(self, chip: str) -> str | None:
        """Chip by whose timings another one is estimated; None: by its own, or by none."""
        timed = {key.chip for key in self.keys_of("calibrations", "collectives")}
        kin = self.kin.get(chip)
        return kin if chip not in timed and kin in timed else None

    def older_versions(self, chip: str, softwares: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Engines whose fits on a chip have an older version than their newest on any chip.

        Args:
            chip: The chip's id.
            softwares: Their names.

        Returns:
            The oldest version on the chip and the newest on any, by engine.
        """
        chips, older = self.chips_behind(chip), dict[str, tuple[str, str]]()
        for engine in dict.fromkeys(Software.parse(name).engine for name in softwares):
            versions = self._versions.get(engine, {})
            on_chip = [version for name in chips for version in versions.get(name, ())]
            newest = max(chain(*versions.values()), key=numbers_in, default="")
            oldest = min(on_chip, key=numbers_in, default=newest)
            if oldest != newest:
                older[engine] = oldest, newest
        return older

    @cached_property
    def _versions(self) -> dict[str, dict[str | None, set[str]]]:
        """Fit versions by engine and chip."""
        versions: dict[str, dict[str | None, set[str]]] = {}
        for kind in ENTRIES:
            for key, by_name in self.by_key[kind].items():
                timed = {fit.version for fit in by_name.values() if fit.version}
                by_chip = versions.setdefault(key.engine, {})
                by_chip.setdefault(key.chip, set()).update(timed)
        return versions

    def auto_softwares(
        self, chip: str, computes: Iterable[str], engine: str | None = None
    ) -> tuple[str, ...]:
        """Software that `auto` takes: the first engine with fits in all compute dtypes, and NCCL.

        Args:
            chip: The chip's id.
            computes: The compute dtypes of one step or operation.
            engine: Engine to take where it has such fits; None: the first.

        Returns:
            Empty where no engine has them all.
        """
        dtypes = [*computes]
        for name in dict.fromkeys(filter(None, (engine, *AUTO_ENGINES))):
            if all(self.matmul(chip, [name], dtype) for dtype in dtypes):
                return name, AUTO_COLLECTIVES
        return ()

    def training_softwares(
        self, chip: str, compute: str | None = None, *, experts: bool = False
    ) -> tuple[str, ...]:
        """Software with a training fit on a chip, in this dtype and kind first.

        Args:
            chip: The chip's id.
            compute: Compute dtype in linear layers; None: any.
            experts: Whether the model has routed experts.
        """
        names = training_names(compute, experts=experts)
        fits = self.by_key["training"]
        softwares = sorted(
            str(key.software) for key in self.keys_of("training") if key.chip == chip
        )
        if compute is None:
            return tuple(softwares)
        return tuple(
            software
            for name in names
            for software in softwares
            if name in fits[FitKey.named(chip, software)]
        )

    def variant(self, chip: str, software: str, dtype: str, contents: str | None) -> str:
        """Software, or its variant such as `<software>-block`, whose fit has these contents.

        Args:
            chip: The chip's id.
            software: Its name.
            dtype: The compute dtype.
            contents: Work that timings include besides the operation; None: not stated.
        """
        for key, by_dtype in self.by_key["calibrations"].items():
            fit = by_dtype.get(dtype) if (key.chip, key.engine) == (chip, software) else None
            if contents and fit and fit.contents and fit.contents in contents:
                return str(key.software)
        return software

    def check_softwares(self, names: Sequence[str]) -> None:
        """Refuse software without a calibration; `auto` is none by itself."""
        if [*names] == [AUTO_CALIBRATION]:
            return
        for name in names:
            check_choice(name, self.softwares, "no software of a calibration")

    def first(
        self, kind: str, chip: str, softwares: Sequence[str], name: str
    ) -> tuple[str, Any] | None:
        """First software with a fit, and the fit; None without.

        Args:
            kind: Its key in a file.
            chip: The chip's id.
            softwares: Software in order.
            name: The fit's name: a compute dtype, `attention_name`, a collective.
        """
        alias, fits = name.replace(*SAME_NUMBERS), self.by_key[kind]
        for software in softwares:
            for behind in self.chips_behind(chip):
                by_name = fits.get(FitKey.named(behind, software), {})
                if entry := by_name.get(name) or by_name.get(alias):
                    return software, entry
        return None

    def matmul(self, chip: str, softwares: Sequence[str], dtype: str) -> FittedMatmul | None:
        """Matmul fit in a compute dtype, from the first software that has one."""
        match = self.first("calibrations", chip, softwares, dtype)
        return match[1] if match else None

    def training_of(
        self,
        chip: str,
        softwares: Sequence[str],
        compute: str | None = None,
        *,
        experts: bool = False,
    ) -> FittedTraining | None:
        """Training fit from the first software that has one, as for `training_softwares`."""
        for software in softwares:
            for name in training_names(compute, experts=experts):
                if match := self.first("training", chip, [software], name):
                    fit: FittedTraining = match[1]
                    return fit
        return None

    def step(self, chip: str, engine: str | None) -> FittedStep | None:
        """Engine overhead in decode: on this chip, else on any."""
        chips, steps = (*self.chips_behind(chip), None), self.by_key["steps"]
        keys = (FitKey.named(behind, str(engine)) for behind in chips)
        return next((steps[key][DECODE] for key in keys if key in steps), None)

    def subset(self, keys: Collection[FitKey], dtypes: Collection[str]) -> Calibrations:
        """Fits by chip and software, with matmuls in these compute dtypes and `REFERENCE_DTYPE`."""
        with_kin = dict.fromkeys(
            str(key._replace(chip=behind))
            for key in keys
            for behind in self.chips_behind(key.chip or "")
        )
        kin = {key.chip: self.kin[key.chip] for key in keys if key.chip in self.kin}
        fits: dict[str, dict[str, Any]] = {
            kind: {key: self[kind][key] for key in with_kin if key in self[kind]} for kind in KINDS
        }
        fit_dtypes = {REFERENCE_DTYPE, *dtypes, *(dtype.replace(*SAME_NUMBERS) for dtype in dtypes)}
        fits["calibrations"] = {
            key: {dtype: entry for dtype, entry in by_dtype.items() if dtype in fit_dtypes}
            for key, by_dtype in fits["calibrations"].items()
        }
        engines = {key.engine for key in keys}
        steps = {
            str(key): by_phase
            for key, by_phase in self.by_key["steps"].items()
            if str(key.software) in engines
        }
        return Calibrations.model_construct(None, **fits, steps=steps, kin=kin)


TRAINED, TRAINED_EXPERTS = "train", "experts"
"""Parts in the name for a training fit."""


def training_names(compute: str | None, *, experts: bool) -> tuple[str, ...]:
    """Names for training fits that hold for a step, the nearest first.

    Args:
        compute: Compute dtype in linear layers, mxfp8 as fp8; None: any.
        experts: Whether the model has routed experts.
    """
    if compute is None:
        return (TRAINED,)
    kind = f"{TRAINED}-{'fp8' if compute == 'mxfp8' else compute}"
    return (f"{kind}-{TRAINED_EXPERTS}" if experts else kind), TRAINED


KINDS = ("calibrations", "attention", "experts", "collectives", "training")
"""Keys in a file for fits by chip and software."""


def merge_calibrations(parts: Sequence[Calibrations]) -> Calibrations:
    """Merge calibrations from several files; of two fits to one thing the later one counts."""
    fits_by_kind: dict[str, dict[str, Any]] = {kind: {} for kind in Calibrations.model_fields}
    for part in parts:
        for kind, fits in fits_by_kind.items():
            for key, by_name in getattr(part, kind).items():
                fits[key] = by_name if kind == "kin" else {**fits.get(key, {}), **by_name}
    return Calibrations.model_construct(None, **fits_by_kind)  # each was validated


MULTI_HEAD = "mha"
"""End in the name of a decode fit to heads that share no KV head: engines have kernels for them."""


def attention_name(phase: str, compute: str, cache: str, *, shared: bool = True) -> str:
    """Name for an attention fit by phase and dtypes: `decode-fp8-mha`, `prefill-bf16-fp8`.

    Args:
        phase: `decode` or `prefill`.
        compute: The compute dtype, which decides little in decode.
        cache: The KV cache dtype.
        shared: Whether query heads share a KV head, which decides in decode.
    """
    if phase != DECODE:
        return f"{phase}-{compute}-{cache}"
    return f"{phase}-{cache}" if shared else f"{phase}-{cache}-{MULTI_HEAD}"


def experts_name(stored: str, compute: str) -> str:
    """Name for a fit to experts: `fp8`, `mxfp4-bf16`; groups with a scale have no other kernels."""
    stored, compute = (
        stored.partition("-")[0].replace(*SAME_NUMBERS),
        compute.replace(*SAME_NUMBERS),
    )
    return stored if stored == compute else f"{stored}-{compute}"


def read_calibrations(path: str | Path) -> Calibrations:
    """Read a calibration file.

    Raises:
        RooflinesError: It cannot be read, or is wrong.
    """
    with named_kind(path, "fits"):
        content = read_yaml(path)
    with named_kind(path, "fits"), in_file(path):
        calibrations = validate_entry(Calibrations, content)
        _check_keys(calibrations)
    return calibrations


def _check_keys(calibrations: Calibrations) -> None:
    """Refuse keys that are no chip and software, no dtypes or no collectives."""
    formats = dtype_entries().formats
    phases = {
        attention_name(phase, compute, cache, shared=shared)
        for phase in PHASES
        for compute in formats
        for cache in formats
        for shared in (True, False)
    }
    experts = {experts_name(stored, compute) for stored in formats for compute in formats}
    kinds: dict[str, tuple[Mapping[str, Mapping[str, Fitted]], Collection[str], str]] = {
        "calibrations": (calibrations.calibrations, formats, "no dtype"),
        "attention": (calibrations.attention, phases, "no phase of attention"),
        "experts": (calibrations.experts, experts, "no experts' format"),
        "collectives": (calibrations.collectives, RING_PASSES, "no collective"),
        "training": (
            calibrations.training,
            {
                name
                for compute in formats
                for experts in (False, True)
                for name in training_names(compute, experts=experts)
            },
            "no kind of training",
        ),
    }
    with Mistakes() as mistakes:
        for place, (by_key, allowed, message) in kinds.items():
            for key, entries in by_key.items():
                with mistakes.at(place, key):
                    FitKey.parse(key).check()
                    for name in entries:
                        check_choice(name, allowed, message)


@cache
def shipped_calibrations() -> Calibrations:
    """Calibrations that come with the package.

    Raises:
        RooflinesError: The file is wrong.
    """
    files = CALIBRATIONS_FILE, DTYPES_FILE
    types = (Calibrations, FittedStep, FittedTraining, Errors, *ENTRIES.values())
    return cached_entries("calibrations", files, lambda: read_calibrations(files[0]), types)


def calibrations_yaml(calibrations: Calibrations, heading: str = "") -> str:
    """Calibrations as YAML, numbers first, with a comment above."""
    import yaml  # noqa: PLC0415, estimates do without it

    content = {
        kind: by_key
        if kind == "kin"
        else {
            key: {name: _numbers_first(entry) for name, entry in entries.items()}
            for key, entries in by_key.items()
        }
        for kind, by_key in calibrations.model_dump(mode="json", exclude_defaults=True).items()
    }
    comment = "".join(f"# {line}".rstrip() + "\n" for line in heading.splitlines())
    return comment + yaml.safe_dump(
        content, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=None
    )


def numbers_in(version: str) -> tuple[int, ...]:
    """Numbers in a version, to compare it with others."""
    return tuple(map(int, re.findall(r"\d+", version)))


def _numbers_first(entry: Mapping[str, object]) -> dict[str, object]:
    return dict(sorted(entry.items(), key=lambda item: item[0] in Fitted.model_fields))
