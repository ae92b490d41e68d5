"""Find the packages: ``hpcsimkit`` and the three folders beside it that are imported from inside it.

``hpcsimkit/policies``, ``agents`` and ``workloads`` are symbolic links to the folders of the top level.
Where a checkout has no symbolic links (Windows, by default) the folders are mapped into place instead.
Everything else is in pyproject.toml; why it is done so is in docs/background/design.md.
"""

from pathlib import Path

from setuptools import find_packages, setup

packages = find_packages(include=["hpcsimkit", "hpcsimkit.*"])
# Said out loud, it lets an editable install be a plain entry of the path. A finder would lose against any
# folder named hpcsimkit where Python is started: the parent of a clone, say.
package_dir = {"": "."}
for folder in ("policies", "agents", "workloads"):
    if not Path("hpcsimkit", folder).is_dir():
        found = find_packages(include=[folder, f"{folder}.*"])
        packages += [f"hpcsimkit.{name}" for name in found]
        package_dir[f"hpcsimkit.{folder}"] = folder

setup(packages=packages, package_dir=package_dir)
