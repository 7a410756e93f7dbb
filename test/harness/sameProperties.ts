import { FastCheck } from "effect"

/**
 * Properties are tested with the same values in every run, so that a run that fails fails again, and a change is judged
 * by what it changed. `PROPERTY_SEED` looks at others: `PROPERTY_SEED=$RANDOM npm test`.
 */
export const propertySeed = Number(process.env["PROPERTY_SEED"] ?? 1)

// A property that does not say how many values it is tested with
FastCheck.configureGlobal({ seed: propertySeed, numRuns: 100 })
