"""Sweeps of whole models as a config has them: every key, what it means, and its default."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from rooflines.basics.errors import Mistakes, RooflinesError
from rooflines.basics.numbers import exact, whole
from rooflines.config.axis_sizes import Grid  # noqa: TC001, pydantic reads it at run time
from rooflines.config.lists import Listed, unique
from rooflines.config.sweep_fields import Compression, SweepKeys
from rooflines.dictionary.columns import (
    KERNEL_METRICS,
    STEP_CORE_METRICS,
    STEP_METRICS,
    TRAINING_METRICS,
)
from rooflines.hardware.entry_forms import (
    Entry,
    Name,
    NonNegative,
    Positive,
    PositiveInt,
    Text,
    validate_entry,
)
from rooflines.models.architecture import DECODE, TRAIN, Phase
from rooflines.models.engine_start import EngineStart  # noqa: TC001, pydantic reads it at run time
from rooflines.models.split import BY_HEADS, CACHE_SPLITS, Parallelism, Split
from rooflines.models.tensor_dtypes import StepDtypes, step_dtypes, training_dtypes
from rooflines.theory.routing import ROUTINGS
from rooflines.training.parallel_plan import TrainingKeys, TrainingPlan

AUTO = "auto"
"""The split that stands for every one."""

MAX_CHIPS = 2**16
"""Chips over which every split is tried [1]."""

SERVING_AXES, TRAINING_AXES = ("B", "S", "chips"), ("B", "S", "micro_batch", "tp", "dp", "chips")
SERVING_LEVERS = ("S_pull", "B_draft", "accepted_draft", "B_pools", "chunk")
TRAINING_LEVERS = (
    "S_offload",
    "X_offload",
    "S_zero",
    "batches_zero",
    "micro_batch_recompute",
)
LEVER_AXES = (*SERVING_LEVERS, *TRAINING_LEVERS)
MODEL_AXES = (*SERVING_AXES, "micro_batch", "tp", "dp")
"""Axes of thresholds of whole models; those of levers say from where on they pay."""

EVERY_METRIC = (*STEP_METRICS, *KERNEL_METRICS, *TRAINING_METRICS)
"""What `columns:` can name; metrics of kernels are in their table only."""


def cached_share(value: object) -> float:
    """Prompt share in a prefix cache, as typed: 0.5, or 50 % [1].

    Raises:
        RooflinesError: It is no number, or the whole prompt.
    """
    text = str(value).strip()
    percents = text.removesuffix("%").strip()
    share = exact(percents) / 100 if percents != text else exact(value)
    if share < 0:
        raise RooflinesError("", f"is {text}, less than no token", "write a share, such as 0.5")
    if share >= 1:
        problem = f"is {text}, all of a prompt or more: its last token is always computed"
        fix = f"write {text}%" if 1 < share < 100 else "write a share below 1, such as 0.5"  # noqa: PLR2004
        raise RooflinesError("", problem, fix)
    return float(share)


class Request(Entry):
    """A request: a prompt and its answer."""

    input: PositiveInt = Field(description="prompt length in tokens [1]")
    output: PositiveInt = Field(description="answer length in tokens [1]")
    mixed: bool = Field(
        default=False,
        description=(
            "whether rows also have the time per token of a server that reads prompts between "
            "steps: tpot_mixed_s, tpot_mixed_serial_s"
        ),
    )
    cached: Annotated[float, BeforeValidator(cached_share)] = Field(
        default=0.0,
        description=(
            "share of the prompt in a prefix cache, from 0 to below 1; its tokens are attended to "
            "and held, and not computed [1]"
        ),
    )

    @property
    def computed(self) -> int:
        """Prompt tokens that are computed: input - floor(cached * input) [1]."""
        return self.input - int(exact(self.cached) * self.input)


class Prices(Entry):
    """Filter on a chip's prices."""

    provider: Text | None = Field(None, description="seller")
    kind: Text | None = Field(None, description="kind of offer, such as on demand")


class ServerPool(Entry):
    """Servers of one kind: a chip, and how it shares a model."""

    chip: Name = Field(description="chip")
    split: Split = Field(
        default_factory=lambda: Split.model_validate({}),
        description="how chips share the model: {tp: , dp: , ep: }",
    )
    network: Annotated[list[Name] | None, Listed()] = Field(
        None, description="interconnect, or two: [inner, outer]; null: the chip's first"
    )


