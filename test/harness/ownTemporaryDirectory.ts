import { inject } from "vitest"

/** Runs before each test file: what it creates in the system's temporary directory is removed with the run's. */
process.env["TMPDIR"] = inject("temporaryDirectory")
