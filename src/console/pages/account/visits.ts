interface VisitWords {
  readonly tone: "ok" | "info" | "warning" | "problem"
  readonly text: string
}

const visits: Readonly<Record<"onboarding" | "oauth", Readonly<Record<string, VisitWords>>>> = {
  onboarding: {
    returned: { tone: "info", text: "You are back from the provider. The status below is the current one." },
    expired: { tone: "warning", text: "That link had expired or was used already. Continue with a new one below." }
  },
  oauth: {
    connected: { tone: "ok", text: "The account is connected." },
    denied: { tone: "info", text: "The account's owner declined at the provider. Nothing was connected." },
    expired: {
      tone: "warning",
      text: "That visit to the provider was too old, was finished already, or was begun in another session. If no account is connected below, begin again."
    },
    taken: {
      tone: "problem",
      text: "The account was not connected: it belongs to another organization, or another account is connected here."
    },
    refused: {
      tone: "problem",
      text: "The account was not connected: it is of the wrong mode or scope, or you may no longer connect accounts."
    },
    unusable: {
      tone: "problem",
      text: "The account was not connected: the provider sent no consent that can be used. Begin again."
    },
    failed: {
      tone: "problem",
      text: "The provider did not answer as it should. If no account is connected below, begin again."
    },
    unavailable: {
      tone: "problem",
      text: "The service could not finish this, since it could not reach its database. If no account is connected below, begin again."
    }
  }
}

/** The message for a provider visit that has just ended, as named in the address; undefined if it names none. */
export const wordsOfVisit = (kind: "onboarding" | "oauth", ended: string): VisitWords | undefined =>
  Object.hasOwn(visits[kind], ended) ? visits[kind][ended] : undefined
