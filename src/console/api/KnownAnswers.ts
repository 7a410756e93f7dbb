/**
 * The last answers with their tags, so that what is polled costs the service and the network a 304 while nothing has
 * changed. In the page's memory alone: a browser's own cache is on the disk, and what an organization may see does not
 * belong there.
 */

interface KnownAnswer {
  readonly etag: string
  readonly value: unknown
}

/** More than a page asks for at once. */
const maxKnown = 50

const answers = new Map<string, KnownAnswer>()

/** The answer that was had last; undefined if none is known. */
export const knownAnswer = (asked: string): KnownAnswer | undefined => answers.get(asked)

/** Keeps an answer, in place of the one that was kept longest. */
export const keepAnswer = (asked: string, answer: KnownAnswer): void => {
  answers.delete(asked)
  answers.set(asked, answer)
  if (answers.size <= maxKnown) return
  for (const oldest of answers.keys()) {
    answers.delete(oldest)
    return
  }
}

/** Forgets everything, as at the end of a session. */
export const forgetAnswers = (): void => answers.clear()