class PoolServers(Entry):
    """Server counts by pool."""

    prefill: PositiveInt = Field(description="servers for prefill [1]")
    decode: PositiveInt = Field(description="servers for decode [1]")


class Pools(Entry):
    """Disaggregated serving: servers for prefill, and for decode."""

    prefill: ServerPool = Field(description="servers for prefill")
    decode: ServerPool | None = Field(
        None, description="servers for decode; null: every chip and split in the sweep"
    )
    servers: PoolServers | None = Field(
        None,
        description=(
            "number of servers in each pool, {prefill: 8, decode: 2}: rows then have requests per "
            "second on all chips; null: as many for prefill as one for decode needs"
        ),
    )


class Draft(Entry):
    """Tokens that a draft proposes, and a step of the model checks at once."""

    tokens: PositiveInt = Field(description="drafted tokens per sequence and step [1]")
    accepted: NonNegative = Field(description="accepted drafted tokens, on average [1]")

    @model_validator(mode="after")
    def _no_more_than_proposed(self) -> Self:
        if self.accepted > self.tokens:
            problem = f"is {self.accepted:g}, more than the {self.tokens} tokens proposed"
            fix = (
                "write the mean of those accepted; a length that counts the step's token has 1 more"
            )
            raise RooflinesError("accepted", problem, fix)
        return self

    @property
    def yielded(self) -> float:
        """Tokens that a step adds to a sequence, over those that it computes [1]."""
        return (self.accepted + 1) / (self.tokens + 1)


class Targets(Entry):
    """Latencies to solve for."""

    t_step_s: Annotated[list[Positive], Listed()] = Field(
        description="step times that the largest batch must meet [s]"
    )
    time: Literal["t_lower_s", "t_serial_s", "t_estimate_s"] = Field(
        "t_lower_s",
        description="time that must meet them: bound, kernels one after another, or estimate",
    )


class PullLink(Entry):
    """Link to another server's KV cache."""

    bytes_per_s: Positive = Field(description="bandwidth [byte/s]")
    latency_s: NonNegative = Field(0, description="delay before the first byte [s]")


class Levers(Entry):
    """Numbers for thresholds that levers have."""

    pull: PullLink | None = Field(
        None, description="link for the threshold S_pull: {bytes_per_s: , latency_s: }"
    )
    earlier: Annotated[int, BeforeValidator(partial(whole, minimum=0))] = Field(
        0, description="for the threshold chunk: tokens of the prompt before the chunk [1]"
    )
    host_bytes_per_s: Positive | None = Field(
        None,
        description=(
            "for S_offload and X_offload: bandwidth to the host in one direction; null: the chip's "
            "nvlink-c2c, else its pcie [byte/s]"
        ),
    )
    slowdown: Positive | None = Field(
        None,
        description=(
            "estimated over bounded time; null: by the calibration, at the sizes of the row [1]"
        ),
    )


OF_TRAINING = (*TrainingKeys.model_fields, "tokens")
OF_SERVING = ("requests", "pools", "draft", "targets", "cache_split", "routing", "engine")
"""Keys of sweeps that train, and of sweeps that do not."""


def _trains(info: ValidationInfo) -> bool:
    """Test for a sweep in the phase `train`; the phase is checked before."""
    return TRAIN in info.data.get("phase", ())


def _dtypes(value: object, info: ValidationInfo) -> StepDtypes:
    return training_dtypes(value) if _trains(info) else step_dtypes(value)


def _split(value: object, info: ValidationInfo) -> Parallelism:
    """Split; a training split takes missing keys from its sweep."""
    if not _trains(info):
        return validate_entry(Split, value)
    shared = {key: info.data[key] for key in TrainingKeys.model_fields if key in info.data}
    plan_keys = TrainingPlan.keys_of(value) if isinstance(value, str) else value
    return validate_entry(
        TrainingPlan, {**shared, **plan_keys} if isinstance(plan_keys, Mapping) else value
    )


def _distinct(splits: list[Parallelism]) -> list[Parallelism]:
    """Splits of different names: `{tp: 2}` and `{tp: 2, dp: 1}` are one."""
    unique([split.name for split in splits])
    return splits


def _labelled(dtypes: list[StepDtypes]) -> list[StepDtypes]:
    """Dtypes of different names."""
    unique([dtype.label for dtype in dtypes], "give it another name:")
    return dtypes


