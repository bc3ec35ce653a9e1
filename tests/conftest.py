"""What every suite shares: the event loop a test runs on, and how thorough property tests are.

Async tests run on asyncio; ``PYTHONASYNCIODEBUG=1`` makes it tell where a forgotten coroutine was made and
which callback was slow, at half the speed. A suite that must pass on trio too says so:
``pytestmark = pytest.mark.both_backends``.

Property tests run with the profile ``dev`` (quick) or ``ci`` (thorough): ``ci`` where the variable ``CI``
is set, otherwise the one that ``HANDRAIL_HYPOTHESIS_PROFILE`` names, or ``dev``.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# The contract suites assert in modules that are not test modules themselves.
pytest.register_assert_rewrite("contract")

if sys.platform != "win32":
    # Whoever runs the tests may ignore SIGHUP (nohup does); the programs that the tests start must not inherit that.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

Backend = tuple[str, dict[str, Any]]
ASYNCIO: Backend = ("asyncio", {})
TRIO: Backend = ("trio", {})

# Deadlines are off: a slow machine is no defect, and no test measures time.
settings.register_profile("dev", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HANDRAIL_HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "both_backends: the tests run on asyncio and on trio")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "anyio_backend" in metafunc.fixturenames and metafunc.definition.get_closest_marker("both_backends"):
        metafunc.parametrize("anyio_backend", [ASYNCIO, TRIO], ids=["asyncio", "trio"], indirect=True)


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    """The event loop of an async test: asyncio unless the test asks for both."""
    backend: Backend = getattr(request, "param", ASYNCIO)
    return backend
