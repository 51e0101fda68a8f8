"""Say what the variants of an experiment are, and how they were measured."""

from __future__ import annotations

from bot.core.lab import Lab
from bot.core.study import Variant
from bot.show.blocks import Phrase, code, joined, phrase
from bot.show.escape import clean, clip
from bot.show.filters import plural
from bot.show.lab_words import TEXT_CHARS, name


def variant_words(lab: Lab, variant: Variant) -> Phrase:
    """Return how a variant differs from the others."""
    parts = list[Phrase]()
    compilers = {variant.compiler for variant in lab.study.variants}
    if variant.compiler and len(compilers) > 1:
        parts.append(phrase("IREE ", _code(variant.compiler.version)))
    if variant.flags:
        parts.append(_code(" ".join(variant.flags)))
    for target, flags in sorted((variant.targets or {}).items()):
        part = phrase("on ", _code(target), " ")
        if flags:
            part = phrase(part, _code(" ".join(flags)))
        parts.append(part)
    for model, path in sorted(variant.models.items()):
        parts.append(phrase(name(model), " is ", _code(path)))
    if variant.layers is not None:
        parts.append(phrase(plural(variant.layers, "layer")))
    if variant.assume is not None:
        parts.append(phrase(f"dynamic dimensions: {variant.assume.words}"))
    if not parts:
        if lab.experiment.models:
            owner = "experiment"
        else:
            owner = "configuration"
        parts.append(phrase(f"as the {owner} has it"))
    return phrase(name(variant.name), ": ", joined(parts, "; "))


def measured_with(lab: Lab) -> Phrase:
    """Return the compilers, the flags and the machine of an experiment."""
    versions = dict[str, None]()
    for variant in lab.study.variants:
        if variant.compiler:
            versions[variant.compiler.version] = None
    text = phrase("IREE ", joined(map(_code, versions), ", "))
    if lab.flags:
        text = phrase(text, ", flags ", _code(" ".join(lab.flags)))
    text = phrase(text, ".")
    if lab.machine:
        text = phrase(text, " Run on ", _code(lab.machine), ".")
    return phrase(text, " The commands of all builds are in lab.json.")


def _code(text: str) -> Phrase:
    return phrase(code(clip(clean(text), TEXT_CHARS)))
