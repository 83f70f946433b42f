"""The options of run.sh."""

import argparse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run.sh", description="pgwake and other queues drain no-op jobs, in turns.")
    parser.add_argument("--jobs", type=int, default=100_000, metavar="N", help="jobs in a drain [100000]")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="everybody drains once a round [3]")
    parser.add_argument("--only", action="append", default=[], metavar="PEER", help="only this one; repeatable")
    parser.add_argument(
        "--try",
        dest="tries",
        action="append",
        default=[],
        metavar="PEER:KEY=VALUE,…",
        help="only this one, with other settings; repeatable, also for the same peer",
    )
    parser.add_argument("--fsync", choices=["on", "off"], default="on", help="[on, as initdb leaves it]")
    parser.add_argument("--synchronous-commit", choices=["on", "off"], default="on", help="[on, as initdb leaves it]")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a server setting; repeatable")
    parser.add_argument("--markdown", metavar="FILE", help="write the table for a results page; - is standard output")
    parser.add_argument("--pgwake", metavar="FILE", help="this binary, instead of building one")
    parser.add_argument("--verbose", action="store_true", help="show what waits at the gate")
    args = parser.parse_args()
    if args.jobs < 1 or args.rounds < 1:
        parser.error("--jobs and --rounds start at 1")
    if any("=" not in setting for setting in args.set):
        parser.error("--set takes NAME=VALUE")
    return args


if __name__ == "__main__":
    arguments()
