import { statfsSync } from "node:fs"
import { freemem, tmpdir } from "node:os"
import { setupIn } from "./globalSetup.ts"

/** Where Linux keeps files in memory. */
const inMemory = "/dev/shm"

/** What a run needs there is half a gigabyte. */
const enough = 4 * 1024 ** 3

const isRoomy = (): boolean => {
  try {
    const { bavail, bsize } = statfsSync(inMemory)
    return bavail * bsize >= enough && freemem() >= enough
  } catch {
    // Another system, which has none
    return false
  }
}

/**
 * The global set-up in memory if there is plenty, unless `TMPDIR` names a place: files on a disk cost PostgreSQL as much
 * processor time as all that tests ask of it.
 */
export default setupIn(process.env["TMPDIR"] === undefined && isRoomy() ? inMemory : tmpdir())
