"""Whose the memory of a GPU is, which rank sits on it, and which the run uses."""

from __future__ import annotations

from bitwatch.record.view import View
from bitwatch.tui.gpu_facts import Facts, Held, Seat
from tests.tui import gpu_views, views
from tests.tui.views import pid_of


def facts(view: View | None = None, **fields: object) -> Facts:
    return Facts(view or gpu_views.large(**fields))


def hold(view: View, index: int, *processes: tuple[int, float | None]) -> Held:
    assert view.gpus
    view.gpus.gpus[index].processes = list(processes)
    return Facts(view).held(view.gpus.gpus[index])


def test_memory_is_divided_among_ours_leftovers_others_and_the_driver() -> None:
    view = gpu_views.large(leftovers=views.with_leftovers().leftovers)
    gpu = facts(view).gpus[0]
    gpu.memory_used_mib = 10_000.0
    held = hold(view, 0, (pid_of(0), 6000.0), (pid_of(0, 1), 500.0), (38803, 2000.0), (7, 1000.0))
    assert held == Held(6500.0, 2000.0, 1000.0, 500.0, 7)
    assert hold(view, 0, (pid_of(0), 6000.0), (7, 1.0), (8, 1.0)).others_pid is None


def test_what_one_process_does_not_tell_makes_only_its_part_unknown() -> None:
    held = hold(gpu_views.large(), 0, (pid_of(0), 6000.0), (7, None))
    assert held.ours == 6000.0 and held.others is None and held.rest is None


def test_process_ids_of_another_namespace_say_nothing_about_whose() -> None:
    view = gpu_views.large()
    assert view.gpus
    for gpu in view.gpus.gpus:
        gpu.processes = [(9_000_001 + gpu.index, 16_000.0)]
    assert facts(view).held(view.gpus.gpus[0]) == Held(None, None, None, None)
    view.step = 0  # before the first step nothing of ours need be there: it is somebody else's
    assert facts(view).held(view.gpus.gpus[0]).others == 16_000.0


def test_a_rank_is_where_its_process_is_else_guessed_by_its_number() -> None:
    view = gpu_views.large()
    assert view.gpus
    swapped = {0: 1, 1: 0}
    for gpu in view.gpus.gpus[:2]:
        gpu.processes = [(pid_of(swapped[gpu.index]), 16_000.0)]
    view.gpus.gpus[2].processes = []
    seats = facts(view).seats
    assert seats[0] == [Seat(1, False)] and seats[1] == [Seat(0, False)]
    assert seats[2] == [Seat(2, True)] and seats[3] == [Seat(3, False)]
    step = facts(view).step_on(view.gpus.gpus[0])
    assert step and step.rank == 1


def test_a_guess_follows_the_order_in_which_the_gpus_are_named() -> None:
    view = gpu_views.large(visible_devices="3,1,2,0", processes=[])
    assert {index: seats[0].rank for index, seats in facts(view).seats.items()} == {
        3: 0, 1: 1, 2: 2, 0: 3,
    }  # fmt: skip
    over = gpu_views.large(state="done", processes=[])
    assert facts(over).seats == {}


def test_a_run_uses_as_many_of_the_visible_gpus_as_it_has_ranks() -> None:
    assert facts(gpu_views.eight_gpus()).used == {4, 5, 6, 7}
    assert facts(gpu_views.eight_gpus(visible_devices=None, processes=[])).used == {0, 1, 2, 3}
    assert facts(gpu_views.eight_gpus(visible_devices="GPU-7,GPU-1", processes=[])).used == {7, 1}
    assert facts(gpu_views.eight_gpus(visible_devices=None, foreign=True)).used == set(range(8))
    assert facts(views.on_cpu(gpus=views.gpus())).used == set()
