/** The two environments of the contract, which share nothing. The provider calls them test mode and live mode. */
export type Environment = "sandbox" | "production"
export const environments: ReadonlyArray<Environment> = ["sandbox", "production"]
