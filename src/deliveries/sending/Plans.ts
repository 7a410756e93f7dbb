import type { SqlClient, Statement } from "@effect/sql"

const millisPerDay = 24 * 3600 * 1000

/**
 * Days repeat after this many: by then, every plan has been renewed anyway, since adding a day's tables invalidates all
 * plans that use them.
 */
const daysApart = 8

/**
 * Renews the queue's statement plans. PostgreSQL keeps the plan of a prepared statement, and a plan made while a table
 * was empty would read all of it every time. So each statement's text states how far the day's table of deliveries and
 * the queue have grown, and it is planned anew when that changes.
 */
export class Plans {
  readonly #sql: SqlClient.SqlClient
  #mark = "0"

  constructor(sql: SqlClient.SqlClient) {
    this.#sql = sql
  }

  /** A comment to include in each statement. */
  get mark(): Statement.Fragment {
    return this.#sql.literal(`/* ${this.#mark} */`)
  }

  /** Records the tables' sizes in pages at a claim. The mark counts how many times each has grown fourfold. */
  note({ claimedAt, pages, queuePages }: Sizes): void {
    const day = Math.floor(claimedAt / millisPerDay) % daysApart
    this.#mark = `${day}.${fourfolds(pages)}.${fourfolds(queuePages)}`
  }
}

interface Sizes {
  /** In Unix milliseconds. */
  readonly claimedAt: number
  /** Of the day's table of deliveries. */
  readonly pages: number
  readonly queuePages: number
}

const fourfolds = (pages: number): number => Math.floor(Math.log2(pages + 1) / 2)
