/** On standard error: a terminal should not stay empty while PostgreSQL starts. */
export const showStep = (step: string): void => {
  process.stderr.write(`${(performance.now() / 1000).toFixed(1).padStart(5)} s  ${step}\n`)
}
