"""`python -m bot` is `code-size-bot`."""

from bot.cli import main

raise SystemExit(main())
