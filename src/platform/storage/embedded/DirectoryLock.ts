import { rm, stat } from "node:fs/promises"
import { connect, createServer, type Server } from "node:net"
import { Data, Effect, Option, type Scope } from "effect"
import { UnknownException } from "effect/Cause"
import { hasErrorCode } from "../../errors/ErrorCode.ts"

/** A live process, possibly this one, holds the directory. */
export class DirectoryInUse extends Data.TaggedError("DirectoryInUse")<{
  /** Its process id; "unknown" if it doesn't answer. */
  readonly holder: string
}> {}

/**
 * The socket that the holder of a directory listens on, named after the directory itself, whatever path leads to it. On
 * Linux the name exists in the kernel only, and has the full length: Node.js 20 pads shorter ones, later versions don't.
 */
const socketOf = async (directory: string): Promise<string> => {
  const { dev, ino } = await stat(directory)
  const name = `connected-payments-${dev}-${ino}`
  return process.platform === "linux" ? `\0${name}`.padEnd(108, ".") : `/tmp/${name}.lock`
}

const listen = (path: string) =>
  new Promise<Option.Option<Server>>((resolve, reject) => {
    const server = createServer((socket) => socket.on("error", () => {}).end(String(process.pid)))
    server.once("error", (cause) => (hasErrorCode(cause, "EADDRINUSE") ? resolve(Option.none()) : reject(cause)))
    server.listen({ path, exclusive: true }, () => resolve(Option.some(server.unref())))
  })

/** Asks the holder for its process id; `None` if no live process listens. */
const holderOf = (path: string) =>
  new Promise<Option.Option<string>>((resolve) => {
    const socket = connect(path).setEncoding("utf8")
    let answer = "unknown"
    socket.setTimeout(2_000, () => socket.destroy())
    socket.once("data", (pid) => {
      answer = String(pid)
    })
    socket.once("error", (cause) => {
      if (hasErrorCode(cause, "ECONNREFUSED", "ENOENT")) resolve(Option.none())
    })
    socket.once("close", () => resolve(Option.some(answer)))
  })

const claim = async (directory: string): Promise<Server> => {
  const path = await socketOf(directory)
  for (;;) {
    const server = await listen(path)
    if (Option.isSome(server)) return server.value
    const holder = await holderOf(path)
    if (Option.isSome(holder)) throw new DirectoryInUse({ holder: holder.value })
    // It was released just now, or (on other systems than Linux) is the file of a process that was killed
    if (!path.startsWith("\0")) await rm(path, { force: true })
  }
}

/**
 * Holds a directory for this process until the scope closes or the process ends, in whatever way: the lock is a socket
 * that the process listens on, and that the kernel closes. It guards against processes on the same machine (one network
 * namespace), not against those that share the directory over a network.
 */
export const acquireLock = (directory: string): Effect.Effect<void, DirectoryInUse | UnknownException, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => claim(directory),
      catch: (cause) => (cause instanceof DirectoryInUse ? cause : new UnknownException(cause))
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(Effect.asVoid)

/** Like `acquireLock`, but returns false if a live process holds the directory. */
export const tryLock = (directory: string): Effect.Effect<boolean, UnknownException, Scope.Scope> =>
  acquireLock(directory).pipe(
    Effect.as(true),
    Effect.catchTag("DirectoryInUse", () => Effect.succeed(false))
  )

/** Whether a live process (including this one) holds the directory. */
export const isLocked = (directory: string): Effect.Effect<boolean, UnknownException> =>
  Effect.tryPromise(async () => Option.isSome(await holderOf(await socketOf(directory))))
