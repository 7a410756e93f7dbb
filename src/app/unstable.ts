/**
 * The service's parts, for those who compose its layers by hand, as `connected-payments/unstable`. Any release may change
 * or remove a name here; `connected-payments` has those that stay.
 */
export { Retention } from "../destinations/deliveries/Retention.ts"
export type { EndpointsOptions } from "../destinations/endpoints/Endpoints.ts"
export { EventReplays } from "../destinations/event-replays/EventReplays.ts"
export { Events } from "../destinations/events/Events.ts"
export { SyntheticTests } from "../destinations/publishing/SyntheticTests.ts"
export { Recoveries } from "../destinations/recoveries/Recoveries.ts"
export { DailyCounts } from "../destinations/statistics/DailyCounts.ts"
export { Queue } from "../engine/queue/Queue.ts"
export { WakeUp } from "../engine/queue/WakeUp.ts"
export { DnsResolver } from "../engine/transport/DestinationUrl.ts"
export { Transport } from "../engine/transport/Transport.ts"
export type { WorkerOptions } from "../engine/worker/Endpoints.ts"
export { workerLayer } from "../engine/worker/Worker.ts"
export { encodeEnvelope } from "../events/Envelope.ts"
export { parseProviderEvent, type Translation, translate } from "../events/stripe/Translate.ts"
export { Invitations } from "../identity/invitations/Invitations.ts"
export { Members } from "../identity/members/Members.ts"
export type { PrincipalShape, Role } from "../identity/Principal.ts"
export { Sessions } from "../identity/sign-in/Sessions.ts"
export { Inbound, type Received } from "../inbound/Inbound.ts"
export { Receipts } from "../inbound/Receipts.ts"
export { Accounts } from "../payments/Accounts.ts"
export { CheckoutPages } from "../payments/checkout-pages/CheckoutPages.ts"
export { AccountConnection, type Connection } from "../payments/connecting/AccountConnection.ts"
export { Cipher, DecryptionFailed } from "../platform/kit/Cipher.ts"
export { Mailer } from "../platform/kit/Mailer.ts"
export type { MasterKey, ProviderCredentials, SettingsShape } from "../platform/settings/Settings.ts"
export { type DatabaseOptions, databaseLayer, transaction } from "../platform/storage/Database.ts"
export { MigrationFailed, migrate, migrationsLayer } from "../platform/storage/Migrations.ts"
export {
  apiLayer,
  type DeliverySettings,
  deliveryLayer,
  type EmbeddedOptions,
  rolesLayer,
  type ServiceOptions,
  type Services,
  servicesLayer,
  servicesWithProviderLayer,
  storageLayer
} from "./Service.ts"
