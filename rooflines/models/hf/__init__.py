"""Models from files of the Hugging Face format: config.json, its quantization and params.json."""
