import { Schema } from "effect"
import { echoed } from "../bounds/Rules.ts"
import { text } from "../bounds/Text.ts"

const momentForm =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/** Whether the calendar has the day: `Date.parse` lets the 31st of a shorter month roll over into the next. */
const isDay = (written: string): boolean => {
  const day = written.slice(0, 10)
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
}

const firstYear = Date.parse("0001-01-01T00:00:00Z")
const lastYear = Date.parse("9999-12-31T23:59:59.999Z")

/** An offset can lead out of the years that ISO 8601 writes with four digits and PostgreSQL accepts. */
const isInYears = (written: string): boolean => {
  const time = Date.parse(written)
  return time >= firstYear && time <= lastYear
}

/** With its zone, to the second or finer: an existing day in the years 1 to 9999 UTC. */
export const Instant = Schema.compose(
  text({
    min: 20,
    max: 35,
    pattern: momentForm,
    rule: "must be a time in ISO 8601 with its zone, such as 2026-01-31T09:30:00Z"
  })
    .annotations(echoed)
    .pipe(
      Schema.filter((written) => isDay(written) && isInYears(written), {
        jsonSchema: { format: "date-time", examples: ["2026-01-31T09:30:00.000Z"] }
      })
    ),
  Schema.Date
)
