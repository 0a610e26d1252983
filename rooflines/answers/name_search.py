"""Names as people type them: any case, families, a part that only one name has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, check_choice, close_to, quote
from rooflines.basics.text import normalize_name
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.models.library import catalogue_id, is_named, model_entries
from rooflines.theory.operation import NAMED_OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.hardware.entries import Chip

MIN_LETTERS = 3
"""Letters of the shortest part of a name that stands for it [1]."""

OPERATION_ALIASES = {
    **dict.fromkeys(("gemm", "mm", "linear"), "matmul"),
    **dict.fromkeys(("bmm", "baddbmm", "batched-gemm", "batched_gemm"), "batched-matmul"),
}
"""Operations by their names in other libraries."""

DTYPE_ALIASES = {
    "half": "fp16",
    **dict.fromkeys(("awq", "gptq", "q4", "w4", "4bit"), "w4a16g128"),
    **dict.fromkeys(("q8", "w8", "8bit"), "w8a16"),
    **dict.fromkeys(("e4m3", "e5m2", "fp8e4m3", "fp8e4m3fn", "fp8e4m3fnuz", "fp8e5m2"), "fp8"),
}
"""Dtypes by their names in other libraries, without separators and with fp for float."""


FP4 = "fp4"
"""Four-bit floats, of which makers have different ones."""


class Match(NamedTuple):
    """A name that a word stands for.

    Attributes:
        name: The name.
        note: What was taken for what, where the word is not the name itself in another case.
    """

    name: str
    note: str = ""


def find_chip(word: str, chips: Mapping[str, Chip]) -> Match | None:
    """Find a chip by id, alias, or family name for its usual chip; None: no chip.

    Args:
        word: As typed, perhaps with its maker in front.
        chips: Entries by id.
    """
    if word in chips:
        return Match(word)
    typed = normalize_name(word)
    spellings = {
        name: [normalize_name(text) for text in (name, *(chip.aliases or ()))]
        for name, chip in chips.items()
    }
    for name, texts in spellings.items():
        if typed in texts:
            return Match(name)
    for name, chip in chips.items():
        if (
            chip.base is None
            and chip.usual
            and normalize_name(chip.usual) == typed.removeprefix(_maker(chip))
        ):
            family = [member for member in chips if member.startswith(f"{chip.usual}-")]
            siblings = [
                member for member in family if chips[member].base is None and member != name
            ]
            rest = f"; others: {', '.join(siblings)}" if siblings else ""
            return Match(name, f"{word} is taken as {name}, the usual one{rest}")
    for name, texts in spellings.items():
        maker = _maker(chips[name])
        if typed.removeprefix(maker) in [text.removeprefix(maker) for text in texts]:
            return Match(name)
    return _with_memory_in_name(word, chips)


def _with_memory_in_name(word: str, chips: Mapping[str, Chip]) -> Match | None:
    """Find a chip by its family and capacity, such as a100-40gb; None: there is none."""
    memory = MEMORY_IN_NAME.fullmatch(word)
    if memory is None:
        return None
    name = find_with_memory(memory[1], int(memory[2]), chips)
    if name is None:
        return None
    family, label = (
        chips[name].usual or name.partition("-")[0],
        chips[name].memory[MAIN_MEMORY].label,
    )
    siblings = [
        sibling
        for sibling, chip in chips.items()
        if sibling.startswith(f"{family}-") and chip.base is None and sibling != name
        if chip.memory[MAIN_MEMORY].label == label
    ]
    rest = f", the usual one; others: {', '.join(siblings)}" if siblings else ""
    return Match(name, f"{word} is taken as {name}{rest}")


def check_chip(word: str, chips: Mapping[str, Chip], fix: str) -> None:
    """Refuse a name that is no chip; close to it are ids, and families for their usual chips.

    Args:
        word: As typed.
        chips: Entries by id.
        fix: What to use instead.

    Raises:
        RooflinesError: It is none.
    """
    if word in chips:
        return
    try:
        check_choice(word, (), "no chip", fix)
    except RooflinesError as error:
        raise error.changed(close=close_chips(word, chips)) from None


MAX_CLOSE = 4
"""Chips that a message offers [1]."""


def close_chips(word: str, chips: Mapping[str, Chip]) -> list[str]:
    """Chips that a misspelt word could mean, the closest first; variants only without others.

    Args:
        word: As typed, without a number of chips.
        chips: Entries by id.
    """
    whole = [name for name, chip in chips.items() if chip.base is None]
    families = [chip.usual for chip in chips.values() if chip.usual and chip.base is None]
    close = [*close_to(word, [*whole, *families]), *close_to(_letters(word), families)]
    if any(map(str.isdigit, word)):  # h1oo
        close += close_to(word.lower().replace("o", "0"), families)
    close = [name for name in close if _shares_piece(word, name)]
    if not close:
        close = [name for name in close_to(word, chips) if name[:1] == word[:1].lower()]
    return list(dict.fromkeys(close))[:MAX_CLOSE]


def _letters(word: str) -> str:
    """First part of a name: a100 of a100-41gb."""
    return re.split(r"[\s_-]", word.lower(), maxsplit=1)[0]


def _shares_piece(word: str, name: str) -> bool:
    """Check that a word has a part of a name, or begins alike: m2 is not in trainium2."""
    return word[:1].lower() == name[:1] or any(part in word.lower() for part in name.split("-"))


def search_chip(word: str, chips: Mapping[str, Chip]) -> Match | None:
    """Search a word in chip ids, then variants, then full names; None: no chip.

    Raises:
        RooflinesError: Several chips have it.
    """
    whole = {name: name for name, chip in chips.items() if chip.base is None}
    variants = {name: name for name in chips if name not in whole and name.startswith(word.lower())}
    full = {name: chips[name].name or "" for name in whole}
    for texts in (whole, variants, full):
        matches = _containing(word, texts)
        usual = [name for name in matches if chips[name].usual]
        if len(matches) > 1 and len(usual) == 1:
            rest = ", ".join(name for name in matches if name != usual[0])
            return Match(usual[0], f"{word} is taken as {usual[0]}, the usual one; others: {rest}")
        if match := _only_one("chip", word, matches):
            return match
    return None


ABSENT_CHIPS: Mapping[str, tuple[str, str]] = {
    "a10g": ("a10", "the A10G is a part of AWS alone"),
    "a6000": ("a40", "the same GPU with the same memory"),
    "rtxa6000": ("a40", "the same GPU with the same memory"),
    "6000ada": ("l40", "the same generation and capacity"),
    "l20": ("l40", "the same generation and capacity"),
    "a800": ("a100-sxm-80gb", "the same GPU with fewer links"),
    "mi308x": ("mi300x", "the same generation"),
    "mi250": ("mi250x", "the same generation"),
    "p100": ("v100-sxm2-32gb", "the generation after it"),
    **dict.fromkeys(
        (f"rtx{number}" for number in (3080, 3090, 4070, 4080)),
        ("rtx-4090", "the nearest consumer GPU"),
    ),
    **dict.fromkeys(
        (f"rtx{number}" for number in (5060, 5070, 5080)), ("rtx-5090", "the same generation")
    ),
    **dict.fromkeys(("rtx2080", "rtx2080ti", "gtx1080"), ("t4", "the nearest generation")),
}
"""Chips that are often asked for and that the catalogue lacks: a near one, and how it is near."""


ABSENT_KINDS: Mapping[str, str] = {
    r"(apple)?m[1-5](pro|max|ultra)?|apple(silicon)?|mac(book|studio|mini)?": "chip of Apple",
    r"groq(chip)?|lpu": "chip of Groq",
    r"cerebras|wse[23]?|cs[23]": "chip of Cerebras",
    r"tenstorrent|wormhole|blackhole": "chip of Tenstorrent",
    r"sambanova|sn40l": "chip of SambaNova",
    r"graphcore|ipu": "chip of Graphcore",
    r"qualcomm|snapdragon": "chip of Qualcomm",
    r"cpus?|xeon|epyc|ryzen": "CPU",
}
"""Kinds of chips that the catalogue lacks, by pattern of their names as normalized."""


def absent_kind(word: str) -> str | None:
    """Kind of chips that a word names and the catalogue lacks; None: no such word."""
    typed = normalize_name(word)
    return next((name for form, name in ABSENT_KINDS.items() if re.fullmatch(form, typed)), None)


def near_chip(word: str) -> tuple[str, str] | None:
    """Find a chip near one that the catalogue lacks, and how it is near; None: no such chip."""
    typed = normalize_name(word)
    for maker in ("nvidia", "amd", "geforce"):
        typed = typed.removeprefix(maker)
    return ABSENT_CHIPS.get(typed) or ABSENT_CHIPS.get(typed.removesuffix("ti"))


MEMORY_IN_NAME = re.compile(r"([A-Za-z].*?)[-_ ]?(\d{2,3}) ?gi?b?", re.IGNORECASE)
"""A chip or its family, and its capacity: a100-40gb."""

CAPACITY_SLACK = 0.1
"""Share by which a capacity may differ from the one in a name [1]."""


def find_with_memory(word: str, gigabytes: int, chips: Mapping[str, Chip]) -> str | None:
    """Find the chip of a family with a memory, such as A100 with 80 GB; None: there is none.

    Args:
        word: Name of a chip or of its family.
        gigabytes: Capacity of the main memory [GB].
        chips: Entries by id.
    """
    match = find_chip(word, chips)
    if match is None:
        return None
    family = chips[match.name].usual or word.lower()
    members = [name for name in chips if name == family or name.startswith(f"{family}-")]
    differences = {
        name: abs(capacity / 10**9 / gigabytes - 1)
        for name in (match.name, *members)
        if chips[name].base is None and (capacity := chips[name].memory[MAIN_MEMORY].capacity_bytes)
    }
    nearest = min(differences, key=lambda name: differences[name], default=None)
    return nearest if nearest and differences[nearest] <= CAPACITY_SLACK else None


def find_group(word: str, chips: Mapping[str, Chip]) -> list[str]:
    """Find chips by maker or generation; empty: it is neither.

    Args:
        word: Such as `nvidia`, `blackwell` or `cdna3`, in any case.
        chips: Entries by id; variants are left out.
    """
    group = normalize_name(word)
    return [
        name
        for name, chip in chips.items()
        if chip.base is None
        and group in [normalize_name(text) for text in (chip.vendor, chip.generation) if text]
    ]


def _maker(chip: Chip) -> str:
    """The maker of a chip, as names are compared; empty: unknown."""
    return normalize_name(chip.vendor or "")


def search_model(word: str) -> Match | None:
    """Search a word in catalogue model names; None: no model.

    Letters and numbers are compared one by one, so that `qwen-32b` is in qwen3-32b, and a size
    such as 70b is never another one. Among several versions with the typed size, the newest.

    Raises:
        RooflinesError: Several models have it.
    """
    typed = _pieces(word)
    if len(normalize_name(word)) < MIN_LETTERS or not typed:
        return None
    entries = model_entries()
    matches = [
        name
        for name, entry in entries.items()
        if any(_has_pieces(text, typed) for text in (name, entry.name, *entry.aliases))
    ]
    if not matches:
        return None
    first, *rest = sorted(matches, key=lambda name: (_version(name), -len(name)), reverse=True)
    sized = any(SIZED.fullmatch(piece) for piece in typed)
    if rest and not sized:
        problem = f"is {quote(word)}, which matches {len(matches)} models"
        raise RooflinesError("model", problem, "type one of them", close=matches)
    rest_text = f", the newest; others: {', '.join(rest)}" if rest else ""
    return Match(first, f"{word} is taken as {first}{rest_text}")


USUAL_FAMILY = "llama"
"""Family of a model that is named by its size alone."""


def search_size(word: str) -> Match | None:
    """Find the model that a size alone, such as 8b, stands for; None: it is no size of a model."""
    if not SIZED.fullmatch(word.lower()):
        return None
    names = [name for name in model_entries() if word.lower() in _pieces(name)]
    usual = [name for name in names if _pieces(name)[0] == USUAL_FAMILY]
    if not names:
        return None
    name = max(usual or names, key=_version)
    rest = [sibling for sibling in names if sibling != name]
    rest_text = f"; others: {', '.join(rest)}" if rest else ""
    return Match(name, f"{word} is taken as {name}{rest_text}")


def renamed(word: str) -> str:
    """Note for a published name whose letters and numbers are not its id's; empty: they are."""
    name, typed = catalogue_id(word), _pieces(word)
    if all(piece in typed for piece in _pieces(name)) or normalize_name(name) in normalize_name(
        word
    ):
        return ""
    return f"{word} is taken as {name}, whose shape it has"


