"""TensorBoard's own reader accepts our event files, sees every number, and forgets what a resumed
run did again.

    peer_tensorboard.py BUILD        needs: tensorboard
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing import event_accumulator, event_file_loader


def main(build):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f"{build}/tests/test_watch", "--sample", folder], check=True)
        files = sorted(pathlib.Path(folder).glob("events.out.tfevents.*"))
        assert len(files) == 2, files
        for file in files:  # the loader checks the checksums of all records
            events = list(event_file_loader.EventFileLoader(str(file)).Load())
            assert events[0].file_version == "brain.Event:2", events[0]
            assert len(events) > 2, events
        read = event_accumulator.EventAccumulator(folder)
        read.Reload()
        rows = [json.loads(line) for line in (pathlib.Path(folder) / "run.jsonl").read_text().splitlines()]
        names = {name for row in rows if "step" in row for name in row} - {"step", "seconds", "note"}
        assert set(read.Tags()["scalars"]) == names, read.Tags()
        for name in names:
            ours = [(row["step"], row[name]) for row in rows if name in row]
            theirs = [(e.step, e.value) for e in read.Scalars(name)]
            assert [s for s, _ in theirs] == [s for s, _ in ours], (name, theirs, ours)
            assert all(abs(a[1] - b[1]) <= 2**-24 * abs(b[1]) for a, b in zip(theirs, ours)), (name, theirs, ours)
        print(f"tensorboard reads {len(names)} names, {sum(len(read.Scalars(n)) for n in names)} numbers, as they were")


main(sys.argv[1])
