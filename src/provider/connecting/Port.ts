import type { Option, Redacted } from "effect"
import type { Environment } from "../../events/Environment.ts"
import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"

/** An account to create: the marker is kept with it, so that it can be found again. */
export interface NewAccount {
  readonly environment: Environment
  readonly marker: string
}

/** Where the provider's onboarding leads back to. */
export interface OnboardingPages {
  /** After it was finished or left: it proves nothing. */
  readonly returnUrl: string
  /** From a URL that has expired or was used before. */
  readonly refreshUrl: string
}

/** A URL at which an account's owner goes on; whoever has it acts for the owner, so it is neither logged nor stored. */
export interface OnboardingUrl {
  readonly url: Redacted.Redacted
  readonly expiresAt: Date
}

/** What an account's owner has granted. */
export interface Authorization {
  readonly accountId: string
  readonly environment: Environment
  /** Whether the platform may change things, not only read them. */
  readonly mayWrite: boolean
}

/** The provider's operations by which an account is connected to the platform. */
export interface ConnectingPort {
  /** The platform's own account, which the service's key is of. */
  readonly retrievePlatformId: (environment: Environment) => ProviderCall<string>
  /** Creates an account that its owner completes; returns its id. A repeat under the same key creates no other. */
  readonly createAccount: (account: NewAccount, options: WriteOptions) => ProviderCall<string>
  /** The id of an account that was created with this marker since then; looks through at most 2,000 accounts. */
  readonly findCreatedAccount: (account: NewAccount, since: Date) => ProviderCall<Option.Option<string>>
  /** A new URL of the account's onboarding, which works once. */
  readonly createOnboardingUrl: (account: ConnectedAccount, pages: OnboardingPages) => ProviderCall<OnboardingUrl>
  /**
   * The address at which the owner of an existing account grants access; none if the platform is not set up for that in
   * this environment. The provider sends the browser to `redirectUrl` with a code or an error, and the state.
   */
  readonly authorizationUrl: (
    environment: Environment,
    request: { readonly state: Redacted.Redacted; readonly redirectUrl: string }
  ) => Option.Option<Redacted.Redacted>
  /** Exchanges a code, which works once. Never repeated: the provider takes a repeat for a stolen code. */
  readonly redeemAuthorization: (environment: Environment, code: Redacted.Redacted) => ProviderCall<Authorization>
  /** Ends the access that the owner had granted. */
  readonly endAuthorization: (account: ConnectedAccount) => ProviderCall<void>
}