def _engines(engines: list[EngineStart] | None) -> list[EngineStart] | None:
    """Engines with different names in tables."""
    if engines is not None:
        unique([f"{engine.label} {engine.version or ''}".strip() for engine in engines])
    return engines


def _grid(value: object) -> object:
    with Mistakes() as mistakes:
        for letter in value if isinstance(value, Mapping) else ():
            with mistakes.at(str(letter)):
                if letter not in ("B", "S", "T"):
                    fix = "write B sequences, S tokens of context and, if wanted, T new tokens"
                    raise RooflinesError("", "is no size of a model sweep", fix, close=("B",))
    return value


MODEL_SCHEMA: Any = {
    "anyOf": [{"type": "string"}, {"type": "object", "required": ["name"]}],
}

Dtypes = Annotated[StepDtypes, BeforeValidator(_dtypes, json_schema_input_type=str | StepDtypes)]
Splits = Annotated[
    Split | TrainingPlan,
    PlainValidator(_split, json_schema_input_type=Split | TrainingPlan | str),
    PlainSerializer(Parallelism.model_dump),
]


SharedChips = Annotated[
    int,
    BeforeValidator(partial(whole, maximum=MAX_CHIPS)),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_CHIPS}),
]


def _or_auto(schema: dict[str, Any]) -> None:
    schema["anyOf"].insert(0, {"const": AUTO})


ThresholdAxis = Literal[
    "B", "S", "chips", "micro_batch", "tp", "dp",
    "S_pull", "B_draft", "accepted_draft", "B_pools", "chunk", "S_offload", "X_offload",
    "S_zero", "batches_zero", "micro_batch_recompute",
]  # fmt: skip
"""Axis of a threshold of whole models."""


class WorkloadKeys(Entry):
    """Workload in a model sweep, and the thresholds to solve."""

    models: Annotated[list[Annotated[Any, WithJsonSchema(MODEL_SCHEMA)]], Listed()] = Field(
        description=(
            "models in the catalogue by id or published name, {name: , hf: path to a config.json}, "
            "or {name: , layers: , D: , ..} in the form of config/models.yaml"
        )
    )
    phase: Annotated[list[Phase], Listed()] = Field(
        [DECODE],
        description=(
            "decode adds tokens to a KV cache, prefill reads prompts with S tokens; or both; or "
            "train alone, a training step over B sequences with S tokens each"
        ),
    )
    grid: Annotated[Grid, BeforeValidator(_grid)] = Field(
        description=(
            "B sequences, S tokens in each after the step (prefill: the prompt) and, if wanted, "
            "T new tokens in each; every combination is a row"
        )
    )
    requests: Annotated[list[Request] | None, Listed()] = Field(
        None,
        description=(
            "requests in place of S: {input: , output: }, tokens of prompt and answer; also "
            "mixed: true for servers that read prompts between steps, cached: 0.5 for a prefix "
            "cache, and draft: {tokens: , accepted: }, the same for all"
        ),
    )
    pools: Pools | None = Field(
        None,
        description=(
            "disaggregated serving of requests: rows then have prefill servers per decode server, "
            "and the KV-cache transfer"
        ),
    )
    draft: Draft | None = Field(
        None,
        description=(
            "speculative decoding in place of T: {tokens: , accepted: }; a step computes tokens + "
            "1 per sequence and yields accepted + 1; drafting takes time if the model has an MTP "
            "layer, and none otherwise"
        ),
    )
    dtypes: Annotated[list[Dtypes], AfterValidator(_labelled), Listed()] = Field(
        description=(
            "a format, for everything from 16 bits on; a narrow one such as fp8 is that of linear "
            "weights, experts and their matmuls, the rest is bf16. Or storage dtypes by tensor "
            "class, with compute dtypes"
        )
    )
    cache_split: Literal["heads", "batch"] = Field(
        "heads",
        description=(
            f"how tp chips share the KV cache, {' or '.join(CACHE_SPLITS)}: by KV heads, "
            "copied beyond them; or by sequences, with all-to-alls around attention"
        ),
    )
    engine: Annotated[list[EngineStart] | None, Listed(), AfterValidator(_engines)] = Field(
        None,
        description=(
            "serving engines whose pools of caches decide what fits: vllm, sglang or "
            "trtllm, or {name: , version: , utilization: , max_batched_tokens: , max_seqs: , "
            "block: , engine_reserve: , peak: , prefix_caching: , full_windows: , "
            "standalone_draft: }; alone it also picks the calibration. Several make a row each"
        ),
    )
    routing: Literal["uniform", "same", "all"] = Field(
        "uniform",
        description=(
            f"experts that tokens choose, {', '.join(ROUTINGS)}: each equally "
            "likely, the same for all tokens, or all of them"
        ),
    )
    prices: Prices = Field(
        default_factory=lambda: Prices.model_validate({}),
        description="filter on prices; the lowest match is used",
    )
    targets: Targets | None = Field(None, description="latency targets for the largest batch")
    levers: Levers | None = Field(
        None, description="what thresholds of levers need: {pull: , earlier: , slowdown: }"
    )
    thresholds: Annotated[list[ThresholdAxis], Listed(may_be_empty=True)] = Field(
        ["B"],
        description=(
            "thresholds to solve: B, the smallest compute-bound batch; S, the longest context with "
            "one; chips, the fewest that hold the model; [] for none. In training the smallest "
            "compute-bound B, S or micro_batch, the largest tp, the dp that minimizes "
            "communication, the fewest replicas. When a lever pays: S_pull, prefixes whose KV "
            "cache is worth pulling; B_draft and accepted_draft, batches and accepted tokens at "
            "which a draft is; B_pools, batches that only separate prefill servers keep within a "
            "target; chunk, tokens of a prompt in a decode step; S_offload and X_offload, "
            "contexts and tokens that hide offloaded tensors and optimizer states; S_zero and "
            "batches_zero, contexts that hide a ZeRO stage's collectives, and micro-batches a step "
            "with which it sends no more; micro_batch_recompute, micro-batches from which "
            "recomputing all layers gains"
        ),
    )
    layers: bool = Field(
        default=True, description="whether to write the table of kernels, ten times as long"
    )


