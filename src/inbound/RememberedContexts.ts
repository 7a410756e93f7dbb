import type { FoundContext, InboundContext } from "./ContextStatement.ts"

/**
 * Cache lifetime of a context, in milliseconds; bounded since the overlap of two signing secrets ends with time, not
 * with a change of the tenant's version.
 */
const rememberedFor = 30_000

/** Maximum number of endpoints in all cached contexts together; each can have filters of some kilobytes. */
const maxEndpoints = 10_000

interface Remembered {
  readonly context: InboundContext
  /** By `performance.now()`. */
  readonly lookedUpAt: number
}

/**
 * A cache of accounts' contexts. Holds only facts whose change changes the tenant's version: not what a session offers,
 * and no account that awaits its first payment.
 */
export class RememberedContexts {
  readonly #known = new Map<string, Remembered>()
  #endpoints = 0

  /** The cached context of an account in an environment, unless expired. */
  get(key: string): InboundContext | undefined {
    const known = this.#known.get(key)
    if (known === undefined) return undefined
    if (performance.now() - known.lookedUpAt < rememberedFor) return known.context
    this.forget(key)
    return undefined
  }

  /** Caches a context that was just looked up. */
  put(key: string, context: FoundContext): void {
    if (!context.connected || context.awaitsFirstPayment || context.endpoints.length > maxEndpoints) return
    this.forget(key)
    this.#endpoints += context.endpoints.length
    this.#known.set(key, {
      context: { ...context, offered: null },
      lookedUpAt: performance.now()
    })
    for (const oldest of this.#known.keys()) {
      if (this.#endpoints + this.#known.size <= maxEndpoints) break
      this.forget(oldest)
    }
  }

  forget(key: string): void {
    this.#endpoints -= this.#known.get(key)?.context.endpoints.length ?? 0
    this.#known.delete(key)
  }
}
