"""Real servers, private to one test run: free loopback ports, folders of their own, stopped by pid.

Nothing here ever speaks to a server it did not start, and whatever it started is proven gone at the end
of the run (`leaks`).
"""
