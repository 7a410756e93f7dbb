/**
 * Runs before each test file: a worker whose run was killed ends, too. Otherwise the services in it would look for their
 * database forever. Vitest replaces `process.exit`, so it ends by a signal.
 */
const endWithTheRun = (): void => {
  process.kill(process.pid, "SIGKILL")
}

if (!process.listeners("disconnect").some(({ name }) => name === endWithTheRun.name)) {
  process.on("disconnect", endWithTheRun)
}
