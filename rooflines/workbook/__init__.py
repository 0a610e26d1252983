"""Results as a workbook, for a spreadsheet."""
