/**
 * Loaded into a process before the service: each SIGUSR2 makes its wall clock jump to the next of the offsets (seconds,
 * comma-separated) in `FAULTS_CLOCK_OFFSETS`. Timers and the monotonic clock go on, as they do where an operator or a
 * time server sets a machine's clock.
 */
const offsets = (process.env["FAULTS_CLOCK_OFFSETS"] ?? "").split(",").map((seconds) => Number(seconds) * 1000)
let jumps = 0

const shift = (): number => (jumps === 0 ? 0 : (offsets[jumps - 1] ?? 0))

const realNow = Date.now.bind(Date)

class ShiftedDate extends Date {
  constructor(...args: ReadonlyArray<unknown>) {
    if (args.length === 0) super(realNow() + shift())
    // The arguments are whatever the caller of the real constructor gave: its overloads can't be told apart here
    else super(...(args as [number]))
  }
  static override now(): number {
    return realNow() + shift()
  }
}

Object.defineProperty(globalThis, "Date", { value: ShiftedDate, writable: true, configurable: true })

process.on("SIGUSR2", () => {
  jumps += 1
})
