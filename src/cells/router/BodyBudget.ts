/**
 * The memory for bodies that a router reads before it knows their cell: in all, and of one client's network. It counts
 * what has arrived, not what was announced, so that those who send slowly keep nobody out.
 */

const megabyte = 1024 * 1024

/** The most memory that bodies may take at once: in all, and for one client network. */
export const bodyBudget = { bytes: 256 * megabyte, bytesOfNetwork: 64 * megabyte }

/** What one body holds. */
export interface HeldBody {
  /** Counts bytes that have arrived; false if there is no room for them. */
  readonly add: (bytes: number) => boolean
  /** Gives back what the body holds. */
  readonly giveBack: () => void
}

export class BodyBudget {
  readonly #ofNetworks = new Map<string, number>()
  #held = 0

  /** Begins a body of a client's network. */
  begin(network: string): HeldBody {
    let own = 0
    return {
      add: (bytes) => {
        const ofNetwork = (this.#ofNetworks.get(network) ?? 0) + bytes
        if (this.#held + bytes > bodyBudget.bytes || ofNetwork > bodyBudget.bytesOfNetwork) return false
        own += bytes
        this.#held += bytes
        this.#ofNetworks.set(network, ofNetwork)
        return true
      },
      giveBack: () => {
        if (own === 0) return
        const left = (this.#ofNetworks.get(network) ?? own) - own
        this.#held -= own
        own = 0
        if (left > 0) this.#ofNetworks.set(network, left)
        else this.#ofNetworks.delete(network)
      }
    }
  }
}
