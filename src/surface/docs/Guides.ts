import { readFile } from "node:fs/promises"
import { Data, Effect } from "effect"
import { packageRoot } from "../../platform/settings/PackageFolders.ts"

/** The guides: Markdown files in `src/docs`, readable in the repository and served at `/docs`. */

export interface Guide {
  /** Its file's name without `.md`, also its path under `/docs`. */
  readonly name: string
  readonly title: string
  /** Its first sentence, as Markdown. */
  readonly about: string
  readonly markdown: string
}

/** The order in which guides are shown, by reader. A test compares it with the folder. */
export const contents = [
  {
    reader: "Integrate it",
    names: [
      "getting-started",
      "receiving-events",
      "verifying",
      "events",
      "endpoints",
      "api",
      "checkout-pages",
      "going-live",
      "errors",
      "agents"
    ]
  },
  { reader: "Use it", names: ["console"] },
  { reader: "Embed it", names: ["embedding", "client"] },
  {
    reader: "Operate it",
    names: [
      "running",
      "settings",
      "deploying",
      "accounts-and-people",
      "operating",
      "failover",
      "growth",
      "telemetry",
      "local-provider"
    ]
  },
  {
    reader: "Change it",
    names: [
      "contributing",
      "glossary",
      "contract",
      "decisions",
      "decisions-engine",
      "decisions-inbound",
      "decisions-data",
      "decisions-api",
      "performance"
    ]
  }
] as const

export type GuideName = (typeof contents)[number]["names"][number]

export const guideNames: ReadonlyArray<GuideName> = contents.flatMap(({ names }) => [...names])

export const guidesPath = "/docs" as const

export const guidePath = <const Name extends string>(name: Name) => `${guidesPath}/${name}` as const

export class GuidesNotFound extends Data.TaggedError("GuidesNotFound")<{ readonly cause: unknown }> {}

export const forMaintainers: ReadonlySet<string> = new Set(contents.find(({ reader }) => reader === "Change it")?.names)

/** A guide's file, relative to the package's folder; the compiled package has it where the sources have it. */
export const guideFile = (name: string): string =>
  `src/docs/${forMaintainers.has(name) ? "maintaining" : "guides"}/${name}.md`

const titleAndAbout = /^# (.+)\n\n([\s\S]+?\.)\s/

const guideOf = (name: string, markdown: string): Guide => {
  const [, title = name, about = ""] = titleAndAbout.exec(markdown) ?? []
  return { name, title, about: about.replaceAll("\n", " "), markdown }
}

export const readGuides: Effect.Effect<ReadonlyArray<Guide>, GuidesNotFound> = Effect.forEach(
  guideNames,
  (name) =>
    Effect.tryPromise({
      try: async () => guideOf(name, await readFile(new URL(guideFile(name), packageRoot), "utf8")),
      catch: (cause) => new GuidesNotFound({ cause })
    }),
  { concurrency: "unbounded" }
)
