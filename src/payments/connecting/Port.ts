import type { Option, Redacted } from "effect"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"

/** The pages that the provider returns browsers to. The paths are registered there, so they must not change. */
export const connectingPaths = {
  returned: "/identity/account/return",
  refresh: "/identity/account/refresh",
  authorized: "/identity/account/oauth/return"
} as const

/** An account to create. The marker is stored with it, so that it can be found again. */
export interface NewAccount {
  readonly environment: Environment
  readonly marker: string
}

export interface OnboardingPages {
  /** After onboarding was finished or left, so a visit proves nothing. */
  readonly returnUrl: string
  /** After an onboarding URL that has expired or was already used. */
  readonly refreshUrl: string
}

/** Whoever has it acts for the owner, so it is neither logged nor stored. */
export interface OnboardingUrl {
  readonly url: Redacted.Redacted
  readonly expiresAt: Date
}

export interface Authorization {
  readonly accountId: string
  readonly environment: Environment
  readonly mayWrite: boolean
}

export interface OnboardingPort {
  /** Returns the id of the platform's own account, which the service's key belongs to. */
  readonly retrievePlatformId: (environment: Environment) => ProviderCall<string>
  /** Creates an account that its owner completes; returns its id. Idempotent under the same key. */
  readonly createAccount: (account: NewAccount, options: WriteOptions) => ProviderCall<string>
  /** Finds the id of an account created with this marker at or after `since`, among at most 2,000 accounts. */
  readonly findCreatedAccount: (account: NewAccount, since: Date) => ProviderCall<Option.Option<string>>
  readonly createOnboardingUrl: (account: ConnectedAccount, pages: OnboardingPages) => ProviderCall<OnboardingUrl>
}

export interface AuthorizationPort {
  /**
   * The address at which the owner of an existing account grants access; none if the platform is not set up for that in
   * this environment. The provider sends the browser to `redirectUrl` with a code or an error, and the state.
   */
  readonly authorizationUrl: (
    environment: Environment,
    request: { readonly state: Redacted.Redacted; readonly redirectUrl: string }
  ) => Option.Option<Redacted.Redacted>
  /** Exchanges a single-use code for access. Never retried: the provider treats a repeat as a stolen code. */
  readonly redeemAuthorization: (environment: Environment, code: Redacted.Redacted) => ProviderCall<Authorization>
  /** Ends the access that the account's owner granted. */
  readonly endAuthorization: (account: ConnectedAccount) => ProviderCall<void>
}

export interface ConnectingPort extends OnboardingPort, AuthorizationPort {}
