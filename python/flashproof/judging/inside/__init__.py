"""What runs in a candidate's process: nothing here knows an oracle, and nothing that it says is believed but bytes."""
