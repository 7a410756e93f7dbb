/**
 * The memory for bodies that a router reads before it knows their cell: in all, and of one client's network, so that
 * those who send slowly keep out themselves alone.
 */

const megabyte = 1024 * 1024

/** What is held at once at most. */
export const bodyBudget = { bytes: 256 * megabyte, bytesOfNetwork: 64 * megabyte }

export class BodyBudget {
  readonly #ofNetworks = new Map<string, number>()
  #held = 0

  /** Takes room for a body; the function that it returns gives it back. Undefined if there is none. */
  take(network: string, bytes: number): (() => void) | undefined {
    const own = (this.#ofNetworks.get(network) ?? 0) + bytes
    if (this.#held + bytes > bodyBudget.bytes || own > bodyBudget.bytesOfNetwork) return undefined
    this.#held += bytes
    this.#ofNetworks.set(network, own)
    let given = false
    return () => {
      if (given) return
      given = true
      this.#held -= bytes
      const left = (this.#ofNetworks.get(network) ?? bytes) - bytes
      if (left > 0) this.#ofNetworks.set(network, left)
      else this.#ofNetworks.delete(network)
    }
  }
}