SIZED = re.compile(r"\d+(?:\.\d+)?b")
"""A model's size in a name."""

PIECE = re.compile(r"\d+(?:\.\d+)?b?|[a-z]+")
"""Letters or a number in a model's name, the number perhaps a size."""


def _pieces(name: str) -> list[str]:
    """Letters and numbers in a name without its publisher."""
    return PIECE.findall(name.rpartition("/")[2].lower())


def is_sized(word: str) -> bool:
    """Check for letters with a model's size: qwen3-235b."""
    pieces = _pieces(word)
    return any(map(str.isalpha, pieces)) and any(map(SIZED.fullmatch, pieces))


def _has_pieces(text: str, typed: Sequence[str]) -> bool:
    """Check that a name has the typed pieces in their order; 3 is also in 3.1."""
    pieces = iter(_pieces(text))
    return all(
        any(piece == want or piece.startswith(f"{want}.") for piece in pieces) for want in typed
    )


def _version(name: str) -> float:
    """Version in a model's name: its first number that is no size [1]."""
    numbers = (piece for piece in _pieces(name) if piece[0].isdigit() and piece[-1] != "b")
    return float(next(numbers, 0.0))


class Checkpoint(NamedTuple):
    """Quantized checkpoint for a catalogue model.

    Attributes:
        model: The model's published name.
        dtypes: Its dtypes, as a question names them.
        roles: Further formats by tensor class.
        note: What was taken for what.
    """

    model: str
    dtypes: str
    roles: Mapping[str, str]
    note: str


