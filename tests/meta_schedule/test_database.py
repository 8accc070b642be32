"""Databases: what is committed is there, the fastest comes first, files survive what befalls."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import weft
from tests.lib.tuning_programs import matmul, matmul_relu, tiled
from weft import tir
from weft.ir.structural import structural_equal
from weft.meta_schedule import database as db
from weft.meta_schedule.arg_info import ArgInfo
from weft.support.errors import IRTypeError, IRValueError, TVMError, UnsupportedError
from weft.target import Target

LLVM = Target("llvm -num-cores=2")


def record(workload, secs=(1.0,), inner=4):
    trace = tiled(workload.mod, inner).trace
    args = ArgInfo.from_entry_func(workload.mod)
    return db.TuningRecord(trace, workload, secs, LLVM, args)


@pytest.fixture(params=["memory", "json"])
def database(request, tmp_path):
    options = {"work_dir": tmp_path} if request.param == "json" else {}
    return db.create(request.param, **options)


def best(database, mod):
    found = database.query_tuning_record(mod, LLVM, "main")
    return None if found is None else [sec.value for sec in found.run_secs]


# ---- workloads and records


def test_json_gives_workloads_and_records_again():
    workload = db.Workload(matmul_relu())
    again = db.Workload.from_json(json.loads(json.dumps(workload.as_json())))
    assert structural_equal(again.mod, workload.mod)
    assert again.shash == workload.shash
    one = record(workload, [1.5, 2.0])
    other = db.TuningRecord.from_json(json.loads(json.dumps(one.as_json())), workload)
    assert str(other.trace) == str(one.trace)
    assert other.run_secs == one.run_secs
    assert other.target == LLVM
    assert other.args_info == one.args_info
    assert other.as_json() == one.as_json()


def test_a_record_read_from_json_replays_its_decisions():
    workload = db.Workload(matmul())
    again = db.TuningRecord.from_json(record(workload, inner=8).as_json(), workload)
    assert structural_equal(again.replay().mod, tiled(matmul(), 8).mod)
    candidate = again.as_measure_candidate()
    assert structural_equal(candidate.sch.mod, tiled(matmul(), 8).mod)
    assert list(candidate.args_info) == ArgInfo.from_entry_func(matmul())


def test_a_record_without_times_target_or_arguments():
    workload = db.Workload(matmul())
    bare = db.TuningRecord(tiled(matmul()).trace, workload)
    again = db.TuningRecord.from_json(bare.as_json(), workload)
    assert again.as_json()[1:] == [None, None, None]
    assert not bare.is_valid()


@pytest.mark.parametrize("damaged", [None, [], ["1"], ["1", "not base64!"], ["1", "e30="]])
def test_other_json_is_no_workload(damaged):
    with pytest.raises(IRValueError, match=r"Workload\.from_json: "):
        db.Workload.from_json(damaged)


@pytest.mark.parametrize(
    "damaged", [None, [], [[[], []], [1.0], None], [[[], []], ["fast"], None, None]]
)
def test_other_json_is_no_record(damaged):
    with pytest.raises(IRValueError, match=r"TuningRecord\.from_json: expected"):
        db.TuningRecord.from_json(damaged, db.Workload(matmul()))


def test_a_record_needs_a_trace_and_a_workload():
    with pytest.raises(IRTypeError, match="expected a Trace and a Workload, got list and IRModule"):
        db.TuningRecord([], matmul())


# ---- what every database does


def test_a_workload_is_known_by_its_structure(database):
    workload = database.commit_workload(matmul())
    assert database.commit_workload(matmul()) is workload
    assert database.has_workload(matmul())
    assert not database.has_workload(matmul(8))


def test_the_fastest_come_first_and_failures_not_at_all(database):
    workload = database.commit_workload(matmul())
    for secs in ([3.0, 3.0], None, [1.0, 4.0], [], [2.0], [1e10]):
        database.commit_tuning_record(record(workload, secs))
    top = database.get_top_k(workload, 10)
    assert [[float(sec) for sec in each.run_secs] for each in top] == [
        [2.0],
        [1.0, 4.0],
        [3.0, 3.0],
    ]
    assert len(database) == len(database.get_all_tuning_records()) == 6
    assert database.get_top_k(workload, 1) == top[:1]
    assert database.get_top_k(workload, 0) == []
    assert database.get_top_k(database.commit_workload(matmul(8)), 3) == []
    with pytest.raises(IRValueError, match="top_k of at least 0, got -1"):
        database.get_top_k(workload, -1)


def test_an_empty_trace_is_no_schedule(database):
    workload = database.commit_workload(matmul())
    empty = tir.Schedule(matmul()).trace
    database.commit_tuning_record(db.TuningRecord(empty, workload, [0.1], LLVM))
    assert database.get_top_k(workload, 1) == []


def test_records_of_a_workload_that_another_database_gave(database):
    foreign = db.Workload(matmul())
    database.commit_tuning_record(record(foreign))
    assert len(database.get_top_k(foreign, 1)) == 1
    assert len(database.get_top_k(database.commit_workload(matmul()), 1)) == 1


def test_queries_give_the_record_the_schedule_and_the_module(database):
    assert database.query(matmul(), LLVM) is None
    workload = database.commit_workload(matmul())
    database.commit_tuning_record(record(workload, [2.0], inner=2))
    database.commit_tuning_record(record(workload, [1.0], inner=8))
    expected = tiled(matmul(), 8).mod
    assert best(database, matmul()) == [1.0]
    assert structural_equal(database.query_schedule(matmul(), LLVM, "main").mod, expected)
    assert structural_equal(database.query(matmul(), LLVM, kind="ir_module"), expected)
    assert database.query(matmul(), LLVM, kind="record").run_secs == (1.0,)
    with pytest.raises(IRValueError, match="expected kind of .*got 'trace'"):
        database.query(matmul(), LLVM, kind="trace")


def test_a_schedule_that_does_not_fit_gives_way_to_the_next_best(database):
    workload = database.commit_workload(matmul())
    relu = tir.Schedule(matmul_relu())
    relu.parallel(relu.get_loops("relu")[0])
    database.commit_tuning_record(db.TuningRecord(relu.trace, workload, [0.5], LLVM))
    database.commit_tuning_record(record(workload, [1.0]))
    with pytest.warns(db.DatabaseWarning, match="does not fit its program any more"):
        sch = database.query_schedule(matmul(), LLVM, "main")
    assert structural_equal(sch.mod, tiled(matmul()).mod)


def test_the_best_of_each_workload_goes_to_another_database(database):
    for mod in (matmul(), matmul(8)):
        workload = database.commit_workload(mod)
        for secs in ([3.0], [1.0], None):
            database.commit_tuning_record(record(workload, secs))
    pruned = db.MemoryDatabase()
    database.dump_pruned(pruned)
    assert len(pruned) == 2
    assert best(pruned, matmul()) == best(pruned, matmul(8)) == [1.0]


def test_with_makes_a_database_current(database):
    assert db.Database.current() is None
    with database:
        with db.MemoryDatabase() as inner:
            assert db.Database.current() is inner
        assert db.Database.current() is database
    assert db.Database.current() is None


# ---- equality of modules


def with_constant(value):
    from weft import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    with builder.function("main", [x]):
        constant = relax.const(np.full(2, value, "float32"))
        builder.emit_func_output(builder.emit(relax.op.add(x, constant)))
    return builder.get()


@pytest.mark.parametrize(
    ("equality", "constants", "epilogue"),
    [("structural", 2, 2), ("ignore-ndarray", 1, 2), ("anchor-block", 1, 1)],
)
def test_when_two_modules_are_one_workload(equality, constants, epilogue):
    database = db.MemoryDatabase(equality)
    workloads = {database.commit_workload(with_constant(value)) for value in (1, 2)}
    assert len(workloads) == constants
    workloads = {database.commit_workload(mod) for mod in (matmul(), matmul_relu())}
    assert len(workloads) == epilogue


def test_another_equality_or_kind_is_refused():
    with pytest.raises(IRValueError, match="expected module_equality of 'structural'.*got 'loose'"):
        db.MemoryDatabase("loose")
    with pytest.raises(IRValueError, match="expected a kind of 'json', 'memory'.*got 'sqlite'"):
        db.Database.create("sqlite")


# ---- unions, functions, classes of users


def test_unions_ask_their_databases():
    slow, fast = db.MemoryDatabase(), db.MemoryDatabase()
    for database, secs in ((slow, [2.0]), (fast, [1.0])):
        database.commit_tuning_record(record(database.commit_workload(matmul()), secs))
    assert best(db.UnionDatabase(slow, fast), matmul()) == [1.0]
    assert best(db.create("ordered_union", slow, fast), matmul()) == [2.0]
    assert best(db.UnionDatabase(slow, fast), matmul(8)) is None
    both = db.UnionDatabase(slow, fast)
    assert structural_equal(both.query_ir_module(matmul(), LLVM, "main"), tiled(matmul()).mod)
    with pytest.raises(UnsupportedError, match="UnionDatabase has no such operation"):
        both.commit_workload(matmul())
    with pytest.raises(IRTypeError, match="expected databases, got str"):
        db.UnionDatabase("path")


def test_a_function_schedules_what_it_knows():
    names = []

    def schedule(sch):
        names.append(sch.mod.get_attr("task_name"))
        if len(sch.get_child_blocks(sch.get_block("root"))) != 1:
            return False
        sch.parallel(sch.get_loops("matmul")[0])
        return True

    database = db.create(schedule)
    assert database.query_schedule(matmul_relu(), LLVM, "task") is None
    found = database.query_tuning_record(matmul(), LLVM, "task")
    assert [inst.kind.name for inst in found.trace.insts][-1] == "Parallel"
    assert names == ["task", "task"]


@weft.meta_schedule.derived_object
class ListDatabase(db.PyDatabase):
    """What a user writes: a list of records, found by structure."""

    def __init__(self):
        super().__init__()
        self.known, self.records = [], []

    def has_workload(self, mod):
        return any(structural_equal(each.mod, mod) for each in self.known)

    def commit_workload(self, mod):
        if not self.has_workload(mod):
            self.known.append(db.Workload(mod))
        return next(each for each in self.known if structural_equal(each.mod, mod))

    def commit_tuning_record(self, record):
        self.records.append(record)

    def get_top_k(self, workload, top_k):
        mine = [each for each in self.records if each.workload is workload]
        return sorted(mine, key=lambda each: sum(each.run_secs))[:top_k]

    def get_all_tuning_records(self):
        return self.records


def test_a_class_of_the_user_answers_queries():
    database = ListDatabase()
    assert database.query(matmul(), LLVM) is None
    database.commit_tuning_record(record(database.commit_workload(matmul()), [1.0]))
    assert len(database) == 1
    assert best(database, matmul()) == [1.0]
    assert structural_equal(database.query(matmul(), LLVM).mod, tiled(matmul()).mod)


# ---- files


def files(folder):
    return [folder / f"database_{name}.json" for name in ("workload", "tuning_record")]


def filled(folder, count=3):
    database = db.JSONDatabase(work_dir=folder)
    workload = database.commit_workload(matmul())
    for index in range(count):
        database.commit_tuning_record(record(workload, [float(index + 1)]))
    return database


def times(database):
    return sorted([float(each.run_secs[0]) for each in database.get_all_tuning_records()])


def test_files_are_read_again(tmp_path):
    database = filled(tmp_path)
    database.commit_workload(matmul(8))
    again = db.JSONDatabase(database.path_workload, database.path_tuning_record)
    assert times(again) == [1.0, 2.0, 3.0]
    assert best(again, matmul()) == [1.0]
    assert again.has_workload(matmul(8))
    assert len(again.workloads) == 2
    workloads, records = files(tmp_path)
    assert len(workloads.read_text().splitlines()) == 2
    assert [json.loads(line)[0] for line in records.read_text().splitlines()] == [0, 0, 0]


def test_where_there_are_no_files(tmp_path):
    with pytest.raises(IRValueError, match="found none; allow_missing=True"):
        db.JSONDatabase(work_dir=tmp_path, allow_missing=False)
    with pytest.raises(IRValueError, match="expected path_workload, or work_dir"):
        db.JSONDatabase()
    assert len(db.JSONDatabase(work_dir=tmp_path / "new" / "folder")) == 0


@pytest.mark.parametrize("keep", [1, 10, 40])
def test_a_last_line_that_was_cut_off_is_left_out_and_written_over(tmp_path, keep):
    filled(tmp_path)
    path = files(tmp_path)[1]
    *whole, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole) + last[:keep])
    with pytest.warns(db.DatabaseWarning, match="its last line was not written whole"):
        database = db.JSONDatabase(work_dir=tmp_path)
    assert times(database) == [1.0, 2.0]
    database.commit_tuning_record(record(database.commit_workload(matmul()), [7.0]))
    assert times(db.JSONDatabase(work_dir=tmp_path)) == [1.0, 2.0, 7.0]


def test_a_workload_that_was_cut_off_is_committed_again(tmp_path):
    filled(tmp_path, 1).commit_workload(matmul(8))
    path = files(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.warns(db.DatabaseWarning, match="its last line was not written whole"):
        database = db.JSONDatabase(work_dir=tmp_path)
    assert not database.has_workload(matmul(8))
    database.commit_tuning_record(record(database.commit_workload(matmul(8)), [9.0]))
    assert best(db.JSONDatabase(work_dir=tmp_path), matmul(8)) == [9.0]


def test_a_last_line_that_lacks_only_its_end_is_kept(tmp_path):
    filled(tmp_path)
    path = files(tmp_path)[1]
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    database = db.JSONDatabase(work_dir=tmp_path)
    database.commit_tuning_record(record(database.commit_workload(matmul()), [7.0]))
    assert times(db.JSONDatabase(work_dir=tmp_path)) == [1.0, 2.0, 3.0, 7.0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("\x00\x00\x00", "it was not written whole"),
        ("[5, [[[], []], null, null, null]]", "there is no workload 5"),
        ("{}", r"expected \[workload, record\]"),
        ('[0, [[[["Teleport", [], [], []]], []], null, null, null]]', "no instruction 'Teleport'"),
    ],
)
def test_a_line_that_cannot_be_read_is_left_out(tmp_path, line, reason):
    filled(tmp_path)
    path = files(tmp_path)[1]
    first, _, third = path.read_text().splitlines()
    path.write_text("\n".join([first, line, third, ""]))
    with pytest.warns(db.DatabaseWarning, match=f"line 2 cannot be read and.*{reason}"):
        database = db.JSONDatabase(work_dir=tmp_path)
    assert times(database) == [1.0, 3.0]


def test_a_damaged_workload_keeps_its_number(tmp_path):
    database = filled(tmp_path, 1)
    database.commit_tuning_record(record(database.commit_workload(matmul(8)), [4.0]))
    path = files(tmp_path)[0]
    path.write_text("\n".join(["{", *path.read_text().splitlines()[1:], ""]))
    with pytest.warns(db.DatabaseWarning, match=r"database_(workload|tuning_record)\.json: line 1"):
        again = db.JSONDatabase(work_dir=tmp_path)
    assert best(again, matmul(8)) == [4.0]
    assert not again.has_workload(matmul())


def test_a_full_disk_loses_no_record_that_was_there(tmp_path):
    import resource

    filled(tmp_path)
    size = files(tmp_path)[1].stat().st_size

    def child():
        database = db.JSONDatabase(work_dir=tmp_path)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, limit))
        with pytest.raises(TVMError, match=r"cannot use the file .*tuning_record\.json"):
            database.commit_tuning_record(record(database.commit_workload(matmul()), [9.0]))
        assert times(database) == [1.0, 2.0, 3.0, 9.0]

    in_child(child)
    assert files(tmp_path)[1].stat().st_size == size
    assert times(db.JSONDatabase(work_dir=tmp_path)) == [1.0, 2.0, 3.0]


def in_child(function):
    process = multiprocessing.get_context("fork").Process(target=function)
    process.start()
    process.join(300)
    assert process.exitcode == 0


# ---- several processes


def test_what_two_databases_add_to_the_same_files_is_seen_by_both(tmp_path):
    one, other = db.JSONDatabase(work_dir=tmp_path), db.JSONDatabase(work_dir=tmp_path)
    one.commit_workload(matmul())
    other.commit_workload(matmul(8))  # would take the number 0, which is taken
    other.commit_tuning_record(record(other.commit_workload(matmul()), [1.0]))
    one.commit_tuning_record(record(one.commit_workload(matmul(8)), [2.0]))
    assert times(one) == [1.0, 2.0]
    assert times(other) == [1.0]
    other.refresh()
    assert times(other) == [1.0, 2.0]
    again = db.JSONDatabase(work_dir=tmp_path)
    assert best(again, matmul()) == [1.0]
    assert best(again, matmul(8)) == [2.0]


WRITER = """
    import sys
    from tests.lib.tuning_programs import matmul, tiled
    from weft.meta_schedule.database import JSONDatabase, TuningRecord

    folder, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    database = JSONDatabase(work_dir=folder)
    trace = tiled(matmul()).trace
    print("ready", flush=True)
    for index in range(first, first + count):
        workload = database.commit_workload(matmul(4 * (1 + index % 3)))
        database.commit_tuning_record(TuningRecord(trace, workload, [float(index)]))
        print(index, flush=True)
