"""Runs that are over: reads them from files and other programs' exports, searches, tabulates and compares them.

formats/           one module for each format of others; `toolcall_nb.traces.formats.TRACE_FORMATS` lists them
"""
