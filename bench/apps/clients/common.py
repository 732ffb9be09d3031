"""What the clients in Python share: a check is a function that does one thing and raises if that goes wrong."""
import json
import os
import sys
import time
import traceback

SCHEME = os.environ.get("SCHEME", "http")
CA = os.environ.get("CA")


def main(checks):
    """Repeats the check that is named until its seconds are over; the last line is the result. What it returns is a note."""
    name, address, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    check = checks[name](address, seconds)
    result = {"ok": 0, "failed": 0, "why": "", "note": ""}
    end = time.monotonic() + seconds
    while True:
        try:
            next(check)
            result["ok"] += 1
        except StopIteration as over:
            result["ok"] += 1 if result["ok"] == 0 and result["failed"] == 0 else 0
            result["note"] = over.value or ""
            break
        except Exception as error:
            traceback.print_exc()
            result["failed"] += 1
            result["why"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            break
        if time.monotonic() >= end:
            result["note"] = f"{result['ok']} times"
            break
    sys.stderr.flush()
    print(json.dumps(result), flush=True)
    os._exit(0)  # not waiting for threads of libraries


def same(got, wanted, what="answer"):
    if got != wanted:
        raise AssertionError(f"{what} is {str(got)[:120]!r}, not {str(wanted)[:120]!r}")
