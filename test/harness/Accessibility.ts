import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Page } from "playwright-core"
import { expect } from "vitest"

/** What tests of pages require of them: what axe finds, and that they fit. */

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** WCAG 2.2 AA, and axe's best practices. */
const allRules = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }

const lookAtColours = ["color-contrast", "link-in-text-block"]

/** Those of them that look at colours: half of the time that all of them take. */
export const colourRules = { runOnly: { type: "rule", values: lookAtColours } }

const colourlessRules = {
  ...allRules,
  rules: Object.fromEntries(lookAtColours.map((rule) => [rule, { enabled: false }]))
}

interface Violation {
  readonly id: string
  readonly help: string
  readonly nodes: ReadonlyArray<{ readonly target: ReadonlyArray<string>; readonly failureSummary?: string }>
}

/** Requires that axe finds nothing against WCAG 2.2 AA, nor against its best practices, on a page as it is now. */
export const expectAccessible = async (
  page: Page,
  rules: typeof allRules | typeof colourRules | typeof colourlessRules = allRules
): Promise<void> => {
  // Past the page's policy, as a developer's tools are
  if (!(await page.evaluate("typeof axe === 'object'"))) await page.evaluate(axe)
  const violations = (await page.evaluate(
    `axe.run(document, { ...${JSON.stringify(rules)}, resultTypes: ["violations"] }).then(({ violations }) => violations)`
  )) as ReadonlyArray<Violation>
  expect(
    violations.map(({ help, id, nodes }) => ({
      id,
      help,
      nodes: nodes.slice(0, 5).map(({ failureSummary, target }) => `${target.join(" ")}: ${failureSummary ?? ""}`)
    })),
    page.url()
  ).toEqual([])
}

export const expectNoSidewaysScroll = async (page: Page): Promise<void> => {
  const beyond = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
  expect(beyond, page.url()).toBe(0)
}

export const phone = { width: 375, height: 800 }

/** Waits until a page is drawn again after its size or its appearance has changed, with what its scripts do about it. */
const drawnAgain = (page: Page): Promise<unknown> =>
  page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")

/**
 * Requires of a page in light that it is accessible and does not scroll sideways, there, in the dark, and on a phone. It is
 * not loaded again: what differs in the dark is its colours alone, and on a phone its layout. What only a phone shows, the
 * navigation's drawer, has a test of its own that looks at its colours, too.
 */
export const expectAccessibleInAllAppearances = async (page: Page): Promise<void> => {
  const size = page.viewportSize()
  await expectAccessible(page)
  await expectNoSidewaysScroll(page)
  await page.emulateMedia({ colorScheme: "dark" })
  await drawnAgain(page)
  await expectAccessible(page, colourRules)
  await page.emulateMedia({ colorScheme: "light" })
  await page.setViewportSize(phone)
  await drawnAgain(page)
  await expectAccessible(page, colourlessRules)
  await expectNoSidewaysScroll(page)
  if (size !== null) {
    await page.setViewportSize(size)
    await drawnAgain(page)
  }
}
