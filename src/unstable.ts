/**
 * The service's parts, for those who compose its layers by hand, as `connected-payments/unstable`. Any release may change
 * or remove a name here; `connected-payments` has those that stay.
 */
export { Retention } from "./deliveries/api/Retention.ts"
export { EventReplays } from "./deliveries/event-replays/EventReplays.ts"
export { Events } from "./deliveries/events/Events.ts"
export { Recoveries } from "./deliveries/recoveries/Recoveries.ts"
export { Queue } from "./deliveries/sending/Queue.ts"
export { Transport } from "./deliveries/sending/Transport.ts"
export { type WorkerOptions, workerLayer } from "./deliveries/sending/Worker.ts"
export { DailyCounts } from "./deliveries/statistics/DailyCounts.ts"
export { DnsResolver } from "./endpoints/DestinationUrl.ts"
export type { EndpointsOptions } from "./endpoints/Endpoints.ts"
export { encodeEnvelope } from "./events/Envelope.ts"
export { parseProviderEvent, type Translation, translate } from "./events/stripe/Translate.ts"
export { Invitations } from "./identity/invitations/Invitations.ts"
export { Members } from "./identity/members/Members.ts"
export type { PrincipalShape, Role } from "./identity/Principal.ts"
export { Sessions } from "./identity/sign-in/Sessions.ts"
export { Inbound, type Received } from "./inbound/Inbound.ts"
export { Receipts } from "./inbound/Receipts.ts"
export { Cipher, DecryptionFailed } from "./kit/Cipher.ts"
export { Mailer } from "./kit/Mailer.ts"
export { Accounts } from "./provider/Accounts.ts"
export { CheckoutPages } from "./provider/checkout-pages/CheckoutPages.ts"
export { AccountConnection, type Connection } from "./provider/connecting/AccountConnection.ts"
export { SyntheticTests } from "./publishing/SyntheticTests.ts"
export { WakeUp } from "./publishing/WakeUp.ts"
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
export type { MasterKey, ProviderCredentials, SettingsShape } from "./settings/Settings.ts"
export { type DatabaseOptions, databaseLayer, transaction } from "./storage/Database.ts"
export { MigrationFailed, migrate, migrationsLayer } from "./storage/Migrations.ts"