class ModelSweepConfig(SweepKeys, TrainingKeys, WorkloadKeys):
    """Model sweep: one table with every combination of the listed values."""

    metrics = (*dict.fromkeys(column.name for column in EVERY_METRIC),)
    core = STEP_CORE_METRICS

    renamed_keys: ClassVar[Mapping[str, str]] = {"chips_each": "num_chips"}

    splits: Annotated[list[Splits], AfterValidator(_distinct), Listed()] = Field(
        default=[{}],
        validate_default=True,
        json_schema_extra=_or_auto,
        description=(
            "how chips share the model: {tp: , dp: , ep: }, in training also pp, cp and its other "
            "keys such as recompute; or a name, tp2-dp4; auto: all splits of `num_chips`"
        ),
    )
    tokens: Positive | None = Field(
        None, description="in training, tokens in the whole run: rows then have days and USD [1]"
    )
    num_chips: SharedChips | None = Field(
        None, description=f"chips that share the model, for `splits: auto`, up to {MAX_CHIPS:,} [1]"
    )
    compression: Compression = "lz4"

    @model_validator(mode="before")
    @classmethod
    def _every_split(cls, value: object) -> object:
        """`splits: auto` leaves the splits to `num_chips`."""
        if not isinstance(value, Mapping):
            return value
        auto = value.get("splits") == AUTO
        if "chips_each" in value or auto == (value.get("num_chips") is not None):
            return {key: keyed for key, keyed in value.items() if not (auto and key == "splits")}
        if auto:
            problem = "is auto, but num_chips is not given"
            raise RooflinesError("splits", problem, "add num_chips: 16, the chips that share it")
        problem = "is given, but splits is not auto"
        raise RooflinesError("num_chips", problem, "write splits: auto, or leave it out")

    @model_validator(mode="after")
    def _of_one_phase(self) -> Self:
        """Training stands alone, without keys of serving; its keys stand nowhere else."""
        with Mistakes() as mistakes:
            trains = TRAIN in self.phase
            if self.engine is not None and self.cache_split != BY_HEADS:
                problem = f"is {self.cache_split}, but engines split caches by heads"
                mistakes.add(RooflinesError("cache_split", problem, "leave out one of them"))
            if trains and len(self.phase) > 1:
                fix = "write a sweep for each"
                mistakes.add(RooflinesError("phase", "lists train beside others", fix))
            for key in OF_SERVING if trains else OF_TRAINING:
                if getattr(self, key) != type(self).model_fields[key].default:
                    problem = f"is given, but is {'not of' if trains else 'of'} training"
                    fix = "leave it out" if trains else "leave it out, or write phase: train"
                    mistakes.add(RooflinesError(key, problem, fix))
            axes = (
                (*TRAINING_AXES, *TRAINING_LEVERS) if trains else (*SERVING_AXES, *SERVING_LEVERS)
            )
            for axis in sorted({*map(str, self.thresholds)} - {*axes}):
                problem = f"lists {axis}, which is {'not of' if trains else 'of'} training"
                mistakes.add(RooflinesError("thresholds", problem, "leave it out"))
            for lever, (lacks, fix) in self._lever_needs().items():
                if lever in self.thresholds and lacks:
                    mistakes.add(RooflinesError("thresholds", f"lists {lever}, {lacks}", fix))
            of_decode = [axis for axis in SERVING_LEVERS[1:] if axis in self.thresholds]
            if of_decode and not trains and DECODE not in self.phase:
                problem = f"lists {of_decode[0]}, which is of decode"
                mistakes.add(RooflinesError("thresholds", problem, "add decode to phase"))
            if self.levers is not None and not {*self.thresholds} & {*LEVER_AXES}:
                problem = "is given, but thresholds lists no lever"
                mistakes.add(RooflinesError("levers", problem, "list S_pull or chunk, for example"))
        return self

    def _lever_needs(self) -> dict[str, tuple[str, str]]:
        """Missing keys, empty where none is, and their fix, by lever."""
        link, draft = self.levers is not None and self.levers.pull is not None, self.draft
        checks = draft is not None or any(size > 1 for size in self.grid_values("T"))
        targets = self.targets is not None
        return {
            "S_pull": (
                "" if link else "but there is no link",
                "add levers: {pull: {bytes_per_s: 12.5e9}}",
            ),
            "B_draft": (
                "" if draft else "but there is no draft",
                "add draft: {tokens: 3, accepted: 1.8}",
            ),
            "accepted_draft": (
                "" if checks else "but no step has several tokens",
                "add a draft, or T: [4] to the grid",
            ),
            "B_pools": (
                "" if self.requests and targets else "but there are no requests with targets",
                "add requests: [{input: 8192, output: 512}] and targets: {t_step_s: [0.02]}",
            ),
            "chunk": (
                "but requests set the tokens" if self.requests else "",
                "write a sweep with B and S",
            ),
        }

    def grid_values(self, letter: str) -> tuple[int, ...]:
        """Sizes of a letter of the grid; empty without it."""
        size = self.grid.get(letter)
        return () if size is None or size.same_as is not None else size.values()

    @model_validator(mode="before")
    @classmethod
    def _draft_of_requests(cls, value: object) -> object:
        """A draft in requests is the sweep's."""
        if not isinstance(value, Mapping):
            return value
        requests = value.get("requests")
        listed: list[Any] = requests if isinstance(requests, list) else [requests]
        if not any(isinstance(request, Mapping) and "draft" in request for request in listed):
            return value
        if not all(isinstance(request, Mapping) for request in listed):
            return value  # refused as what they are
        drafts = [request.get("draft") for request in listed]
        if any(draft != drafts[0] for draft in drafts):
            problem = "have different drafts, whose steps have different kernels"
            raise RooflinesError("requests", problem, "write a sweep for each draft")
        if value.get("draft") is not None:
            raise RooflinesError("draft", "is given, and requests have one", "leave out one")
        bare = [
            {key: part for key, part in request.items() if key != "draft"} for request in listed
        ]
        return {**value, "requests": bare, "draft": drafts[0]}

    @model_validator(mode="before")
    @classmethod
    def _decode_pool(cls, value: object) -> object:
        """A pool that decodes stands for the chips, splits and network of the sweep."""
        if not isinstance(value, Mapping) or not isinstance(pools := value.get("pools"), Mapping):
            return value
        if not isinstance(decode := pools.get("decode"), Mapping):
            return value
        sweep_keys = {"chips": "chip", "splits": "split", "network": "network"}
        if beside := [key for key in sweep_keys if value.get(key) is not None]:
            problem = "is given beside a pool that decodes"
            raise RooflinesError(beside[0], problem, "leave out one of them")
        listed = {
            key: [decode[pool_key]]
            for key, pool_key in sweep_keys.items()
            if decode.get(pool_key) is not None
        }
        return {**value, **listed, "pools": {**pools, "decode": None}}
