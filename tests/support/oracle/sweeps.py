"""Requests of a sweep: chips, dtypes, networks, splits and sizes."""

import copy
from collections.abc import Mapping
from itertools import product
from typing import Any

from oracle.network import link_of
from oracle.operations import operation_of, sharding_of
from oracle.quantities import as_list, exact, sizes_of, whole

ABOUT_SHAPE = ("name", "model", "layer")


def resolve_chips(chips, names):
    """Return some chips, each with its base, if it has one, filled in and its overrides applied."""

    def resolve(name):
        entry = dict(chips[name])
        base = entry.pop("base", None)
        if base is None:
            return copy.deepcopy(entry)
        result = resolve(base)
        for key, value in entry.items():
            *path, last = key.split(".")
            place = result
            for step in path:
                place = place.setdefault(step, {})
            place[last] = copy.deepcopy(value)
        return result

    return {name: resolve(name) for name in names}


def stored_bits(formats, name):
    """Return the bits one element takes, its share of a block's scale included.

    Of several formats, by their numbers of elements, it is the mean.
    """
    if isinstance(name, Mapping):
        bits = sum(stored_bits(formats, each) * count for each, count in name.items())
        return bits / sum(name.values())
    entry = formats[name]
    if "scale_bits" in entry:
        return exact(entry["bits"]) + exact(entry["scale_bits"]) / exact(entry["block"])
    return exact(entry["bits"])


def routes(sweep):
    """Return the networks of a sweep, each as a list of one, or of inner and outer."""
    asked = sweep.get("network")
    if asked is None:
        return [None]
    if isinstance(asked, list) and any(isinstance(each, list) for each in asked):
        return [as_list(each) for each in asked]
    return [as_list(asked)]


def network_of(chip, route):
    """Return the names of a route, by default the first network, and its links; none: it lacks."""
    networks = chip.get("networks") or {}
    names = route or list(networks)[:1]
    there = names and set(names) <= set(networks)
    return names, tuple(link_of(name, networks[name]) for name in names) if there else ()


def exactly(sweep):
    """Say whether a sweep counts FLOPs exactly, which is the default of a dot product."""
    how: str = sweep.get(
        "flops", "exact" if operation_of(sweep["operation"]).name == "dot" else "leading"
    )
    return how == "exact"


def default_unit(sweep):
    """Return the unit a sweep means where it names none."""
    return "vector" if operation_of(sweep["operation"]).name == "dot" else "matrix"


def combination_of(spec, combinations):
    """Return the name and the four dtypes of a combination."""
    if isinstance(spec, str):
        return spec, combinations[spec]
    return f"{spec['x']},{spec['w']}->{spec['out']}@{spec['compute']}", spec


def points(sweep):
    """Return the sizes of a sweep in order, a list per size of the first dimension."""
    operation = operation_of(sweep["operation"])
    grid: Mapping[str, Any] = sweep.get("grid") or {}
    shapes: list[Mapping[str, Any] | None] = list(sweep.get("shapes") or []) or [None]
    ties = {d: spec for d, spec in grid.items() if isinstance(spec, str) and spec in operation.dims}
    axes = [d for d in operation.dims if d in grid and d not in ties]
    first = axes[:1] if operation.dims[:1] == axes[:1] else []
    rest = axes[len(first) :]
    found = []
    for lead in product(*(sizes_of(grid[d]) for d in first)):
        others: list[tuple[str | None, dict[str, int]]] = []
        for shape, sizes in product(shapes, product(*(sizes_of(grid[d]) for d in rest))):
            of_dim = dict(zip(first, lead, strict=True)) | dict(zip(rest, sizes, strict=True))
            if shape is not None:
                of_dim |= {d: whole(size) for d, size in shape.items() if d not in ABOUT_SHAPE}
            while len(of_dim) < len(operation.dims):
                of_dim |= {d: of_dim[other] for d, other in ties.items() if other in of_dim}
            others.append(
                (None if shape is None else shape["name"], {d: of_dim[d] for d in operation.dims})
            )
        found.append(others)
    return found


def axes_of(form):
    """Return the chips along each axis."""
    return tuple(map(int, form.split("x"))) if isinstance(form, str) else (whole(form),)


def splits(sweep):
    """Return every sharding of a sweep with every form of chips that goes with it."""
    operation = operation_of(sweep["operation"])
    return [
        (sharding, axes)
        for sharding in (
            sharding_of(operation, spec) for spec in as_list(sweep.get("sharding", "none"))
        )
        for axes in (
            [(1,)]
            if sharding.split is None
            else [axes_of(form) for form in as_list(sweep.get("shards", [1]))]
        )
    ]
