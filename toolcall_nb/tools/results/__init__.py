"""Results of tools: as JSON for programs, as a MIME bundle for people, as text for the model; and failures.

result.py        `output_and_display` of what a tool returned; `Result`, by which a tool says both itself
json_values.py   `to_json_value`: any value as bounded JSON; `to_model_text`: as bounded text for the model
value_tables.py  `value_table`: frames, series and arrays, read by rows
table_csv.py     `table_csv`: a table as bounded CSV that counts what it leaves out
failures.py      `ToolFailed`: failures that a tool reports in its own words
tracebacks.py    tracebacks of a tool's own frames, as text and for the debugger
"""
