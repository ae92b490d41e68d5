"""Former names of trainers' settings and measures, which files may use for one more release.

The current names are those of Stable-Baselines3 and CleanRL. Training files, results folders and checkpoints
with former names are still read; new files have current names only.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

__all__ = ["MEASURES", "SETTINGS", "current_names", "renamed_keys"]

SETTINGS: Mapping[str, str] = {
    "steps": "total_timesteps",
    "rollout": "n_steps",
    "epochs": "n_epochs",
    "batch": "batch_size",
    "discount": "gamma",
    "trace": "gae_lambda",
    "value_trace": "value_gae_lambda",
    "entropy_weight": "ent_coef",
    "value_weight": "vf_coef",
    "gradient_limit": "max_grad_norm",
    "clip": "clip_range",
    "clip_value": "clip_range_vf",
    "target_divergence": "target_kl",
}
"""Current name of each setting, by its former name."""

MEASURES: Mapping[str, str] = {"divergence": "approx_kl"}
"""Current name of each measure in learning curves, by its former name."""


def renamed_keys(keys: Iterable[str], known: Container[str]) -> dict[str, str]:
    """Return the current names of those keys that are former names.

    Parameters
    ----------
    keys : iterable of str
        Keys of a table of settings.
    known : container of str
        Names of the settings of the trainer; a key that is one of them has not been renamed.

    Examples
    --------
    >>> renamed_keys(["steps", "learning_rate", "clip"], {"total_timesteps", "learning_rate", "gamma"})
    {'steps': 'total_timesteps'}
    """
    return {key: SETTINGS[key] for key in keys if key not in known and SETTINGS.get(key) in known}


def current_names(saved: Any, current: Any) -> Any:
    """Return saved tables with the current names of settings, for a comparison with current tables.

    Parameters
    ----------
    saved, current : object
        Plain data; mappings are compared key by key, at all levels.

    Examples
    --------
    >>> saved, current = {"seed": 1, "settings": {"discount": 0.9}}, {"seed": 1, "settings": {"gamma": 1.0}}
    >>> current_names(saved, current)
    {'seed': 1, 'settings': {'gamma': 0.9}}
    """
    if not (isinstance(saved, Mapping) and isinstance(current, Mapping)):
        return saved
    names = {old: new for old, new in renamed_keys(saved, current).items() if new not in saved}
    keys = {key: names.get(key, key) for key in saved}
    return {keys[key]: current_names(value, current.get(keys[key])) for key, value in saved.items()}
