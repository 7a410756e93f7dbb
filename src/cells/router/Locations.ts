import { performance } from "node:perf_hooks"
import { BoundedMap } from "../../kit/BoundedMap.ts"

/** Which cell had a public page or image, so that the next request for it asks that one first. */

const keptMillis = 10 * 60_000
const maxKept = 50_000

export class Locations {
  readonly #kept = new BoundedMap<{ readonly cell: string; readonly at: number }>(maxKept)

  get(path: string): string | undefined {
    const kept = this.#kept.get(path)
    return kept !== undefined && performance.now() - kept.at < keptMillis ? kept.cell : undefined
  }

  set(path: string, cell: string): void {
    if (this.get(path) !== cell) this.#kept.set(path, { cell, at: performance.now() })
  }

  delete(path: string): void {
    this.#kept.delete(path)
  }
}
