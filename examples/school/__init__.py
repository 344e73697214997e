"""A school: attendance and grades record events, notifications handle them; none of them calls another.

attendance, grades ──record──▶ outbox ──relay──▶ notifications
"""
