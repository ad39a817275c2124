"""`python -m runner` is `kbx`."""

from runner.cli import main

if __name__ == "__main__":
    main()
