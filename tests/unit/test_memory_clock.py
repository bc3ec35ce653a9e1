"""The virtual clock: moved by hand, or jumping when everything waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import anyio
import anyio.lowlevel
import pytest

from handrail.adapters.memory import VirtualClock

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]


async def test_a_clock_moved_by_hand_stands_still_otherwise() -> None:
    clock = VirtualClock()
    before = clock.now()
    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, 5)
        await anyio.wait_all_tasks_blocked()
        assert (clock.monotonic(), clock.now()) == (0, before)
        await clock.advance(4)
        assert clock.monotonic() == 4
        await clock.advance(1)
    assert clock.now() == before + timedelta(seconds=5)


async def test_the_start_may_be_in_any_time_zone() -> None:
    start = datetime(2030, 6, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    clock = VirtualClock(start)
    await clock.advance(1.5)
    assert clock.now() == datetime(2030, 6, 1, 10, 0, 1, 500_000, tzinfo=UTC)
    assert clock.now().tzinfo is UTC


async def test_woken_tasks_run_at_their_own_moment() -> None:
    clock = VirtualClock()
    woken: list[tuple[str, float]] = []

    async def ticker(name: str, seconds: float) -> None:
        while True:
            await clock.sleep(seconds)
            woken.append((name, clock.monotonic()))

    async with anyio.create_task_group() as group:
        group.start_soon(ticker, "a", 2)
        group.start_soon(ticker, "b", 3)
        await clock.advance(6.5)
        group.cancel_scope.cancel()
    assert woken[:3] == [("a", 2), ("b", 3), ("a", 4)]
    assert sorted(woken[3:]) == [("a", 6), ("b", 6)]
    assert clock.monotonic() == 6.5


async def test_a_woken_task_may_take_many_turns_before_time_goes_on() -> None:
    clock = VirtualClock()
    seen: list[float] = []

    async def busy() -> None:
        await clock.sleep(1)
        for _ in range(200):
            await anyio.lowlevel.checkpoint()
        seen.append(clock.monotonic())
        await clock.sleep(1)
        seen.append(clock.monotonic())

    async with anyio.create_task_group() as group:
        group.start_soon(busy)
        await clock.advance(10)
    assert seen == [1, 2]


async def test_an_autojumping_clock_needs_no_hand() -> None:
    clock = VirtualClock(autojump=True)
    await clock.sleep(3600)
    with clock.move_on_after(24 * 3600) as deadline:
        await anyio.sleep_forever()
    assert deadline.expired
    assert clock.monotonic() == 25 * 3600


async def test_an_autojumping_clock_waits_for_busy_tasks() -> None:
    clock = VirtualClock(autojump=True)
    with clock.move_on_after(1) as deadline:
        for _ in range(500):
            await anyio.lowlevel.checkpoint()
    assert not deadline.expired
    assert clock.monotonic() == 0


async def test_an_autojumping_clock_jumps_again_after_a_pause() -> None:
    clock = VirtualClock(autojump=True)
    for _ in range(3):
        await clock.sleep(10)
        await anyio.lowlevel.checkpoint()
    assert clock.monotonic() == 30


async def test_two_autojumping_clocks_do_not_hold_each_other_up() -> None:
    clocks = [VirtualClock(autojump=True), VirtualClock(autojump=True)]
    async with anyio.create_task_group() as group:
        for clock in clocks:
            group.start_soon(clock.sleep, 1000)
    assert [clock.monotonic() for clock in clocks] == [1000, 1000]


async def test_sleepers_of_one_moment_wake_together() -> None:
    clock = VirtualClock(autojump=True)
    woken: list[float] = []

    async def sleeper() -> None:
        await clock.sleep(5)
        woken.append(clock.monotonic())

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(sleeper)
    assert woken == [5] * 20


async def test_many_small_steps_add_up_exactly() -> None:
    clock = VirtualClock(autojump=True)
    for _ in range(10):
        await clock.sleep(0.1)
    assert clock.monotonic() == 1.0


async def test_a_tiny_sleep_is_not_none() -> None:
    clock = VirtualClock(autojump=True)
    await clock.sleep(1e-12)
    assert clock.monotonic() > 0


async def test_an_endless_sleep_ends_by_cancellation_only() -> None:
    clock = VirtualClock(autojump=True)
    with clock.move_on_after(7) as deadline:
        await clock.sleep(float("inf"))
    assert deadline.expired
    assert clock.monotonic() == 7


async def test_what_is_no_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="number"):
        await VirtualClock().sleep(float("nan"))


async def test_things_can_happen_later_without_a_task() -> None:
    clock = VirtualClock()
    happened: list[str] = []
    clock.call_later(2, lambda: happened.append("two"))
    clock.call_later(1, lambda: happened.append("one"))
    dropped = clock.call_later(1, lambda: happened.append("never"))
    dropped.cancel()
    await clock.advance(1)
    assert happened == ["one"]
    await clock.advance(1)
    assert happened == ["one", "two"]
    dropped.cancel()


async def test_a_limit_that_passes_during_shielded_work_has_cancelled_nothing() -> None:
    clock = VirtualClock(autojump=True)
    with clock.move_on_after(1) as deadline, anyio.CancelScope(shield=True):
        await clock.sleep(5)
    assert not deadline.expired


def test_one_clock_serves_several_event_loops_in_turn(anyio_backend_name: str) -> None:
    clock = VirtualClock(autojump=True)

    async def leave_a_sleeper_behind() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(clock.sleep, 100)
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    anyio.run(leave_a_sleeper_behind, backend=anyio_backend_name)
    anyio.run(clock.sleep, 3, backend=anyio_backend_name)
    assert clock.monotonic() == 3
