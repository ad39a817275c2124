"""The `kbx` command: each subcommand is a module of `runner.commands`, imported when called."""

import importlib

import click

COMMANDS = {
    "evaluate": "judge files, folders, JSONL or zip here and now: no site, no database",
    "compile": "compile candidates for several GPU architectures, without a GPU",
    "tasks": "list the tasks of the suite",
    "task": "show the contract of one task",
    "prove": "prove the suite: plain solutions pass, every wrong answer is rejected",
    "prompts": "write a generation prompt for every task",
    "demo": "set up a site with samples, judge them, and serve it",
    "login": "keep an API key of a site",
    "submit": "send a method's predictions to a site",
    "status": "show how far a submission is",
    "worker": "judge the jobs of a site on this host's boards",
}


class LazyGroup(click.Group):
    """A group whose commands are the modules `runner.commands.<name>`, each with a `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"runner.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them: the judge's modules take seconds to load."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=LazyGroup)
@click.version_option(package_name="kernelbench-x", prog_name="kbx")
def main() -> None:
    """KernelBench-X: judge GPU kernels that language models wrote."""
