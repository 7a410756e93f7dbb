import pg from "pg"

/**
 * The line between the service and PostgreSQL: direct, or through a connection pooler such as PgBouncer. A pooler that
 * assigns server connections per transaction (`pool_mode = transaction`) keeps no session: the effects of `LISTEN`,
 * `SET`, session-level advisory locks and, with some poolers, prepared statements remain on a server connection that
 * another client gets next.
 */
export interface Line {
  /** Whether a connection keeps its session from one transaction to the next. */
  readonly keepsSessions: boolean
  /** Whether a transaction may have several statements; false with `pool_mode = statement`. */
  readonly keepsTransactions: boolean
  readonly prepares: boolean
  /** See `databaseIdentity`. */
  readonly database: string
  readonly hasTimeLimit: boolean
}

/** How often to query both connections: a pooler shared with others may repeat an assignment by chance. */
const rounds = 6

/** SQL: distinguishes databases, by the server's start time and the database's OID. */
export const databaseIdentity =
  "extract(epoch FROM pg_postmaster_start_time())::text || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())"

interface Seen {
  readonly pid: number
  readonly database: string
  readonly hasTimeLimit: boolean
}

const look = async (client: pg.ClientBase): Promise<Seen> => {
  const { rows } = await client.query<Seen>({
    text: `
      SELECT pg_backend_pid() AS pid, current_setting('statement_timeout') <> '0' AS "hasTimeLimit",
        ${databaseIdentity} AS database`,
    values: []
  })
  const [seen] = rows
  if (seen === undefined) throw new Error("The server answered without a row")
  return seen
}

/** The process id reported at connection start: PostgreSQL's own, or one that a pooler made up. */
const promisedPid = (client: pg.ClientBase): unknown => Reflect.get(client, "processID")

/** The server process behind a connection, queried by a prepared statement. */
const pidBy = async (client: pg.ClientBase, name: string): Promise<number | undefined> => {
  const { rows } = await client.query<{ pid: number }>({
    name,
    text: "SELECT pg_backend_pid() AS pid WHERE $1::int = 1",
    values: [1]
  })
  return rows[0]?.pid
}

const stateOf = (error: unknown): unknown => (error instanceof pg.DatabaseError ? error.code : undefined)

/** SQLSTATEs of a prepared statement that no longer exists, or exists already. */
const notPrepared: ReadonlySet<unknown> = new Set(["26000", "42P05"])

/**
 * Whether two simultaneously open connections each keep a server process of their own, and whether prepared statements
 * work. Each prepares a statement of the same name, which a shared server process refuses the second time, and one of a
 * name of its own, which another server process lacks.
 */
const meet = async (first: pg.ClientBase, second: pg.ClientBase): Promise<Pick<Line, "keepsSessions" | "prepares">> => {
  const ofFirst = new Set<number | undefined>()
  const ofSecond = new Set<number | undefined>()
  const seen = [
    { client: first, own: "connected_payments_probe_1", pids: ofFirst },
    { client: second, own: "connected_payments_probe_2", pids: ofSecond }
  ]
  try {
    for (let round = 0; round < rounds; round++) {
      for (const { client, own, pids } of seen) {
        pids.add(await pidBy(client, "connected_payments_probe"))
        pids.add(await pidBy(client, own))
      }
    }
  } catch (error) {
    if (notPrepared.has(stateOf(error))) return { keepsSessions: false, prepares: false }
    throw error
  }
  const keepsSessions = ofFirst.size === 1 && ofSecond.size === 1 && [...ofFirst].every((pid) => !ofSecond.has(pid))
  return { keepsSessions, prepares: true }
}

const takesTransactions = async (client: pg.ClientBase): Promise<boolean> => {
  try {
    await client.query("BEGIN")
    await client.query("COMMIT")
    return true
  } catch (error) {
    if (error instanceof pg.DatabaseError) return false
    throw error
  }
}

/**
 * Determines what a connection leads to. One query if that is PostgreSQL itself; some twenty, using a second
 * connection, if it is a pooler.
 *
 * @param connectAnother opens a further connection to the same address
 */
export const examine = async (first: pg.ClientBase, connectAnother: () => Promise<pg.Client>): Promise<Line> => {
  const { database, hasTimeLimit, pid } = await look(first)
  if (promisedPid(first) === pid) {
    return { keepsSessions: true, keepsTransactions: true, prepares: true, database, hasTimeLimit }
  }
  const second = await connectAnother()
  try {
    const met = await meet(first, second)
    return { ...met, keepsTransactions: met.keepsSessions || (await takesTransactions(second)), database, hasTimeLimit }
  } finally {
    await second.end().catch(() => {})
  }
}

export const refusesStartSettings = (error: unknown): boolean =>
  error instanceof Error && /unsupported startup parameter/i.test(error.message)

const needsSessions =
  "Wake-ups (LISTEN), migrations, the queue and the removal of old tables need sessions: set DATABASE_DIRECT_URL to the server's own address, or let the pooler keep sessions (pool_mode = session)."

const ownAddress = "It has to be the server's own address, or a pooler's that keeps sessions (pool_mode = session)."

/** Why the service can't work over this connection; undefined if it can. For the operator. */
export const refusalOf = (
  name: string,
  { keepsSessions, keepsTransactions }: Line,
  hasDirect: boolean
): string | undefined => {
  // Only DATABASE_URL has a second address for work that needs a session
  if (name !== "DATABASE_URL" && !keepsSessions) {
    return `${name} leads to a connection pooler that gives each transaction or statement another connection. ${ownAddress}`
  }
  if (!keepsTransactions) {
    return `${name} leads to a connection pooler that gives each statement another connection, so that there are no transactions: let it keep them (pool_mode = transaction).`
  }
  return keepsSessions || hasDirect
    ? undefined
    : `DATABASE_URL leads to a connection pooler that gives each transaction another connection. ${needsSessions}`
}

/** Like `refusalOf`, for a pooler that refuses a connection's start settings. */
export const startSettingsRefused = (name: string): string =>
  [
    `${name} leads to a connection pooler that refuses the time limits which a connection begins with.`,
    name === "DATABASE_URL"
      ? "Set DATABASE_DIRECT_URL to the server's own address;"
      : "It has to be the server's own address;",
    "or, if the pooler keeps sessions, let it ignore them (ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout)."
  ].join(" ")

/** Logged if connections through the pooler have no statement timeout. */
export const noTimeLimit =
  "Statements through the connection pooler have no time limit: set one for the role, by ALTER ROLE … SET statement_timeout = '8s' and ALTER ROLE … SET idle_in_transaction_session_timeout = '16s'"
