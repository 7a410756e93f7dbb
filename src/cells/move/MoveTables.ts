/**
 * Every table of the schema, with what a move does about it. A test compares this with the catalog, so that a new table
 * can't be forgotten.
 */

/**
 * What happens to a write while its organization is fenced in: it is refused with 503; left out, for statements that
 * concern other organizations too; refused, after it was put under the mover's lease for a while (`park`); or left out if it
 * changes these columns alone, and refused otherwise.
 */
export type Fencing = "refuse" | "skip" | "park" | { readonly skipUsesOf: ReadonlyArray<string> }

/** The writes of a table that are fenced; the others are not. */
interface Fence {
  readonly insert?: "refuse" | "skip" | "park"
  readonly update?: Fencing
  readonly delete?: "refuse" | "skip"
}

/** A table of organizations' rows. */
export interface MovedTable {
  readonly name: string
  /** The column by which its rows belong to an organization, or to one of its people. */
  readonly by: "organization_id" | "id" | "person_id" | "email"
  /** Whether it has rows of organizations or of people. */
  readonly of: "organization" | "person"
  /**
   * When it is copied: `ahead`, by replication, while the organization works; or `last`, behind the fence, since it is
   * small, or what it says would have the target work for the organization.
   */
  readonly copied: "ahead" | "last"
  readonly fence: Fence
  /** Columns that the target has its own values for. */
  readonly ownColumns?: ReadonlyArray<string>
  /** The time of its rows, by which they are compared hour by hour while the organization works; without, behind the fence. */
  readonly timed?: Timed
}

/** Where the time of a table's rows is. */
export interface Timed {
  /** A time, or an id that begins with one. */
  readonly column: "id" | "received_at" | "created_at"
  readonly type: "uuid" | "text" | "timestamptz"
  /** What an index has before that column, besides the organization; null without such an index. */
  readonly after: "environment" | "nothing" | null
}

/** The fence of tables whose rows are written once and removed by age, in batches that hold other organizations' rows too. */
const history: Fence = { insert: "refuse", update: "refuse", delete: "skip" }
const settings: Fence = { insert: "refuse", update: "refuse", delete: "refuse" }
/** The statistics' counts go on at both ends: they change nothing else. */
const counts: Fence = {}

const organizations = (
  copied: MovedTable["copied"],
  fence: Fence,
  names: ReadonlyArray<string>
): ReadonlyArray<MovedTable> =>
  names.map((name) => ({ name, by: "organization_id", of: "organization", copied, fence }))

const timed = (time: Timed, names: ReadonlyArray<string>): ReadonlyArray<MovedTable> =>
  organizations("ahead", history, names).map((table) => ({ ...table, timed: time }))

/** Tables of organizations and their people, in an order in which rows can be inserted. */
export const movedTables: ReadonlyArray<MovedTable> = [
  { name: "organizations", by: "id", of: "organization", copied: "last", fence: settings },
  ...organizations("last", settings, ["workspaces"]),
  {
    name: "people",
    by: "id",
    of: "person",
    copied: "last",
    fence: { update: "refuse", delete: "refuse" }
  },
  ...organizations("last", settings, ["memberships", "workspace_access", "invitations"]),
  {
    name: "sessions",
    by: "person_id",
    of: "person",
    copied: "last",
    // A sign-out is refused by its audit record; what has expired is removed for all
    fence: { insert: "refuse", update: { skipUsesOf: ["last_used_at", "expires_at"] }, delete: "skip" }
  },
  {
    name: "login_tokens",
    by: "email",
    of: "person",
    copied: "last",
    fence: { insert: "refuse", update: "refuse", delete: "skip" }
  },
  {
    name: "api_keys",
    by: "organization_id",
    of: "organization",
    copied: "last",
    fence: { insert: "refuse", update: { skipUsesOf: ["last_used_at"] }, delete: "refuse" }
  },
  {
    name: "provider_accounts",
    by: "organization_id",
    of: "organization",
    copied: "last",
    fence: settings,
    // Numbers of readings are each database's own: at the target, every reading is a later one
    ownColumns: ["reported_status_reading"]
  },
  ...organizations("last", settings, [
    "account_onboardings",
    "account_authorizations",
    "endpoints",
    "endpoint_secrets",
    "checkout_pages",
    "recoveries",
    "event_replays"
  ]),
  ...organizations("last", { insert: "skip", update: "skip", delete: "skip" }, ["failure_warnings"]),
  ...timed({ column: "id", type: "text", after: "environment" }, ["events"]),
  ...timed({ column: "id", type: "uuid", after: "environment" }, ["deliveries"]),
  ...timed({ column: "received_at", type: "timestamptz", after: "environment" }, ["receipts", "receipts_by_month"]),
  ...timed({ column: "created_at", type: "timestamptz", after: null }, ["skipped_events", "published_events"]),
  ...timed({ column: "id", type: "uuid", after: "nothing" }, ["audit_log"]),
  ...timed({ column: "created_at", type: "timestamptz", after: null }, ["idempotency_keys", "sold_items"]),
  ...organizations("ahead", history, ["product_image_uploads"]),
  // All of it is under the mover's lease by then
  ...organizations("last", { insert: "park", update: "skip", delete: "skip" }, ["delivery_queue"]),
  ...organizations("last", counts, ["payment_counts", "delivery_counts", "unsettled_deliveries"])
]

/** Tables that stay, with the reason. */
export const cellWideTables: Readonly<Record<string, string>> = {
  migrations: "the cell's schema",
  rate_limits: "limits begin anew",
  cluster_runners: "the cell's processes",
  cluster_locks: "the cell's processes",
  days: "the cell's partitions; those of the organization's rows are added at the target",
  receipt_months: "the cell's partitions; those of the organization's rows are added at the target",
  count_passes: "how far the cell's counts are; the organization's are brought in line",
  product_images: "one image for all that upload the same bytes: copied, never removed",
  tenant_versions: "versions are each database's own, and kept by triggers",
  moves: "the moves themselves",
  moved_organizations: "what is left of organizations that have moved",
  moved_accounts: "what is left of organizations that have moved",
  moved_credentials: "what is left of organizations that have moved",
  move_conflicts: "the moves themselves",
  move_changed_hours: "the moves themselves"
}

/** The tables that replication copies. */
export const copiedAhead: ReadonlyArray<MovedTable> = movedTables.filter(({ copied }) => copied === "ahead")

/** The tables that are copied behind the fence. */
export const copiedLast: ReadonlyArray<MovedTable> = movedTables.filter(({ copied }) => copied === "last")

/** Those of them whose rows are taken over unchanged. */
export const isCounts = ({ fence }: MovedTable): boolean => fence === counts

/** An id as SQL. Ids are validated; this keeps anything else out of a statement all the same. */
export const uuidLiteral = (id: string): string => {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) throw new Error("Not a UUID")
  return `'${id}'::uuid`
}

/** The condition that a row of the table, by the given name, is of this organization or of one of its people. */
export const isOf = ({ by, of }: MovedTable, organizationId: string, row = "t"): string => {
  const organization = uuidLiteral(organizationId)
  if (of === "organization") return `${row}.${by} = ${organization}`
  const members = `SELECT m.person_id FROM payments.memberships m WHERE m.organization_id = ${organization}`
  return by === "email"
    ? `${row}.email IN (SELECT p.email FROM payments.people p WHERE p.id IN (${members}))`
    : `${row}.${by} IN (${members})`
}
