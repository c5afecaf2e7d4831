"""All file handling. Every other package may use it; it uses only `errors` and NumPy.

| module | what it offers |
| --- | --- |
| `atomic` | files and folders that appear complete or not at all |
| `sync` | files, folders and renames that are on disk when a call returns |
| `lock` | locks that end with their process |
| `names` | names that stay within their folder |
| `checksum` | checksums of bytes and of the sections of a file |
| `json_document` | JSON files with a format number |
| `saved_checks` | checks of numbers that come from a saved index |
| `arrays`, `array_folder` | arrays by name, saved to a folder and mapped into memory |
| `os_errors` | what the operating system refuses, as an error of tamis |
"""