QUANTIZED = re.compile(
    r"(.+?)-(fp8-kv|fp8(?:-dynamic|-block)?|(?:nv)?fp4|mxfp4|"
    r"quantized\.w8a8|int8|w8a8|(?:quantized\.)?w4a16|awq(?:-int4)?|gptq(?:-int4)?|int4)",
    re.IGNORECASE,
)
"""Published name of a model, and the suffix of its quantized checkpoint."""

SUFFIX_DTYPES = {
    "fp8": "fp8",
    "fp4": "nvfp4",
    "nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "w8a8": "w8a8",
    "int8": "w8a8",
    "w4a16": "w4a16-g128",
    "awq": "w4a16-g128",
    "gptq": "w4a16-g128",
    "int4": "w4a16-g128",
}
"""Dtypes of checkpoints by the first word of their suffix."""


RELEASE = re.compile(r"-(?:instruct|thinking|base|chat|it|hf|\d{4}|v\d+(?:\.\d+)*)$", re.IGNORECASE)
"""End of a published name that says a tuned release of the same shape: -Instruct, -2507, -v0.3."""


def released_model(word: str) -> str | None:
    """Find a model by the published name of a tuned release, such as Qwen3-32B-Instruct-2507.

    Args:
        word: Name, perhaps with its publisher.

    Returns:
        The name without the ends that tell releases apart; None: it is no model of the catalogue.
    """
    name = word.rpartition("/")[2]
    while not is_named(name):
        shorter = RELEASE.sub("", name)
        if shorter == name:
            return None
        name = shorter
    return name


