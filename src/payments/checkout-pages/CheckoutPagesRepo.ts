import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { CheckoutPageId, OrganizationId } from "../../platform/kit/Ids.ts"
import { mostCounted } from "../../platform/kit/Request.ts"
import { existingOf, ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { anyRow, firstRow, oneRow } from "../../platform/storage/Database.ts"
import type { ShownCollection } from "../checkout-sessions/Collection.ts"
import type { CheckoutPageItem, ListCheckoutPages } from "./Api.ts"

export interface PageContent {
  readonly active: boolean
  readonly title: string
  readonly text: string | null
  readonly imageFile: string | null
  readonly imageAlt: string
  readonly items: ReadonlyArray<CheckoutPageItem>
  readonly collect: ShownCollection
  readonly allowPromotionCodes: boolean
  readonly successText: string | null
}

export interface PageRow extends PageContent {
  readonly id: CheckoutPageId
  readonly slug: string
  readonly environment: Environment
  readonly sales: number
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** A page as a payer's request finds it. */
export interface FoundRow extends Omit<PageRow, "sales"> {
  readonly organizationId: OrganizationId
  readonly deleted: boolean
  readonly seller: string
  /** Whether its tenant's account is connected. */
  readonly connected: boolean
}

const keepDeleted = "400 days"

const columns = `
  p.id, p.slug, p.environment, p.active, p.title, p.text, p.image_file AS "imageFile", p.image_alt AS "imageAlt",
  p.items, p.collect, p.allow_promotion_codes AS "allowPromotionCodes", p.success_text AS "successText",
  p.created_at AS "createdAt", p.updated_at AS "updatedAt"`

/** The columns, with a page's number of sales, counted up to `mostCounted`. */
const withSales = `${columns}, (
  SELECT count(*)::int FROM (
    SELECT 1 FROM payments.sold_items s
    WHERE s.organization_id = p.organization_id AND s.environment = p.environment AND s.checkout_page = p.id
      AND s.sold_at IS NOT NULL LIMIT ${mostCounted}
  ) AS sold) AS sales`

type Sql = SqlClient.SqlClient

const readStatements = (sql: Sql) => {
  const find = (tenant: Tenant, id: CheckoutPageId, lock: "" | "FOR UPDATE" = "") =>
    firstRow(sql<PageRow>`
      SELECT ${sql.literal(withSales)} FROM payments.checkout_pages p
      WHERE ${existingOf(sql, tenant, "p")} AND p.id = ${id} ${sql.literal(lock)}`)

  return {
    find,

    lock: (tenant: Tenant, id: CheckoutPageId) => find(tenant, id, "FOR UPDATE"),

    count: (tenant: Tenant) =>
      Effect.map(
        oneRow(sql<{ count: number }>`
          SELECT count(*)::int AS count FROM payments.checkout_pages p WHERE ${existingOf(sql, tenant, "p")}`),
        ({ count }) => count
      ),

    list: (tenant: Tenant, { active, starting_after: after }: ListCheckoutPages, limit: number) => sql<PageRow>`
      SELECT ${sql.literal(withSales)} FROM payments.checkout_pages p
      WHERE ${existingOf(sql, tenant, "p")} AND ${after === undefined ? sql.literal("true") : sql`p.id < ${after}`}
        AND ${active === undefined ? sql.literal("true") : sql`p.active = ${active}`}
      ORDER BY p.id DESC LIMIT ${limit}`,

    hasImage: (tenant: Tenant, file: string) =>
      anyRow(sql`SELECT 1 FROM payments.product_image_uploads WHERE ${ofTenant(sql, tenant)} AND file = ${file}`),

    /** Finds a page, deleted ones included, by its slug alone, since a payer's request names no tenant. */
    findBySlug: (slug: string) =>
      firstRow(sql<FoundRow>`
        SELECT ${sql.literal(columns)}, p.organization_id AS "organizationId", p.deleted_at IS NOT NULL AS deleted,
          (SELECT o.name FROM payments.organizations o WHERE o.id = p.organization_id) AS seller,
          EXISTS (SELECT 1 FROM payments.provider_accounts a WHERE a.organization_id = p.organization_id
            AND a.environment = p.environment AND a.status = 'connected') AS connected
        FROM payments.checkout_pages p WHERE p.slug = ${slug}`)
  }
}

const writeStatements = (sql: Sql) => ({
  /** Locks the workspace until the transaction ends, so that creations are counted one after the other. */
  lockWorkspace: (tenant: Tenant) =>
    sql`SELECT 1 FROM payments.workspaces WHERE ${ofTenant(sql, tenant)} FOR NO KEY UPDATE`,

  insert: (
    { environment, organizationId }: Tenant,
    { id, slug }: Pick<PageRow, "id" | "slug">,
    content: PageContent
  ) => sql`
    INSERT INTO payments.checkout_pages (organization_id, environment, id, slug, active, title, text, image_file,
      image_alt, items, collect, allow_promotion_codes, success_text)
    VALUES (${organizationId}, ${environment}, ${id}, ${slug}, ${content.active}, ${content.title}, ${content.text},
      ${content.imageFile}, ${content.imageAlt}, ${JSON.stringify(content.items)}::jsonb,
      ${JSON.stringify(content.collect)}::jsonb, ${content.allowPromotionCodes}, ${content.successText})`,

  replace: (tenant: Tenant, id: CheckoutPageId, content: PageContent) => sql`
    UPDATE payments.checkout_pages p SET active = ${content.active}, title = ${content.title},
      text = ${content.text}, image_file = ${content.imageFile}, image_alt = ${content.imageAlt},
      items = ${JSON.stringify(content.items)}::jsonb, collect = ${JSON.stringify(content.collect)}::jsonb,
      allow_promotion_codes = ${content.allowPromotionCodes}, success_text = ${content.successText},
      updated_at = now()
    WHERE ${existingOf(sql, tenant, "p")} AND p.id = ${id}`,

  markDeleted: (tenant: Tenant, id: CheckoutPageId) =>
    anyRow(sql`
      UPDATE payments.checkout_pages p SET deleted_at = now(), active = false
      WHERE ${existingOf(sql, tenant, "p")} AND p.id = ${id} RETURNING 1`),

  removeDeleted: removeOld(sql, {
    table: "checkout_pages",
    key: ["organization_id", "environment", "id"],
    old: sql`r.deleted_at < now() - ${keepDeleted}::interval`,
    by: "deleted_at"
  })
})

export const makeCheckoutPagesRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  ...readStatements(sql),
  ...writeStatements(sql)
}))
