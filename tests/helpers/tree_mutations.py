"""Changes of the text of tree models, at random and at chosen places."""

from __future__ import annotations

import re

ODD_NUMBERS = [
    *("-1", "0", "1", "2", "-2", "7", "31", "-32", "64", "255", "65536", "2147483647", "-2147483648", "4294967295"),
    *("4294967296", "9223372036854775807", "99999999999999999999", "1e308", "1e400", "-1e308", "1e-320", "0.5", "nan"),
    *("inf", "-inf", "NaN", "Infinity", "", "-", "+1", "0x10", "1_0", "e", "1 2", "²"),
]
LIGHTGBM_INDICES = (
    "split_feature|decision_type|left_child|right_child|num_leaves|num_cat|cat_boundaries|cat_threshold|threshold"
    "|tree_sizes|max_feature_idx|leaf_count"
)
XGBOOST_INDICES = (
    "left_children|right_children|parents|split_indices|split_type|default_left|categories|categories_nodes"
    "|categories_segments|categories_sizes|tree_info|iteration_indptr"
)


def change_number(text, rng):
    """Replace one number by another one, mostly in the trees."""
    found = list(re.finditer(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", text))
    if not found:
        return text
    place = found[int(rng.integers(len(found)))]
    if rng.random() < 0.3:
        new = found[int(rng.integers(len(found)))].group()
    else:
        new = ODD_NUMBERS[int(rng.integers(len(ODD_NUMBERS)))]
    return text[: place.start()] + new + text[place.end() :]


def change_fraction(text, rng):
    """Multiply one number that is no integer by 1.5: the model is often valid."""
    found = list(re.finditer(r"-?\d+\.\d+([eE][-+]?\d+)?", text))
    if not found:
        return text
    place = found[int(rng.integers(len(found)))]
    return text[: place.start()] + repr(1.5 * float(place.group())) + text[place.end() :]


def change_index(text, rng):
    """Change one entry of a line of indices or counts by a little."""
    lines = list(re.finditer(rf"^({LIGHTGBM_INDICES})=(.+)$", text, re.M))
    lines += list(re.finditer(rf'"({XGBOOST_INDICES})":\[(.+?)\]', text))
    lines = [line for line in lines if re.search(r"\d", line.group(2))]
    if not lines:
        return text
    line = lines[int(rng.integers(len(lines)))]
    numbers = list(re.finditer(r"-?\d+", line.group(2)))
    place = numbers[int(rng.integers(len(numbers)))]
    new = int(place.group()) + int(rng.choice([-100, -2, -1, 1, 2, 8, 100, 10**6, 2**31, 2**32]))
    start = line.start(2)
    return text[: start + place.start()] + str(new) + text[start + place.end() :]


def pieces(text):
    return text.split("\n") if text.startswith("tree") else re.split(r"(?<=[,{}\[\]])", text)


def change_pieces(text, rng):
    """Delete, repeat or swap lines of LightGBM's text, or tokens of XGBoost's."""
    parts = pieces(text)
    i, j = sorted(int(place) for place in rng.integers(0, len(parts), 2))
    kind = int(rng.integers(4))
    if kind == 0:
        del parts[i]
    elif kind == 1:
        parts.insert(i, parts[i])
    elif kind == 2:
        parts[i], parts[j] = parts[j], parts[i]
    else:
        del parts[i : min(j, i + 20)]
    return ("\n" if text.startswith("tree") else "").join(parts)


def change_bytes(text, rng):
    letters = list(text)
    for place in rng.integers(0, len(letters), rng.integers(1, 4) if letters else 0):
        letters[place] = chr(int(rng.integers(1, 127)))
    return "".join(letters)


def cut(text, rng):
    place = int(rng.integers(len(text) + 1))
    return text[:place] + text[place + int(rng.integers(1, 300)) :] * int(rng.integers(2))


CHANGES = (change_number, change_fraction, change_index, change_index, change_pieces, change_bytes, cut)


def mutate(text, rng):
    """Return the text with one or two changes."""
    for _ in range(int(rng.integers(1, 3))):
        text = CHANGES[int(rng.integers(len(CHANGES)))](text, rng)
    return text


def resized(text):
    """Make the header of LightGBM's text fit the sizes of its trees again, so that other checks are reached."""
    head, gap, body = text.partition("\n\n")
    end = body.rfind("end of trees")
    starts = [found.start() for found in re.finditer(r"^Tree=", body, re.M)]
    sizes = " ".join(str(b - a) for a, b in zip(starts, [*starts[1:], end], strict=True))
    return re.sub(r"tree_sizes=.*", f"tree_sizes={sizes}", head) + gap + body