def find_checkpoint(word: str) -> Checkpoint | None:
    """Find a quantized checkpoint by published name, such as Qwen/Qwen3-32B-FP8."""
    match = QUANTIZED.fullmatch(word)
    if match is None:
        return None
    base, suffix = released_model(match[1]), match[2].lower()
    if base is None:
        return None
    dtypes = SUFFIX_DTYPES[suffix.removeprefix("quantized.").partition("-")[0]]
    roles = {"cache": "fp8"} if suffix == "fp8-kv" else {}
    kv = ", KV cache in fp8" if roles else ""
    note = f"{word} is taken as {base} in {dtypes}{kv}"
    return Checkpoint(base, dtypes, roles, note)


def find_dtypes(word: str) -> str | None:
    """Find a dtype combination or format by name in any case, or by a library's name."""
    entries = dtype_entries()
    names = {normalize_name(name): name for name in (*entries.combinations, *entries.formats)}
    spelling = normalize_name(word).replace("bfloat", "bf").replace("float", "fp")
    if spelling == FP4:
        return FP4
    return names.get(DTYPE_ALIASES.get(spelling, spelling))


def find_operation(word: str) -> str | None:
    """Find an operation by name in any case, by a library's name, or as an einsum."""
    name = word.lower()
    return (
        word
        if "->" in word
        else OPERATION_ALIASES.get(name, name if name in NAMED_OPERATIONS else None)
    )


def _containing(word: str, texts: Mapping[str, str]) -> list[str]:
    """Names whose text contains a word, or all of its parts."""
    squeezed_word, parts = normalize_name(word), re.split(r"[\s_-]+", word.lower())
    if len(squeezed_word) < MIN_LETTERS:
        return []
    return [name for name, text in texts.items() if squeezed_word in normalize_name(text)] or [
        name for name, text in texts.items() if all(part in text.split("-") for part in parts)
    ]


def _only_one(kind: str, word: str, matches: Sequence[str]) -> Match | None:
    """The only match of a word; None: there is none.

    Raises:
        RooflinesError: There are several.
    """
    if len(matches) > 1:
        problem = f"is {quote(word)}, which matches {len(matches)} {kind}s"
        raise RooflinesError(kind, problem, "type one of them", close=matches)
    return Match(matches[0], f"{word} is taken as {matches[0]}") if matches else None
