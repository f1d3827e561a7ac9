"""Templates in announcements: Jinja's syntax, evaluated within limits, without access to Python objects.

Read `template` first: it renders the most frequent form, a path such as `{{ value_json.a }}`, and passes any other
template to `evaluator`. The evaluator calls `operators`, and `functions`, which uses `conversions` and `texts`.
`template_limits` contains the limits.
"""
