"""longboat bridge and longboat spawn: agents that summon agents by mentioning them."""
