"""The parameters of tools: their JSON Schema, and the check and conversion of a call's arguments.

signature.py       `read_signature`: a function's parameters and schema, by one of the two libraries below
msgspec_types.py   types as msgspec reads them; pydantic_types.py: as pydantic reads them
annotations.py     the limits and descriptions that annotations declare
parameters.py      `Parameter`, the errors, and `read_json_texts`: arguments that a model wrote as JSON in a text
json_schema.py     `SchemaArguments`: arguments checked by a JSON Schema that was given as data
bounded_values.py  bounded texts, sizes and pattern searches for that check
"""
