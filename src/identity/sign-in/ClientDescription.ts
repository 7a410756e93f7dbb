/** The description by which people recognize their sessions: only the browser and the system that signed in. */

const browsers: ReadonlyArray<readonly [name: string, form: RegExp]> = [
  // Before Chrome and Safari, which the others also name
  ["Edge", /\bEdg(?:A|iOS)?\//],
  ["Opera", /\bOPR\//],
  ["Samsung Internet", /\bSamsungBrowser\//],
  ["Firefox", /\b(?:Firefox|FxiOS)\//],
  ["Chrome", /\b(?:Chrome|CriOS)\//],
  ["Safari", /\bSafari\//]
]

const systems: ReadonlyArray<readonly [name: string, form: RegExp]> = [
  ["iOS", /\b(?:iPhone|iPad)\b/],
  ["Android", /\bAndroid\b/],
  ["Windows", /\bWindows\b/],
  ["macOS", /\bMacintosh\b/],
  ["ChromeOS", /\bCrOS\b/],
  ["Linux", /\bLinux\b/]
]

/** How many characters of the header are read. */
const maxLength = 512

/**
 * The description of a client, such as `Firefox on Linux`; null if the header names no known browser. The header itself
 * is not kept.
 */
export const describeClient = (userAgent: string | undefined): string | null => {
  const text = (userAgent ?? "").slice(0, maxLength)
  const nameIn = (known: typeof browsers) => known.find(([, form]) => form.test(text))?.[0]
  const browser = nameIn(browsers)
  const system = nameIn(systems)
  return browser === undefined ? null : system === undefined ? browser : `${browser} on ${system}`
}
