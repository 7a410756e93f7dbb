/**
 * Caches the last responses by ETag, so that polling unchanged data costs only a 304. In memory only: the browser's own
 * cache is on disk, where an organization's data does not belong.
 */

interface KnownAnswer {
  readonly etag: string
  readonly value: unknown
}

/** More than one page requests at once. */
const maxKnown = 50

const answers = new Map<string, KnownAnswer>()

/** The last cached response; undefined if there is none. */
export const knownAnswer = (asked: string): KnownAnswer | undefined => answers.get(asked)

/** Caches a response and evicts the oldest one beyond the limit. */
export const keepAnswer = (asked: string, answer: KnownAnswer): void => {
  answers.delete(asked)
  answers.set(asked, answer)
  if (answers.size <= maxKnown) return
  for (const oldest of answers.keys()) {
    answers.delete(oldest)
    return
  }
}

/** Clears the cache, as at the end of a session. */
export const forgetAnswers = (): void => answers.clear()
