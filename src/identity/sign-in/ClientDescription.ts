/** What a person knows one of their sessions by: the browser and the system that signed in, and no more of it. */

const browsers: ReadonlyArray<readonly [name: string, form: RegExp]> = [
  // The others name Chrome or Safari beside themselves
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

/** So much of the header is looked at. */
const maxLength = 512

/** Such as `Firefox on Linux`; null where the header names no browser that we know. Nothing of the header itself is kept. */
export const describeClient = (userAgent: string | undefined): string | null => {
  const text = (userAgent ?? "").slice(0, maxLength)
  const nameIn = (known: typeof browsers) => known.find(([, form]) => form.test(text))?.[0]
  const browser = nameIn(browsers)
  const system = nameIn(systems)
  return browser === undefined ? null : system === undefined ? browser : `${browser} on ${system}`
}
