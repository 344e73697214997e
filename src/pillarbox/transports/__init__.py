"""The transports: one module or package each, with its own address type.

A result of None means durably accepted. Every failure is a SendError: no driver exception leaves this package.
"""
