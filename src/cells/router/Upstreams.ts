import { performance } from "node:perf_hooks"
import { Duration, Effect, Schedule, type Scope } from "effect"
import { request as get, Pool } from "undici"
import { observeMetrics } from "../../telemetry/Metrics.ts"
import type { Cell } from "../Directory.ts"

/** The connections of a router to its cells. */

/** How long connecting to a cell may take, in milliseconds. */
const connectMillis = 2000

/** How long a cell may take to begin an answer, and how long an answer may pause: longer than a call to the provider. */
const answerMillis = 150_000

/** A connection is reused within this time: a cell closes idle ones after 5 seconds by default. */
const keepAliveMillis = 3000

/** After a connection failed, how long requests are refused without trying, in milliseconds. */
const awayMillis = 500

/** How often a cell is asked whether it lives, how long it may take, and how many failures in turn say that it does not. */
const probing = { interval: Duration.seconds(2), millis: 5000, failures: 2 }

/** How a router treats its cells. */
export interface UpstreamOptions {
  /** Requests under way to one cell, so that one that hangs does not use up what all share. */
  readonly mostAtOnce: number
  /** Called if a cell no longer lives, and if it does again. */
  readonly onChange: (cell: Cell, lives: boolean) => void
}

/** A request under way to a cell. */
export interface UnderWay {
  readonly answered: () => void
  readonly ended: () => void
}

/** A cell, as a router reaches it. */
export interface Upstream {
  readonly cell: Cell
  readonly pool: Pool
  /** Whether a network's requests should be tried: not while it is away, nor if too many are under way. */
  readonly state: (network: string) => "open" | "away" | "busy"
  /**
   * Counts a request.
   *
   * @param abort called if the cell no longer lives, unless its answer has begun
   */
  readonly begin: (network: string, abort: () => void) => UnderWay
  /** The cell could not be reached just now. */
  readonly noteAway: () => void
}

class ConnectedCell implements Upstream {
  readonly cell: Cell
  readonly pool: Pool
  readonly #mostAtOnce: number
  readonly #onChange: UpstreamOptions["onChange"]
  readonly #ofNetworks = new Map<string, number>()
  /** Ends those that wait for an answer. */
  readonly #waiting = new Set<() => void>()
  #underWay = 0
  #awayUntil = Number.NEGATIVE_INFINITY
  #failures = 0

  constructor(cell: Cell, { mostAtOnce, onChange }: UpstreamOptions) {
    this.cell = cell
    this.#mostAtOnce = mostAtOnce
    this.#onChange = onChange
    this.pool = new Pool(new URL(cell.url).origin, {
      connections: mostAtOnce,
      pipelining: 1,
      allowH2: false,
      connect: { timeout: connectMillis },
      headersTimeout: answerMillis,
      bodyTimeout: answerMillis,
      keepAliveTimeout: keepAliveMillis,
      keepAliveMaxTimeout: keepAliveMillis
    })
  }

  /** Whether it answers probes. */
  get lives(): boolean {
    return this.#failures < probing.failures
  }

  get underWay(): number {
    return this.#underWay
  }

  readonly state = (network: string): "open" | "away" | "busy" => {
    if (!this.lives || performance.now() < this.#awayUntil) return "away"
    // A client that sends slowly, or does not read, uses up half of what the cell has at most
    const share = Math.ceil(this.#mostAtOnce / 2)
    return this.#underWay < this.#mostAtOnce && (this.#ofNetworks.get(network) ?? 0) < share ? "open" : "busy"
  }

  readonly begin = (network: string, abort: () => void): UnderWay => {
    let isOver = false
    this.#underWay += 1
    this.#ofNetworks.set(network, (this.#ofNetworks.get(network) ?? 0) + 1)
    this.#waiting.add(abort)
    return {
      answered: () => this.#waiting.delete(abort),
      ended: () => {
        if (isOver) return
        isOver = true
        this.#waiting.delete(abort)
        this.#underWay -= 1
        const left = (this.#ofNetworks.get(network) ?? 1) - 1
        if (left > 0) this.#ofNetworks.set(network, left)
        else this.#ofNetworks.delete(network)
      }
    }
  }

  readonly noteAway = (): void => {
    this.#awayUntil = performance.now() + awayMillis
  }

  /** Asks the cell whether it lives, on a connection of its own: a full pool must not look like a cell that is away. */
  readonly probe = async (): Promise<void> => {
    try {
      const { body, statusCode } = await get(new URL("/health/live", this.cell.url), {
        headersTimeout: probing.millis,
        bodyTimeout: probing.millis,
        // Connecting included
        signal: AbortSignal.timeout(probing.millis),
        reset: true
      })
      await body.dump()
      this.#count(statusCode === 200)
    } catch {
      // Why it does not answer makes no difference: it is away until it does
      this.#count(false)
    }
  }

  #count(lives: boolean): void {
    const before = this.#failures
    this.#failures = lives ? 0 : before + 1
    if (!lives && this.#failures === probing.failures) {
      this.#onChange(this.cell, false)
      // What stands still may do so for hours; who waits is told, and may ask again
      for (const abort of [...this.#waiting]) abort()
    }
    if (lives && before >= probing.failures) this.#onChange(this.cell, true)
  }
}

/** The cells of a router. */
export interface Upstreams {
  /** A cell by name, as the directory last listed it; undefined if it lists none of this name. */
  readonly get: (cells: ReadonlyArray<Cell>, name: string) => Upstream | undefined
}

/**
 * The connections to cells, until the scope closes.
 *
 * @param cells the cells that the directory lists
 */
export const makeUpstreams = (
  cells: () => ReadonlyArray<Cell>,
  options: UpstreamOptions
): Effect.Effect<Upstreams, never, Scope.Scope> =>
  Effect.gen(function* () {
    const connected = new Map<string, ConnectedCell>()
    yield* Effect.addFinalizer(() =>
      Effect.promise(() => Promise.all([...connected.values()].map(({ pool }) => pool.destroy())))
    )
    const connect = (cell: Cell): ConnectedCell => {
      const made = new ConnectedCell(cell, options)
      connected.set(cell.name, made)
      return made
    }
    const upstreamOf = (cell: Cell): ConnectedCell => {
      const known = connected.get(cell.name)
      if (known === undefined) return connect(cell)
      if (known.cell.url === cell.url) return known
      // What is under way there is still answered
      void known.pool.close().catch(() => {})
      return connect(cell)
    }
    yield* observeMetrics((metrics) =>
      Effect.sync(() => {
        const listed = new Set(cells().map(({ name }) => name))
        for (const [name, { lives, underWay }] of connected) {
          // One that is not listed any more is left out
          metrics.set("connected_payments.router.cell.up", listed.has(name) ? Number(lives) : Number.NaN, [name])
          metrics.set("connected_payments.router.request.active", listed.has(name) ? underWay : Number.NaN, [name])
        }
      })
    )
    yield* Effect.promise(() => Promise.all(cells().map((cell) => upstreamOf(cell).probe()))).pipe(
      Effect.repeat(Schedule.spaced(probing.interval)),
      Effect.withTracerEnabled(false),
      Effect.forkScoped
    )
    return {
      get: (listed, name) => {
        const cell = listed.find((one) => one.name === name)
        return cell === undefined ? undefined : upstreamOf(cell)
      }
    }
  })
