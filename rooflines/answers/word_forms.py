"""Question words as data: forms, meanings, examples, and the commands that take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.quantities import is_measured_rate

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

EXPLAIN, TRAIN_COMMAND, COMPARE = "explain", "train", "compare"
SERVE_COMMAND = "serve"
"""Commands whose words are a question."""

CHEAPEST = "cheapest"
"""Word that asks for the deployment with the lowest cost of a request."""

EVERY = (EXPLAIN, TRAIN_COMMAND, COMPARE)
SERVING = (EXPLAIN, COMPARE)


class WordForm(NamedTuple):
    """Form of words in a question.

    Attributes:
        name: Question part that it gives.
        form: Words as typed.
        meaning: What they stand for.
        example: A question for its first command.
        commands: Commands that take them.
    """

    name: str
    form: str
    meaning: str
    example: str
    commands: tuple[str, ...] = EVERY


WORD_FORMS = (
    WordForm(
        "chip",
        "h100  h100,b200  mi300x",
        "chips; several give a table; alone: their peaks, ridges and prices",
        "h100 128x8192x8192",
    ),
    WordForm(
        "count",
        "8xh100  h100x8  8 x h100  4 mi300x  gpus=8  'DGX H100'  'GB200 NVL72'",
        "a number of chips that share the model; in a comparison one for each chip",
        "8xh100 llama-3.1-70b B=64 S=8k",
    ),
    WordForm(
        "group",
        "nvidia  amd  blackwell  hopper",
        "all chips of a maker, or of a generation",
        "hopper 128x8192x8192",
        SERVING,
    ),
    WordForm(
        "model",
        "llama-3.1-70b  'Llama 3.1 70B'  llama-70b  Qwen/Qwen3-32B-FP8  config.json",
        "a model by id, display or published name, checkpoint, or file",
        "h100 Qwen/Qwen3-32B-FP8 B=8 S=4k",
    ),
    WordForm(
        "operation",
        "matmul  gemm  dot  BD,DF->BF",
        "an operation by name, or as an einsum",
        "h100 gemm M=128 N=8192 K=8192",
        SERVING,
    ),
    WordForm(
        "product",
        "128x8192x8192  4096 4096 4096  Mx8192x8192  M=?",
        "sizes in the order of the operation's letters; a letter asks for its critical size",
        "h100 4096 4096 4096",
        SERVING,
    ),
    WordForm(
        "size",
        "B=64 S=8k  batch=64 bs=64  ctx=8k  M=128 K=4096 N=4096  B=1..512  B=1-512  B=1,8",
        "sizes by letter; a bare k, M or G is binary, 8k is 8,192",
        "h100 llama-3.1-8b batch=64 ctx=8k",
    ),
    WordForm(
        "batch_tokens",
        "4M tokens per batch  global_batch=4M tokens",
        "tokens of a step of training, as B sequences of S",
        "64xh100 llama-3.1-8b dp64 fsdp 4M tokens per batch",
        (TRAIN_COMMAND,),
    ),
    WordForm(
        "accumulation",
        "grad_accum=8  gas=8  mbs=2",
        "micro-batches of a replica, and sequences in a micro-batch: B is their product with dp",
        "64xh100 llama-3.1-8b dp64 fsdp gas=8 mbs=2",
        (TRAIN_COMMAND,),
    ),
    WordForm(
        "request",
        "isl=8192 osl=1024 concurrency=64",
        "requests: tokens of the prompt and the answer, requests at a time",
        "h100 llama-3.1-8b isl=8192 osl=1024 concurrency=16",
        SERVING,
    ),
    WordForm(
        "dtypes",
        "bf16  fp8  w4a16  x,w->out@compute",
        "a format or combination of dtypes; several give a table",
        "h100 llama-3.1-8b B=8 S=8k fp8",
    ),
    WordForm(
        "role",
        "kv=fp8  weights=fp8  experts=mxfp4  head=bf16",
        "dtype of one class of tensors; the rest follows",
        "h100 llama-3.1-8b B=8 S=8k kv=fp8",
    ),
    WordForm(
        "phase",
        "decode  prefill  train",
        "the phase of a model's step; decode where none is typed",
        "h100 llama-3.1-8b B=1 S=8k prefill",
    ),
    WordForm(
        "split",
        "tp8  tp2-dp4  tp=2,dp=4  ep32  tp4x4  auto",
        "how chips share the model; several give a table",
        "h100 llama-3.1-70b B=8 S=8k tp4 tp8",
    ),
    WordForm(
        "open_split",
        "tp=?  'what tp'  'which split'",
        "asks for the split: a table of tensor parallelisms, or every split of the chips named",
        "h100 llama-3.1-70b S=4k tp=? within 20ms",
    ),
    WordForm(
        "shard",
        "fsdp  zero3  zero1",
        "in training, states that replicas share",
        "h100 llama-3.1-8b B=64 S=4k dp64 fsdp",
        (TRAIN_COMMAND,),
    ),
    WordForm(
        "within",
        "within=50ms  50ms  tpot=50ms",
        "limit on the step time; the answer has the largest batch that keeps it",
        "h100 llama-3.1-70b S=8k tp8 within 50ms",
        SERVING,
    ),
    WordForm(
        "measured",
        "1397tok/s  9500tok/s/gpu  41%mfu  '41%mfu full'  measured=30ms",
        "a measured number to judge: a time, a rate of tokens, a share of peak",
        "h100 128x8192x8192 measured=250us",
        (EXPLAIN, TRAIN_COMMAND),
    ),
    WordForm(
        "calibration",
        "vllm  trtllm  sglang  calibration=vllm",
        "software that the estimate is calibrated to",
        "h100 llama-3.1-8b B=8 S=8k vllm",
    ),
    WordForm(
        "cache",
        "kv  'kv cache'",
        "without a chip: the KV cache of a token and of contexts",
        "kv llama-3.1-70b 128k fp8",
        (EXPLAIN,),
    ),
    WordForm(
        "goal",
        "cheapest",
        "deployments by the cost of a request, on the chips named or on all with a price",
        "cheapest llama-3.1-8b on h100,b200 isl=2k osl=500 tpot=40ms",
        (SERVE_COMMAND,),
    ),
    WordForm(
        "option",
        "tokens=15T  price=2.5  network=nvlink",
        "options of the command, also without the dashes",
        "h100 llama-3.1-8b B=64 S=4k dp8 tokens=15T",
        (TRAIN_COMMAND, EXPLAIN),
    ),
)
"""Every form, in reading order for people."""

SIZE_KEYS: Mapping[str, str] = {
    **dict.fromkeys(("bs", "batch", "batch_size", "batchsize", "concurrency", "conc"), "B"),
    **dict.fromkeys(("max_num_seqs", "max_batch_size", "max_concurrency"), "B"),
    **dict.fromkeys(("users", "sequences", "seqs", "requests"), "B"),
    **dict.fromkeys(("gbs", "global_batch", "global_batch_size"), "B"),
    **dict.fromkeys(("ctx", "context", "context_length", "seq", "seqlen", "seq_len"), "S"),
    **dict.fromkeys(("sequence_length", "max_model_len", "context_len"), "S"),
    "new_tokens": "T",
}
"""Size letters by key."""

REQUEST_KEYS: Mapping[str, str] = {
    **dict.fromkeys(("isl", "in", "input", "input_len", "input_tokens", "prompt"), "input"),
    **dict.fromkeys(("osl", "out", "output", "output_len", "output_tokens"), "output"),
}
"""Tokens of a request by key."""

ROLE_KEYS: Mapping[str, str] = {
    **dict.fromkeys(("kv", "kv_cache", "kvcache", "kv_dtype", "kv_cache_dtype", "cache"), "cache"),
    **{role: role for role in ("weights", "experts", "head", "lm_head", "rest")},
    **{role: role for role in ("activations", "combine", "compute", "attention", "saved")},
    **{role: role for role in ("gradients", "master", "moments")},
}
"""Tensor classes and compute by key."""

COUNTED_SIZES = ("users", "sequences", "seqs", "requests", "context", "ctx", "prompt")
"""Size keys that may stand after their number: 32 users, 8k context."""

COUNT_KEYS = ("chips", "gpus", "devices", "accelerators", "num_gpus", "num_chips", "n_gpus")
"""Keys, and nouns after a number, for a number of chips."""

ACCUMULATION = "accumulation"
"""Option with the micro-batches of a replica in a step of training."""

ACCUMULATION_KEYS = (
    *("grad_accum", "gas", "grad_acc", "accum", "gradient_accumulation", ACCUMULATION),
    *("gradient_accumulation_steps", "grad_accum_steps", "accumulation_steps"),
)
"""Keys of micro-batches of a replica."""

OPTION_KEYS: Mapping[str, str] = {
    **dict.fromkeys(("within", "under", "tpot", "itl", "slo", "latency"), "within"),
    "calibration": "calibration",
    **{key: key for key in ("engine", "peak", "engine_reserve", "prefix_caching", "full_windows")},
    "standalone_draft": "standalone_draft",
    **dict.fromkeys(("utilization", "gpu_memory_utilization"), "utilization"),
    **dict.fromkeys(("mem_fraction_static", "free_gpu_memory_fraction"), "utilization"),
    **dict.fromkeys(("max_batched_tokens", "max_num_batched_tokens"), "max_batched_tokens"),
    **dict.fromkeys(("chunked_prefill_size", "max_num_tokens"), "max_batched_tokens"),
    "max_seqs": "max_seqs",
    **{key: key for key in ("phase", "tokens", "price", "network", "memory", "draft", "as")},
    **{key: key for key in ("routing", "cache_split", "shards", "sharding", "unit", "flops")},
    **{key: key for key in ("split", "recompute", "micro_batch", "shard", "measured")},
    **{key: key for key in ("pull", "pools", "chunk", "slowdown", "host_link", "pays")},
    **{
        key: key
        for key in (
            "optimizer",
            "loss",
            "lora",
            "lora_on",
            "base",
            "offload",
            "stack",
            "topology",
            "group",
            "stage_layers",
            "first",
            "last",
        )
    },
    **dict.fromkeys(("mbs", "micro_batch_size"), "micro_batch"),
    **dict.fromkeys(ACCUMULATION_KEYS, ACCUMULATION),
    **dict.fromkeys(("took", "takes", "measured_at", "step_time", "step", "iteration"), "measured"),
}
"""Options by key."""

DRAFT_KEYS: Mapping[str, str] = {
    **dict.fromkeys(("drafted", "draft_tokens", "num_speculative_tokens", "spec_tokens"), "tokens"),
    **dict.fromkeys(("gamma", "num_draft_tokens"), "tokens"),
    **dict.fromkeys(("accepted", "accept", "acceptance", "acceptance_length"), "accepted"),
    "acceptance_rate": "accepted",
}
"""Parts of speculative decoding by key."""

ACCEPTANCE_RATES = ("acceptance", "acceptance_rate")
"""Keys of a rate of acceptance, where their number is a share below one."""

GLOBAL_BATCHES = ("gbs", "global_batch", "global_batch_size")
"""Keys of the batch of all replicas: sequences, or with a million tokens."""

SHORT_SIZES = {"-b": "B", "-B": "B", "-s": "S", "-S": "S"}
"""Sizes typed as options of one letter."""

UTILIZATIONS = ("mfu", "hfu", "mbu")
"""Measured shares of peak that may be typed as options, `--mfu 41%`."""

PARALLELISM_KEYS: Mapping[str, str] = {
    **{key: key for key in ("tp", "dp", "ep", "pp", "cp")},
    "tensor_parallel_size": "tp",
    "data_parallel_size": "dp",
    "pipeline_parallel_size": "pp",
}
"""Parts of a split by key."""

PHASE_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("decode", "decoding", "generate", "generation"), "decode"),
    **dict.fromkeys(("prefill", "prefilling", "ttft"), "prefill"),
    **dict.fromkeys(("train", "training", "pretrain", "pretraining"), "train"),
    **dict.fromkeys(("finetune", "finetuning", "fine-tune", "fine-tuning", "sft"), "train"),
}
"""Phases by word."""

ENGINES: Mapping[str, str] = {
    **dict.fromkeys(("vllm", "sglang", "trtllm"), ""),
    **dict.fromkeys(("trt-llm", "tensorrt-llm", "tensorrtllm", "trt"), "trtllm"),
}
"""Serving software by word; empty: the word itself."""

NETWORK_SOFTWARE = "nccl"
"""Software of collectives, where the fits of an engine have none."""

VERSUS = ("vs", "vs.", "versus", "compare", "compared")
"""Words between chips that are compared."""

UNIT_NOUNS = ("million", "hour", "token", "second", "user", "mtok", "gpu", "chip")
"""Nouns after `per`: cost per million tokens."""

NAME_OPTIONS = ("model", "gpu", "chip", "device", "hardware", "accelerator", "gpu_type")
"""Options in place of a word: --model llama-3.1-8b."""

FLAGS = ("fsdp", "zero1", "zero2", "zero3", "prefill", "decode", "train", "max_batch")
"""Words that may be typed as options without a value."""

NO_LIMITS: Mapping[str, str] = {"ttft": "TTFT"}
"""Keys of limits that are not solved for, and the number to compare."""

DTYPE_KEYS = ("dtype", "dtypes", "quant", "quantization", "precision")
"""Keys before dtypes."""

NODES = ("node", "nodes", "server", "servers", "hosts")
"""Nouns for machines with several chips each."""

SMALL_WORDS = """
vs vs. versus compare compared on with for at in of the a an and or to per by from than between what
which how why when is are be does do can will would should there this that if about only i we my our
it achieve achieves achieving reached get gets got run running runs serve serving using use reach
reaches fast faster better cheaper cheapest fastest long much many large make makes become becomes
need needs best biggest largest maximum max size please take tell me gpu chip node model expect
kernel could have see tensor core cores cuda deploy host single good bad normal ok okay reasonable
slow gain lose difference worth quick one full-finetune way ways step steps prompt prompts gpus
chips devices accelerators nodes hello hi arithmetic takes took per-token iteration iterations given
want wants would-be whether so then new box machine machines hardware host hosts setup size sizes
expected expecting theoretical theoretically possible can't cannot really just still also too am was
were got getting seeing see measured measure between these those them they you your his her its us
batchsize where layer layers up down what's whats i'm i've it's how's there's let's single model's
hold holds big total plan each
instance instances request say says show compute calculate estimate estimated
min minimum smallest least fewest card cards into both every while as effect effects impact help
helps explain describe difference differences higher lower more less same other than achieved
attainable hit hits typical common usual today now currently required require requires
"""

SPOKEN = frozenset(SMALL_WORDS.split())
"""Words between the parts of a question, which say nothing themselves."""

RESULT_WORDS = """
latency throughput cost price speed time estimate bound roofline fit fits memory mfu mbu tpot tokens
tokens/s tok/s perf performance critical batch bottleneck compute-bound memory-bound limit
bandwidth-bound network-bound users sequences sessions requests context inference intensity
utilization ridge point peak peaks specs spec-sheet flops bandwidth days mtok $/mtok kv cache
kv-cache max-batch max_batch itl tbt tps million tflops tflop/s pflops pflop/s gflops flop/s
flops/s qps rps req/s tokens/s/gpu tok/s/gpu tokens/s/chip tok/s/chip tokens/s/user tok/s/user
tokens/sec hbm activation activations states gradients speedup slowdown interactivity footprint vram
"""

RESULTS = frozenset(RESULT_WORDS.split())
"""Words for what every answer has; a question may name them."""

AUTO_WORDS = ("auto",)
"""Words for every split."""

SPLIT_WORDS = ("tp", "split", "parallelism")
"""Words that ask for a split: what tp keeps 20 ms."""


def says_nothing(word: str) -> bool:
    """Check for a word that asks for nothing in particular."""
    return word.lower() in SPOKEN or word.lower() in RESULTS


def key_name(text: str) -> str:
    """Key as in the tables above: lower case, underscores."""
    return text.strip().lower().lstrip("-").replace("-", "_")


def options_as_words(args: Sequence[str], options: Collection[str]) -> list[str]:
    """Arguments with keys of a question typed as options, `--tp 8`, as words, `tp=8`.

    Args:
        args: Arguments as typed.
        options: Options that the command has.
    """
    words, rest = list[str](), [*args]
    while rest:
        name, equals, value = rest[0].partition("=")
        key = key_name(name)
        if name in SHORT_SIZES and name not in options and rest[1:] and rest[1][:1].isdigit():
            words.append(f"{SHORT_SIZES[name]}={rest[1]}")
            del rest[:2]
            continue
        word = PARALLELISM_KEYS.get(key, key)
        is_word = any(
            key in keys for keys in (SIZE_KEYS, REQUEST_KEYS, ROLE_KEYS, PARALLELISM_KEYS)
        )
        is_word = is_word or key in OPTION_KEYS or key.upper() in SIZE_KEYS.values()
        is_word = is_word or key in (*COUNT_KEYS, *UTILIZATIONS, *DTYPE_KEYS, *NO_LIMITS)
        if name == "--measured" and rest[2:] and is_measured_rate("".join(rest[1:3])):
            words.append(f"measured={''.join(rest[1:3])}")
            del rest[:3]
        elif name.startswith("--") and name not in options and key in FLAGS:
            words.append(key)
            rest.pop(0)
        elif name.startswith("--") and name not in options and key in NAME_OPTIONS:
            words += [value] if equals else rest[1:2]
            del rest[: 1 if equals else 2]
        elif not name.startswith("--") or name in options or not is_word:
            words.append(rest.pop(0))
        elif key in UTILIZATIONS and (equals or len(rest) > 1):
            words.append(f"measured={value if equals else rest[1]}{key}")
            del rest[: 1 if equals else 2]
        elif equals:
            words.append(f"{word}={value}")
            rest.pop(0)
        elif len(rest) > 1:
            words.append(f"{word}={rest[1]}")
            del rest[:2]
        else:
            words.append(rest.pop(0))
    return words


def is_key(text: str) -> bool:
    """Check for a long key that takes a number after it."""
    key = key_name(text)
    return (
        key in SIZE_KEYS
        or key in REQUEST_KEYS
        or key in COUNT_KEYS
        or key in NO_LIMITS
        or OPTION_KEYS.get(key) in (ACCUMULATION, "micro_batch")
        or key in ("within", "under", "tpot", "itl", "slo", "tokens", "price", "measured")
        or OPTION_KEYS.get(key) == "measured"
    )
