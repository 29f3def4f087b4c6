"""Commands and the boundary at which errors become one line and an exit code."""

from __future__ import annotations

import logging
import sys

import typer
from typer.exceptions import Abort, TyperException

from agent.cli import analyzing, comparing, data, importing, inspecting, measuring, replaying, reporting, running, sites
from agent.cli.output import EXIT_BAD_INPUT, EXIT_INTERRUPTED, print_problem
from envs.errors import EnvError
from models.base import ModelError

app = typer.Typer(
    name="mira",
    help="An agent for the web that plans, judges itself and learns from its traces.",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("run")(running.run)
app.command("resume")(running.resume)
app.command("demo")(running.demo)
app.command("replay")(replaying.replay)
app.command("show")(inspecting.show)
app.command("report")(reporting.report)
app.command("analyze")(analyzing.analyze)
app.command("quality")(measuring.quality)
app.command("import")(importing.import_traces)
app.command("compare")(comparing.compare)
app.command("tasks")(inspecting.tasks)
app.command("models")(inspecting.models)
app.command("doctor")(inspecting.doctor)
app.add_typer(sites.app, name="sites")
app.add_typer(data.app, name="data")


@app.callback(invoke_without_command=True)
def menu(context: typer.Context) -> None:
    """Shows the commands when none is given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Runs the command line. Exit codes: 0 done, 1 the open task failed, 2 wrong input, 130 interrupted."""
    # What goes wrong is in the trace, masked; a library's log line on the terminal would be neither.
    logging.basicConfig(handlers=[logging.NullHandler()])
    try:
        code = app(standalone_mode=False)
    except TyperException as error:
        print_problem(f"{error.format_message()} (see mira --help)")
        sys.exit(EXIT_BAD_INPUT)
    except (EnvError, ModelError) as error:
        print_problem(str(error))
        sys.exit(EXIT_BAD_INPUT)
    except (KeyboardInterrupt, Abort):
        print_problem("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)
