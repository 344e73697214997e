"""Runs schemathesis on the OpenAPI document of a service.

It sends requests that the document allows and requests that it forbids, and follows the values of responses into other
requests. Runs are derandomized, and print the request of each failure.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

EXAMPLES = 10
"""Requests per operation of each kind, after those for the limits of every field."""
TIMEOUT = "90"
"""Seconds that a response may take on a busy machine."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
)


def examine(url: str, folder: Path, *options: str, checks: tuple[str, ...] = CHECKS) -> dict[str, Any]:
    """Examine every operation of the document at `url`; returns the report. Raises AssertionError."""
    report = folder / "schemathesis.json"
    command = [
        *(str(Path(sys.executable).parent / "schemathesis"), "--no-color", "run", url),
        *("--checks", ",".join(checks), "--max-examples", str(EXAMPLES), "--continue-on-failure"),
        *("--generation-deterministic", "--generation-with-security-parameters", "false"),
        *("--request-timeout", TIMEOUT, "--suppress-health-check", "all"),
        *("--report", "json", "--report-json-path", str(report)),
        *options,
    ]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    operations = found["operations"]
    assert found["complete"], done.stdout
    assert operations["tested"] == operations["selected"] > 0, done.stdout
    assert found["warnings"]["missing_auth"] == [], done.stdout
    return found
