"""`python -m bot` is `code-size-bot`."""

from bot.cli.main import main

raise SystemExit(main())
