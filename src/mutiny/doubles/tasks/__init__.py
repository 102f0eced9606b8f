"""Stand-ins for the agents and gates of a batch: they follow a script, and write down what they did."""
