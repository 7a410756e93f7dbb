/**
 * A map with a maximum size: a new entry replaces the oldest. Use it for values that can be looked up again, so that a
 * full map only costs further look-ups.
 */
export class BoundedMap<A> {
  private readonly entries = new Map<string, A>()
  private readonly capacity: number

  constructor(capacity = 10_000) {
    this.capacity = capacity
  }

  get size(): number {
    return this.entries.size
  }

  get(key: string): A | undefined {
    return this.entries.get(key)
  }

  set(key: string, value: A): void {
    if (!this.entries.has(key) && this.entries.size >= this.capacity) {
      const [oldest] = this.entries.keys()
      if (oldest !== undefined) {
        this.entries.delete(oldest)
      }
    }
    this.entries.set(key, value)
  }

  /** The value of a key, which is made if it is missing. */
  getOrSet(key: string, make: () => A): A {
    const known = this.entries.get(key)
    if (known !== undefined) return known
    const made = make()
    this.set(key, made)
    return made
  }

  delete(key: string): void {
    this.entries.delete(key)
  }
}
