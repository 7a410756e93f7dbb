import { compressed } from "./Built.ts"
import type { Bundle } from "./Bundle.ts"

export const maxFirstPageBytes = 120_000

/** The most frequent first pages of a visit: the sign-in and the overview. */
const firstPages = ["pages/sign-in/SignIn.tsx", "pages/overview/Overview.tsx"]

/** The larger of the first pages: the scripts that it loads, and their size with Brotli. */
export const firstPageSize = ({
  files,
  imports,
  pages,
  script,
  theme
}: Bundle): { readonly page: string; readonly scripts: ReadonlyArray<string>; readonly bytes: number } => {
  const sizes = new Map(files.map(({ body, name }) => [name, compressed(body).br.byteLength]))
  const measured = firstPages.map((page) => {
    const scripts = [...new Set([theme, script, ...imports, ...(pages[page] ?? [])])]
    return { page, scripts, bytes: scripts.reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0) }
  })
  return measured.reduce((largest, one) => (one.bytes > largest.bytes ? one : largest))
}
