import type { SqlClient, Statement } from "@effect/sql"

/**
 * The age of the queue's statement plans. PostgreSQL keeps the plan of a prepared statement, and a plan made while the
 * table was empty would read all of it every time: so each statement says how far the table has grown, and is planned
 * anew when that changes.
 */
export class Plans {
  readonly #sql: SqlClient.SqlClient
  /** How many times the deliveries table has grown fourfold, as the last claim saw it. */
  #growth = 0

  constructor(sql: SqlClient.SqlClient) {
    this.#sql = sql
  }

  /** Goes into each statement. */
  get mark(): Statement.Fragment {
    return this.#sql.literal(`/* ${this.#growth} */`)
  }

  /** Notes how many pages the table has. */
  note(pages: number): void {
    this.#growth = Math.floor(Math.log2(pages + 1) / 2)
  }
}
