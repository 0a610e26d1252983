"""The model: costs of an operation, its sharding, rates of resources. No file, frame or config."""
