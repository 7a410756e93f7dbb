import { SqlClient, type SqlError } from "@effect/sql"
import { Effect, type Option } from "effect"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { CheckoutPageId, OrganizationId } from "../../platform/kit/Ids.ts"
import { mostCounted } from "../../platform/kit/Request.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { anyRow, firstRow } from "../../platform/storage/Database.ts"
import type { ShownCollection } from "../checkout/Collection.ts"
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

type Statement<A> = Effect.Effect<A, SqlError.SqlError>

/** SQL: how often a page `p` sold, counted up to `mostCounted`. */
const sales = `(
  SELECT count(*)::int FROM (
    SELECT 1 FROM payments.sold_items s
    WHERE s.organization_id = p.organization_id AND s.environment = p.environment AND s.checkout_page = p.id
      AND s.sold_at IS NOT NULL LIMIT ${mostCounted}
  ) AS sold) AS sales`

export const makeCheckoutPagesRepo = Effect.map(SqlClient.SqlClient, (sql) => {
  const columns = sql.literal(`
    p.id, p.slug, p.environment, p.active, p.title, p.text, p.image_file AS "imageFile", p.image_alt AS "imageAlt",
    p.items, p.collect, p.allow_promotion_codes AS "allowPromotionCodes", p.success_text AS "successText",
    p.created_at AS "createdAt", p.updated_at AS "updatedAt"`)

  const shown = sql`${columns}, ${sql.literal(sales)}`

  const ofTenant = ({ environment, organizationId }: Tenant) =>
    sql`p.organization_id = ${organizationId} AND p.environment = ${environment} AND p.deleted_at IS NULL`

  const find = (tenant: Tenant, id: CheckoutPageId, lock = ""): Statement<Option.Option<PageRow>> =>
    firstRow(sql<PageRow>`
        SELECT ${shown} FROM payments.checkout_pages p WHERE ${ofTenant(tenant)} AND p.id = ${id} ${sql.literal(lock)}`)

  return {
    find,

    lock: (tenant: Tenant, id: CheckoutPageId) => find(tenant, id, "FOR UPDATE"),

    /** Locks the workspace until the transaction ends, so that creations are counted one after the other. */
    lockWorkspace: ({ environment, organizationId }: Tenant): Statement<void> =>
      sql`
        SELECT 1 FROM payments.workspaces
        WHERE organization_id = ${organizationId} AND environment = ${environment} FOR NO KEY UPDATE`.pipe(
        Effect.asVoid
      ),

    count: (tenant: Tenant): Statement<number> =>
      Effect.map(
        sql<{ count: number }>`SELECT count(*)::int AS count FROM payments.checkout_pages p WHERE ${ofTenant(tenant)}`,
        ([row]) => row?.count ?? 0
      ),

    list: (
      tenant: Tenant,
      { active, starting_after: after }: ListCheckoutPages,
      limit: number
    ): Statement<ReadonlyArray<PageRow>> => sql<PageRow>`
      SELECT ${shown} FROM payments.checkout_pages p
      WHERE ${ofTenant(tenant)} AND ${after === undefined ? sql.literal("true") : sql`p.id < ${after}`}
        AND ${active === undefined ? sql.literal("true") : sql`p.active = ${active}`}
      ORDER BY p.id DESC LIMIT ${limit}`,

    insert: (
      { environment, organizationId }: Tenant,
      { id, slug }: Pick<PageRow, "id" | "slug">,
      content: PageContent
    ): Statement<void> =>
      sql`
        INSERT INTO payments.checkout_pages (organization_id, environment, id, slug, active, title, text, image_file,
          image_alt, items, collect, allow_promotion_codes, success_text)
        VALUES (${organizationId}, ${environment}, ${id}, ${slug}, ${content.active}, ${content.title}, ${content.text},
          ${content.imageFile}, ${content.imageAlt}, ${JSON.stringify(content.items)}::jsonb,
          ${JSON.stringify(content.collect)}::jsonb, ${content.allowPromotionCodes}, ${content.successText})`.pipe(
        Effect.asVoid
      ),

    replace: (tenant: Tenant, id: CheckoutPageId, content: PageContent): Statement<void> =>
      sql`
        UPDATE payments.checkout_pages p SET active = ${content.active}, title = ${content.title},
          text = ${content.text}, image_file = ${content.imageFile}, image_alt = ${content.imageAlt},
          items = ${JSON.stringify(content.items)}::jsonb, collect = ${JSON.stringify(content.collect)}::jsonb,
          allow_promotion_codes = ${content.allowPromotionCodes}, success_text = ${content.successText},
          updated_at = now()
        WHERE ${ofTenant(tenant)} AND p.id = ${id}`.pipe(Effect.asVoid),

    markDeleted: (tenant: Tenant, id: CheckoutPageId): Statement<boolean> =>
      anyRow(sql`
        UPDATE payments.checkout_pages p SET deleted_at = now(), active = false
        WHERE ${ofTenant(tenant)} AND p.id = ${id} RETURNING 1`),

    hasImage: ({ environment, organizationId }: Tenant, file: string): Statement<boolean> =>
      anyRow(sql`
        SELECT 1 FROM payments.product_image_uploads
        WHERE organization_id = ${organizationId} AND environment = ${environment} AND file = ${file}`),

    /** Finds a page, deleted ones included, by its slug alone, since a payer's request names no tenant. */
    findBySlug: (slug: string): Statement<Option.Option<FoundRow>> =>
      firstRow(sql<FoundRow>`
        SELECT ${columns}, p.organization_id AS "organizationId", p.deleted_at IS NOT NULL AS deleted,
          (SELECT o.name FROM payments.organizations o WHERE o.id = p.organization_id) AS seller,
          EXISTS (SELECT 1 FROM payments.provider_accounts a WHERE a.organization_id = p.organization_id
            AND a.environment = p.environment AND a.status = 'connected') AS connected
        FROM payments.checkout_pages p WHERE p.slug = ${slug}`),

    removeDeleted: removeOld(sql, {
      table: "checkout_pages",
      key: ["organization_id", "environment", "id"],
      old: sql`r.deleted_at < now() - ${keepDeleted}::interval`,
      by: "deleted_at"
    })
  }
})
