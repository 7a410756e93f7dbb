/**
 * Says what a local start is doing, on standard error, with the seconds since the process began: a terminal should not
 * stay empty while PostgreSQL starts. A production process logs.
 */
export const showStep = (step: string): void => {
  process.stderr.write(`${(performance.now() / 1000).toFixed(1).padStart(5)} s  ${step}\n`)
}
