"""Templates in announcements: Jinja's syntax, evaluated within limits, without access to Python objects.

Read `template` (a parsed template), `template_limits`, and `evaluator` (evaluates the parts of a template). The
evaluator calls `operators`, and `functions`, which uses `conversions` and `texts`.
"""
