/**
 * The service's parts, for those who compose its layers by hand, as `connected-payments/unstable`. Any release may change
 * or remove a name here; `connected-payments` has those that stay.
 */
export { Retention } from "../destinations/deliveries/Retention.ts"
// The types in the services' signatures, so that a team can export values made with them
export type * from "../destinations/event-replays/EventReplays.ts"
export { EventReplays } from "../destinations/event-replays/EventReplays.ts"
export { Events } from "../destinations/events/Events.ts"
export type * from "../destinations/publishing/SyntheticTests.ts"
export { SyntheticTests } from "../destinations/publishing/SyntheticTests.ts"
export { Recoveries } from "../destinations/recoveries/Recoveries.ts"
export type { Step } from "../destinations/recoveries/RecoveriesRepo.ts"
export { Statistics } from "../destinations/statistics/Statistics.ts"
export { LocalHandOff } from "../engine/queue/Enqueue.ts"
export { Queue } from "../engine/queue/Queue.ts"
export type * from "../engine/transport/Transport.ts"
export { Transport } from "../engine/transport/Transport.ts"
export type { WorkerOptions } from "../engine/worker/Endpoints.ts"
export { workerLayer } from "../engine/worker/Worker.ts"
export { encodeEnvelope } from "../events/Envelope.ts"
export type { Translation } from "../events/EventReader.ts"
export { parseProviderEvent } from "../events/stripe/ProviderEvent.ts"
export { translate } from "../events/stripe/Translate.ts"
export { Invitations } from "../identity/invitations/Invitations.ts"
export type * from "../identity/invitations/InvitationsRepo.ts"
export type * from "../identity/members/Members.ts"
export { Members } from "../identity/members/Members.ts"
export type { Membership, Role, Session } from "../identity/Principal.ts"
export { Sessions } from "../identity/sign-in/Sessions.ts"
export type * from "../identity/sign-in/SignIn.ts"
export type * from "../identity/sign-in/SignInRepo.ts"
export { Inbound, type Received } from "../inbound/Inbound.ts"
export type * from "../inbound/Receipt.ts"
export { Receipts } from "../inbound/Receipts.ts"
export type { AccountRow, NewLink, Reported } from "../payments/AccountsRepo.ts"
export type * from "../payments/checkout-pages/CheckoutPages.ts"
export { CheckoutPages } from "../payments/checkout-pages/CheckoutPages.ts"
export type * from "../payments/checkout-pages/CheckoutPagesRepo.ts"
export { CheckoutSessions } from "../payments/checkout-sessions/CheckoutSessions.ts"
export { AccountConnection, type LinkState } from "../payments/connecting/AccountConnection.ts"
export type * from "../payments/connecting/Authorizations.ts"
export type * from "../payments/connecting/Port.ts"
export { AnotherPlatform } from "../payments/Platforms.ts"
export type {
  ChangeObject,
  CreateObject,
  KeyFor,
  ListLines,
  ListObjects,
  RetrieveObject,
  WriteOptions
} from "../payments/ProviderCall.ts"
export { Mailer } from "../platform/kit/Mailer.ts"
export { RateLimits } from "../platform/kit/RateLimit.ts"
export type { ProviderCredentials, SettingsShape } from "../platform/settings/Settings.ts"
export { transaction } from "../platform/storage/Database.ts"
export { migrate } from "../platform/storage/Migrations.ts"
export { ServeError } from "../surface/http/WorkerHealth.ts"
export { defaultSettings } from "./Embedding.ts"
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
