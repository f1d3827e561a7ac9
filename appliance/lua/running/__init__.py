"""Executes Lua files in worker processes.

Read in this order:

- `modes` decides whether an execution runs, waits, or is dropped. `executor` follows this decision, and records the
  result in the history. `unfinished_executions` records executions that a power cut interrupted.
- `context` collects the results (`command_results`), the warnings (`failed_calls`), and the `trace` of an execution.
  `packed_rows` limits the memory of these parts.
- `lua_run` is one run of a file in a worker. `ctx_calls` answers its calls of `ctx`, and `failures` describes its
  error. `run_limits` contains its limits, and `run_times` computes its deadlines.
- `worker_pool` gives each run to the current worker. `stuck_files` blocks files that could not be stopped.
- `worker` exchanges frames with one process, and checks its health. `worker_process` starts the process.
"""
