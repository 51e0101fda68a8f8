"""Commands that set the bot up and keep it: a first configuration, what there is to select, the cache, the noise."""
