"""What must hold, as JSON Schema."""
