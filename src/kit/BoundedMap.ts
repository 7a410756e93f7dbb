/**
 * A map with a maximum size: a new entry replaces the oldest. For what can be looked up again, so that filling it only
 * costs further look-ups.
 */
export class BoundedMap<A> {
  private readonly entries = new Map<string, A>()
  private readonly capacity: number

  constructor(capacity: number) {
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

  delete(key: string): void {
    this.entries.delete(key)
  }
}
