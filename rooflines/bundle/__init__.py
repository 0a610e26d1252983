"""The bundle: a folder with all charts, thresholds and chips, opened by double click or published as it is."""
