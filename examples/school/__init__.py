"""A school: attendance and grades tell what happened, notifications listen; none of them calls another.

attendance, grades ──record──▶ outbox ──relay──▶ notifications
"""
