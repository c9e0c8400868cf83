# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What the drill found: one line per promise, as text, JSON and JUnit XML."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree as ET

Verdict = Literal["kept", "broken", "not reached"]


@dataclass
class Check:
    """One promise: `detail` says what was seen, `measured` holds bytes and seconds, `seconds` how long it took."""

    name: str
    promise: str
    verdict: Verdict = "not reached"
    detail: str = ""
    seconds: float = 0.0
    at: float = 0.0
    measured: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """For people: " 3.2 s  kept    the process has ended: pid 17"."""
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.at:6.1f} s  {self.verdict:<12}{self.promise}{detail}"

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "name": self.name,
            "promise": self.promise,
            "verdict": self.verdict,
            "detail": self.detail,
            "seconds": round(self.seconds, 3),
            "at": round(self.at, 3),
            "measured": self.measured,
        }


@dataclass
class Report:
    """All checks of one drill, in order."""

    checks: list[Check] = field(default_factory=list)
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    folder: str | None = None

    @property
    def ok(self) -> bool:
        """True only if every promise held; a drill that checked nothing proves nothing."""
        return bool(self.checks) and all(check.verdict == "kept" for check in self.checks)

    def summary(self) -> str:
        """One sentence."""
        broken = [check for check in self.checks if check.verdict == "broken"]
        missed = [check for check in self.checks if check.verdict == "not reached"]
        if self.ok:
            return f"All {len(self.checks)} promises held, in {self.seconds:.1f} s."
        text = f"{len(broken)} of {len(self.checks)} promises did not hold"
        return text + (f" and {len(missed)} were not reached" if missed else "") + f", in {self.seconds:.1f} s."

    def to_json(self) -> dict[str, Any]:
        """For programs; `measured` collects the figures of all checks."""
        measured: dict[str, Any] = {}
        for check in self.checks:
            measured |= {f"{check.name}.{key}": value for key, value in check.measured.items()}
        return {
            "held": self.ok,
            "seconds": round(self.seconds, 3),
            "versions": self.versions,
            "folder": self.folder,
            "measured": measured,
            "checks": [check.to_json() for check in self.checks],
        }

    def write_junit(self, path: Path) -> None:
        """One test case per promise. Raises OSError when the file cannot be written."""
        suite = ET.Element(
            "testsuite",
            name="jupyter pause drill",
            tests=str(len(self.checks)),
            failures=str(sum(check.verdict == "broken" for check in self.checks)),
            errors="0",
            skipped=str(sum(check.verdict == "not reached" for check in self.checks)),
            time=f"{self.seconds:.3f}",
        )
        properties = ET.SubElement(suite, "properties")
        for name, value in self.versions.items():
            ET.SubElement(properties, "property", name=name, value=value)
        for check in self.checks:
            case = ET.SubElement(
                suite, "testcase", classname="jupyter_pause.drill", name=check.name, time=f"{check.seconds:.3f}"
            )
            if check.verdict == "broken":
                ET.SubElement(case, "failure", message=check.promise).text = _printable(check.detail)
            elif check.verdict == "not reached":
                ET.SubElement(case, "skipped", message="not reached")
            figures = "".join(f"{key}: {value}\n" for key, value in check.measured.items())
            ET.SubElement(case, "system-out").text = _printable(f"{check.promise}: {check.detail}\n{figures}")
        suites = ET.Element("testsuites")
        suites.append(suite)
        ET.indent(suites)
        ET.ElementTree(suites).write(path, encoding="utf-8", xml_declaration=True)


def _printable(text: str) -> str:
    """XML knows no control characters."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)
