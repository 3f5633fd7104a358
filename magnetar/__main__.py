"""`python -m magnetar`: the same as the command `magnetar`."""

from magnetar.cli import main

if __name__ == "__main__":
    main()
