import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

export const accounts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // A reading's number, taken before it begins: of two readings of an account, the one that began later counts. One
  // sequence for all accounts, so that numbers stay comparable if an account is unlinked and linked again
  yield* sql`CREATE SEQUENCE payments.account_readings`

  yield* sql`
    CREATE TABLE payments.provider_accounts (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      account_id text COLLATE "C" NOT NULL,
      status text NOT NULL CHECK (status IN ('connected', 'disconnected')),
      had_payments_before boolean NOT NULL,
      -- The provider event that caused the milestone: set once
      first_payment_event_id text,
      linked_at timestamptz NOT NULL DEFAULT now(),
      disconnected_at timestamptz,
      -- The last reported status: the data of account.updated. Null until the first reading
      reported_status jsonb,
      reported_status_reading bigint NOT NULL DEFAULT 0,
      -- The created_at of the last account.updated: a later reading's event is never dated before it
      reported_status_at timestamptz,
      -- Null: by the operator
      linked_by text CHECK (linked_by IN ('operator', 'onboarding', 'oauth')),
      -- Disconnected here, while the provider has not yet confirmed that the platform's access has ended
      ends_at_provider boolean NOT NULL DEFAULT false,
      -- When linking the connected account again last confirmed our access; null if it was not linked again. A
      -- revocation from before then is outdated, whenever its notification arrives
      access_confirmed_at timestamptz,
      -- Until when the provider's list of events was compared with the receipts
      reconciled_until timestamptz,
      PRIMARY KEY (organization_id, environment),
      -- One account belongs to one organization: its notifications must have one owner
      CONSTRAINT provider_accounts_account UNIQUE (environment, account_id),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces,
      CHECK ((status = 'disconnected') = (disconnected_at IS NOT NULL))
    )`

  // At most one account is being created for a tenant at a time. `generation` is part of the idempotency key of its
  // creation, and changes only when that account is abandoned
  yield* sql`
    CREATE TABLE payments.account_onboardings (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      generation integer NOT NULL DEFAULT 1 CHECK (generation >= 1),
      -- Null until the provider has answered
      account_id text,
      begun_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces
    )`

  // One authorization at a time per session: a new one replaces it. Only the hash of its state is kept
  yield* sql`
    CREATE TABLE payments.account_authorizations (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      session_id uuid NOT NULL REFERENCES payments.sessions ON DELETE CASCADE,
      state_hash bytea NOT NULL CHECK (length(state_hash) = 32),
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, session_id),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces
    )`
  yield* sql`CREATE INDEX account_authorizations_of_session ON payments.account_authorizations (session_id)`
  yield* sql`CREATE INDEX account_authorizations_age ON payments.account_authorizations (created_at)`

  // The platform's own account at the provider, under which accounts are linked. A process with another platform's key
  // is refused access to all of them, and has to know that this says nothing about the accounts
  yield* sql`
    CREATE TABLE payments.provider_platforms (
      environment text COLLATE "C" PRIMARY KEY CHECK (environment IN ('sandbox', 'production')),
      platform_id text NOT NULL,
      recorded_at timestamptz NOT NULL DEFAULT now()
    )`

  // The items that a checkout session or payment link sells, for checkout.* events (contract 6.5)
  yield* sql`
    CREATE TABLE payments.sold_items (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      source_id text COLLATE "C" NOT NULL,
      price_ids text[] NOT NULL,
      product_ids text[] NOT NULL,
      -- A session's subtotal at its creation: if the payer's differs, they bought something else. Null if equal
      -- subtotals would not prove that the recorded items were sold: for payment links and subscriptions
      amount_subtotal bigint,
      -- For searches: the lines in words, and of a session the shop's order, the checkout page, the payment, and when
      -- it was paid
      description text,
      reference text COLLATE "C",
      checkout_page uuid,
      payment_id text COLLATE "C",
      sold_at timestamptz,
      created_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, source_id),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces
    )`
  yield* sql`
    CREATE INDEX sold_items_of_reference ON payments.sold_items (organization_id, environment, reference, created_at)
    WHERE reference IS NOT NULL`
  yield* sql`
    CREATE INDEX sold_items_of_payment ON payments.sold_items (organization_id, environment, payment_id)
    WHERE payment_id IS NOT NULL`
  yield* sql`
    CREATE INDEX sold_items_of_page ON payments.sold_items (organization_id, environment, checkout_page)
    WHERE sold_at IS NOT NULL`

  // Only sessions, which are the provider's `cs_…`: a payment link's items are kept as long as it may sell
  yield* sql`
    CREATE INDEX sold_items_of_sessions_age ON payments.sold_items (created_at) WHERE starts_with(source_id, 'cs_')`

  // Refunds that failed or were canceled, possibly days after they were made. Owners and admins get a mail about them
  yield* sql`
    CREATE TABLE payments.failed_refunds (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL CHECK (environment IN ('sandbox', 'production')),
      refund_id text COLLATE "C" NOT NULL,
      charge_id text COLLATE "C",
      payment_id text,
      amount bigint NOT NULL,
      currency text NOT NULL,
      status text NOT NULL CHECK (status IN ('failed', 'canceled')),
      failure_reason text,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      -- When a mail about it is due; null once it was sent
      mail_at timestamptz DEFAULT now(),
      mailed_at timestamptz,
      PRIMARY KEY (organization_id, environment, refund_id)
    )`
  yield* sql`CREATE INDEX failed_refunds_mail ON payments.failed_refunds (mail_at) WHERE mail_at IS NOT NULL`
  yield* sql`CREATE INDEX failed_refunds_day ON payments.failed_refunds (organization_id, environment, recorded_at)`
  yield* sql`CREATE INDEX failed_refunds_age ON payments.failed_refunds (recorded_at)`
  yield* sql`
    CREATE INDEX failed_refunds_charge ON payments.failed_refunds (organization_id, environment, charge_id)`

  // Keyed by the hash of their bytes and shared by all tenants: the same bytes are the same image for all
  yield* sql`
    CREATE TABLE payments.product_images (
      sha256 bytea PRIMARY KEY CHECK (length(sha256) = 32),
      format text NOT NULL CHECK (format IN ('jpg', 'png', 'webp')),
      bytes bytea NOT NULL CHECK (length(bytes) BETWEEN 1 AND 4194304),
      created_at timestamptz NOT NULL DEFAULT now()
    )`
  // Images are compressed already. PostgreSQL 15 can't say so in the table's definition
  yield* sql`ALTER TABLE payments.product_images ALTER COLUMN bytes SET STORAGE EXTERNAL`
  // An image belongs to no tenant, but its uploads do: a removal has to be recorded for each tenant
  yield* sql`
    CREATE TABLE payments.product_image_uploads (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      file text COLLATE "C" NOT NULL CHECK (file ~ '^[0-9a-f]{64}[.](jpg|png|webp)$'),
      uploaded_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, file),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces
    )`
  yield* sql`CREATE INDEX product_image_uploads_file ON payments.product_image_uploads (file)`

  // The pages at `/pay/{slug}` where an organization sells
  yield* sql`
    CREATE TABLE payments.checkout_pages (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      id uuid NOT NULL,
      -- In the page's URL; random, and never used again
      slug text COLLATE "C" NOT NULL CHECK (length(slug) BETWEEN 16 AND 64),
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
