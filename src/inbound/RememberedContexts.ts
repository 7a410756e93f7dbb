import type { FoundContext, InboundContext } from "./ContextStatement.ts"

/** How long a context is remembered, in milliseconds: the overlap of two signing secrets ends by time, not a change. */
const rememberedFor = 30_000

/** The most endpoints that all contexts hold together; each can have filters of some kilobytes. */
const maxEndpoints = 10_000

interface Remembered {
  readonly context: InboundContext
  /** By `performance.now()`. */
  readonly lookedUpAt: number
}

/**
 * What was looked up about accounts, for the notifications that follow. Only what a change of the tenant's version
 * reveals: not what a session offers, and nothing about an account that awaits its first payment.
 */
export class RememberedContexts {
  readonly #known = new Map<string, Remembered>()
  #endpoints = 0

  /** The context of an account in an environment, if it was looked up recently. */
  get(key: string): InboundContext | undefined {
    const known = this.#known.get(key)
    if (known === undefined) return undefined
    if (performance.now() - known.lookedUpAt < rememberedFor) return known.context
    this.forget(key)
    return undefined
  }

  /** Remembers a context that was just looked up. */
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
