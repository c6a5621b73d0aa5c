"""Threads that can be interrupted safely, threads that wait for work, and locks of files.

interrupts.py  `stop_thread`, and threads that can be interrupted safely
file_lock.py   `FileLock`: keeps two users of a file or folder apart, also in two processes
waiting.py     `WaitingThreads`: threads that stay for the next run
"""
