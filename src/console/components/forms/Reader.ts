export type Problems = Readonly<Record<string, string>>

export type Written<A> =
  | { readonly kind: "ready"; readonly value: A }
  | { readonly kind: "problems"; readonly problems: Problems }

/** The result of parsing a field's text. Twelve digits exceed every count in the API. */
type WrittenCount = number | "empty" | "unreadable"

/** Parses a whole number, which may have spaces around it. */
export const readCount = (text: string): WrittenCount => {
  const written = text.trim()
  if (written === "") return "empty"
  return /^\d{1,12}$/.test(written) ? Number(written) : "unreadable"
}

/** Parses a percentage with a point or a comma: `12.5`, `12,5`, `12.5 %`. */
export const readPercentage = (text: string): WrittenCount => {
  const written = text.trim().replace(/\s*%$/, "")
  if (written === "") return "empty"
  return /^\d{1,3}(?:[.,]\d{1,2})?$/.test(written) ? Number(written.replace(",", ".")) : "unreadable"
}

export const noTexts: ReadonlyArray<string> = []

export const notANumber = "Write a whole number, in digits."
export const noAmount = "Write an amount."

/** Collects problems while a form is parsed. The API checks bounds. */
export class Reader {
  readonly problems: Record<string, string> = {}

  /** Reads an optional amount: undefined if the field is empty, NaN if its text is not an amount. */
  amount(name: string, amount: number | undefined): number | undefined {
    // The amount field itself explains why
    if (Number.isNaN(amount)) this.problems[name] = "This is not an amount."
    return amount
  }

  neededAmount(name: string, amount: number | undefined): number {
    if (amount === undefined) this.problems[name] = noAmount
    return this.amount(name, amount) ?? 0
  }

  count(name: string, text: string): number | undefined {
    const written = readCount(text)
    if (written === "unreadable") this.problems[name] = notANumber
    return typeof written === "number" ? written : undefined
  }

  neededCount(name: string, text: string, problem = notANumber): number {
    const written = readCount(text)
    if (typeof written !== "number") this.problems[name] = problem
    return typeof written === "number" ? written : 0
  }

  done<A>(value: A): Written<A> {
    return Object.keys(this.problems).length === 0
      ? { kind: "ready", value }
      : { kind: "problems", problems: this.problems }
  }
}

export const filled = <T extends object>(fields: T): { readonly [K in keyof T]?: Exclude<T[K], undefined> } => {
  const isEmpty = (value: unknown) =>
    value === undefined || value === "" || (Array.isArray(value) && value.length === 0)
  // Each left value has its field's type
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value))) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}

/** The fields that differ. Only these are sent, so that someone else's concurrent change is kept. */
export const changedFields = <T extends object>(before: T, after: T): Partial<T> => {
  const old = new Map<string, unknown>(Object.entries(before))
  const isSame = ([name, value]: [string, unknown]) => JSON.stringify(value) === JSON.stringify(old.get(name))
  return Object.fromEntries(Object.entries(after).filter((field) => !isSame(field))) as Partial<T>
}
