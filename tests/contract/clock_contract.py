"""ClockContract: every promise of ClockPort, as tests over any adapter."""

from __future__ import annotations

import math
from datetime import UTC, timedelta

import anyio
import anyio.lowlevel
import pytest

from contract.host import Host

__all__ = ["ClockContract"]

SHORT = 0.02
LONG = 600.0


class ClockContract:
    """Subclass it and give it a fixture ``host``. Of its environment only the clock is used."""

    pytestmark = pytest.mark.anyio

    async def test_now_is_aware_and_in_utc(self, host: Host) -> None:
        now = host.env.clock.now()
        assert now.tzinfo is UTC
        assert now.utcoffset() == timedelta(0)

    async def test_monotonic_time_never_goes_back(self, host: Host) -> None:
        readings: list[float] = []
        for _ in range(50):
            readings.append(host.env.clock.monotonic())
            await host.env.clock.sleep(0)
        assert readings == sorted(readings)
        assert all(math.isfinite(reading) for reading in readings)

    async def test_sleeping_takes_its_time(self, host: Host) -> None:
        before, wall = host.env.clock.monotonic(), host.env.clock.now()
        await host.env.clock.sleep(SHORT)
        assert host.env.clock.monotonic() - before >= SHORT * 0.99
        assert host.env.clock.now() > wall

    @pytest.mark.parametrize("seconds", [0, 0.0, -1, -math.inf])
    async def test_no_sleep_only_lets_others_run(self, host: Host, seconds: float) -> None:
        steps: list[str] = []

        async def other() -> None:
            steps.append("other")

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(other)
                while not steps:
                    await host.env.clock.sleep(seconds)
                steps.append("slept")
        assert steps == ["other", "slept"]

    async def test_sleepers_wake_in_the_order_of_their_deadlines(self, host: Host) -> None:
        woken: list[int] = []

        async def sleeper(number: int) -> None:
            await host.env.clock.sleep(SHORT * number)
            woken.append(number)

        async with anyio.create_task_group() as group:
            for number in (3, 1, 5):
                group.start_soon(sleeper, number)
        assert woken == [1, 3, 5]

    async def test_a_sleep_can_be_cancelled(self, host: Host) -> None:
        before = host.env.clock.monotonic()
        async with anyio.create_task_group() as group:
            group.start_soon(host.env.clock.sleep, LONG)
            await host.env.clock.sleep(SHORT)
            group.cancel_scope.cancel()
        assert host.env.clock.monotonic() - before < LONG

    async def test_a_block_that_is_quick_enough_is_left_alone(self, host: Host) -> None:
        steps: list[str] = []
        with host.env.clock.move_on_after(LONG) as deadline:
            await host.env.clock.sleep(SHORT)
            steps.append("done")
        assert steps == ["done"]
        assert not deadline.expired

    async def test_a_block_that_takes_too_long_ends_quietly(self, host: Host) -> None:
        before = host.env.clock.monotonic()
        with host.env.clock.move_on_after(SHORT) as deadline:
            await host.env.clock.sleep(LONG)
        assert deadline.expired
        assert SHORT * 0.99 <= host.env.clock.monotonic() - before < LONG
        await host.env.clock.sleep(SHORT)
        assert deadline.expired

    async def test_a_block_may_wait_for_anything(self, host: Host) -> None:
        with host.env.clock.move_on_after(SHORT) as deadline:
            await anyio.Event().wait()
        assert deadline.expired

    @pytest.mark.parametrize("seconds", [0, -1, -math.inf])
    async def test_no_time_cancels_at_the_first_await(self, host: Host, seconds: float) -> None:
        steps: list[str] = []
        with host.env.clock.move_on_after(seconds) as deadline:
            steps.append("before")
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            steps.append("after")
        assert steps == ["before"]
        assert deadline.expired

    async def test_none_never_cancels(self, host: Host) -> None:
        with host.env.clock.move_on_after(None) as deadline:
            await host.env.clock.sleep(SHORT)
        assert not deadline.expired

    async def test_the_inner_of_two_limits_leaves_the_outer_alone(self, host: Host) -> None:
        with host.env.clock.move_on_after(LONG) as outer:
            with host.env.clock.move_on_after(SHORT) as inner:
                await host.env.clock.sleep(LONG)
            await anyio.lowlevel.checkpoint()
        assert (inner.expired, outer.expired) == (True, False)

    async def test_the_outer_of_two_limits_ends_both_blocks(self, host: Host) -> None:
        steps: list[str] = []
        with host.env.clock.move_on_after(SHORT) as outer:
            with host.env.clock.move_on_after(LONG) as inner:
                await host.env.clock.sleep(LONG * 2)
            steps.append("between")
        assert steps == []
        assert (inner.expired, outer.expired) == (False, True)

    async def test_an_exception_passes_through(self, host: Host) -> None:
        with pytest.raises(ZeroDivisionError), host.env.clock.move_on_after(LONG):
            raise ZeroDivisionError

    async def test_a_cancellation_from_outside_is_no_expiry(self, host: Host) -> None:
        with anyio.CancelScope() as scope, host.env.clock.move_on_after(LONG) as deadline:
            scope.cancel()
            await anyio.lowlevel.checkpoint()
        assert scope.cancelled_caught
        assert not deadline.expired
