import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** Checkout pages: what an organization sells at `/pay/{slug}`. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE payments.checkout_pages (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      id uuid NOT NULL,
      -- In the page's URL; random, and never used again
      slug text NOT NULL CHECK (length(slug) BETWEEN 16 AND 64),
      active boolean NOT NULL,
      title text NOT NULL CHECK (length(title) BETWEEN 1 AND 120),
      text text CHECK (length(text) <= 2000),
      -- The file name of a product image
      image_file text,
      image_alt text NOT NULL DEFAULT '' CHECK (length(image_alt) <= 200),
      items jsonb NOT NULL,
      collect jsonb NOT NULL,
      allow_promotion_codes boolean NOT NULL,
      success_text text CHECK (length(success_text) <= 1000),
      created_at timestamptz NOT NULL DEFAULT now(),
      updated_at timestamptz NOT NULL DEFAULT now(),
      deleted_at timestamptz,
      PRIMARY KEY (organization_id, environment, id),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces
    )`

  // A payer's request names the slug alone
  yield* sql`CREATE UNIQUE INDEX checkout_pages_slug ON payments.checkout_pages (slug)`
  // Few rows: deleted pages, for housekeeping
  yield* sql`
    CREATE INDEX checkout_pages_deleted ON payments.checkout_pages (deleted_at) WHERE deleted_at IS NOT NULL`
})
