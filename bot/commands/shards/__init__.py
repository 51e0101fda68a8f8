"""Commands that split one side over several runners and put it together again."""
