"""The workbook of results, for a spreadsheet."""
