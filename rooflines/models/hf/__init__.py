"""Models from Hugging Face files: config.json, its quantization, params.json."""