"""


def writer(folder, first, count):
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, root])}
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(folder), str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)


def test_two_processes_write_at_once(tmp_path):
    writers = [writer(tmp_path, first, 60) for first in (0, 100)]
    for process in writers:
        process.communicate(timeout=300)
    assert [process.returncode for process in writers] == [0, 0]
    database = db.JSONDatabase(work_dir=tmp_path)
    assert times(database) == [float(i) for i in [*range(60), *range(100, 160)]]
    assert len(database.workloads) == 3
    assert len(files(tmp_path)[0].read_text().splitlines()) == 3
    for each in database.get_all_tuning_records():
        rows = each.workload.mod["main"].buffer_map[each.workload.mod["main"].params[0]].shape[0]
        assert rows == 4 * (1 + int(each.run_secs[0]) % 3)


def test_kill_loses_at_most_the_record_that_was_being_written(tmp_path):
    said = []
    with writer(tmp_path, 0, 100_000) as process:
        for line in process.stdout:
            said.append(line.strip())
            if len(said) == 30:
                process.kill()
    database = db.JSONDatabase(work_dir=tmp_path)
    whole = [line for line in said[1:] if line]
    assert len(whole) - 1 <= len(database) <= len(whole) + 1
    assert times(database) == [float(index) for index in range(len(database))]
