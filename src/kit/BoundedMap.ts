/**
 * A map of at most so many entries: the oldest makes room for a new one. For what can be asked for again, so that a caller
 * who fills it gains nothing but the question.
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
