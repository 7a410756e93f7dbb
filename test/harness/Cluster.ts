import { execFile } from "node:child_process"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"

const run = promisify(execFile)

/** The system's locale that databases of the tests have, e.g. `en_US.UTF-8`; without it PostgreSQL's own. */
export const locale = process.env["TEST_LOCALE"]

export const emptyTemplate = locale === undefined ? "template0" : `template0 LOCALE_PROVIDER libc LOCALE '${locale}'`

/**
 * Copies the cluster of an embedded PostgreSQL that is stopped, and its password, into another directory. The owner
 * stays; the port does not come with it: each copy takes one of its own.
 */
export const copyCluster = (from: string, to: string) =>
  Effect.tryPromise(async () => {
    await mkdir(to, { recursive: true, mode: 0o711 })
    await run("cp", ["-a", join(from, "cluster"), join(from, "password"), to])
  })
