/**
 * Bounds of a JSON body, checked on its bytes before they are parsed, so that parsing it and walking the parsed value
 * stay cheap whatever was sent. One pass, linear in the bytes.
 */

/** The largest JSON that is accepted. No operation takes more than 100 items, 50 pairs, a depth of 5 or 500 values. */
export const jsonBounds = {
  depth: 32,
  /** How many items an array, or keys an object, may have. */
  members: 100,
  /** How many values there may be in all, including arrays and objects. */
  values: 1000
} as const

export interface BoundBroken {
  readonly bound: keyof typeof jsonBounds
  readonly path: ReadonlyArray<string | number>
}

interface Container {
  readonly isObject: boolean
  /** How many commas it has had so far. */
  commas: number
  /** The position of its latest key, quotes included. */
  keyStart: number
  keyEnd: number
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const [openArray, closeArray, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d]

/** The position of the quote that closes the string beginning at `start`, or of the end of the text. */
const endOfString = (bytes: Uint8Array, start: number): number => {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return Math.min(at, bytes.length)
}

const decoder = new TextDecoder()

/** A key as it was written. It only names a place in an error, so it may be cut off or escaped. */
const keyOf = (bytes: Uint8Array, { keyEnd, keyStart }: Container): string => {
  const written = decoder.decode(bytes.subarray(keyStart, keyEnd + 1))
  try {
    return String(JSON.parse(written))
  } catch {
    return written
  }
}

const pathOf = (bytes: Uint8Array, open: ReadonlyArray<Container>): BoundBroken["path"] =>
  open.slice(0, -1).map((container) => (container.isObject ? keyOf(bytes, container) : container.commas))

/** The first broken bound, or null, also of text that is not JSON: the parser refuses that later. */
export const brokenBound = (bytes: Uint8Array): BoundBroken | null => {
  const open: Array<Container> = []
  let values = 1
  let last: { readonly start: number; readonly end: number } = { start: 0, end: 0 }
  const broken = (bound: BoundBroken["bound"]): BoundBroken => ({
    bound,
    // If the body is too deep or has too many values, the beginning of the path says enough
    path: bound === "members" ? pathOf(bytes, open) : pathOf(bytes, open).slice(0, 3)
  })
  for (let at = 0; at < bytes.length; at += 1) {
    const container = open.at(-1)
    switch (bytes[at]) {
      case quote: {
        const end = endOfString(bytes, at)
        last = { start: at, end }
        at = end
        break
      }
      case colon:
        if (container !== undefined) {
          container.keyStart = last.start
          container.keyEnd = last.end
        }
        break
      case comma:
        values += 1
        if (container !== undefined) {
          container.commas += 1
          if (container.commas >= jsonBounds.members) return broken("members")
        }
        if (values > jsonBounds.values) return broken("values")
        break
      case openArray:
      case openObject:
        open.push({ isObject: bytes[at] === openObject, commas: 0, keyStart: 0, keyEnd: 0 })
        values += 1
        if (open.length > jsonBounds.depth) return broken("depth")
        if (values > jsonBounds.values) return broken("values")
        break
      case closeArray:
      case closeObject:
        open.pop()
        break
    }
  }
  return null
}
