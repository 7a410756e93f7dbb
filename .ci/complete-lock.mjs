// Completes package-lock.json with the optional packages of other platforms. A registry mirror that does not carry them
// makes npm leave them out of the lock file, and `npm ci` then refuses it. Run it after every change of a dependency:
//   node .ci/complete-lock.mjs
import { readFileSync, writeFileSync } from "node:fs"

const file = new URL("../package-lock.json", import.meta.url)
const lock = JSON.parse(readFileSync(file, "utf8"))

const systems = {
  android: "android",
  darwin: "darwin",
  freebsd: "freebsd",
  linux: "linux",
  netbsd: "netbsd",
  openbsd: "openbsd",
  openharmony: "openharmony",
  sunos: "sunos",
  aix: "aix",
  win32: "win32",
  windows: "win32"
}
const processors = ["arm64", "arm", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "x64"]

/** What a platform package's name says of where it runs, e.g. `@rollup/rollup-linux-x64-musl`. */
const platformOf = (name) => {
  if (name === "fsevents") {
    return { os: ["darwin"] }
  }
  const words = name.split("/").at(-1).split("-")
  const os = words.map((word) => systems[word]).find((system) => system !== undefined)
  const cpu = processors.find((processor) => words.includes(processor))
  const libc = words.includes("musl") ? "musl" : words.includes("gnu") || words.includes("glibc") ? "glibc" : undefined
  return {
    ...(cpu === undefined ? {} : { cpu: [cpu] }),
    ...(os === undefined ? {} : { os: [os] }),
    ...(os === "linux" && libc !== undefined ? { libc: [libc] } : {})
  }
}

let added = 0
for (const [path, entry] of Object.entries(lock.packages)) {
  for (const [name, wanted] of Object.entries(entry.optionalDependencies ?? {})) {
    const nested = `${path}/node_modules/${name}`
    const hoisted = `node_modules/${name}`
    const platform = platformOf(name)
    if (lock.packages[nested] !== undefined || lock.packages[hoisted] !== undefined || platform.os === undefined) {
      continue
    }
    const version = wanted.replace(/^[~^]/, "")
    lock.packages[hoisted] = { version, ...platform, ...(entry.dev === true ? { dev: true } : {}), optional: true }
    added += 1
  }
}

const [root, ...rest] = Object.entries(lock.packages)
lock.packages = Object.fromEntries([root, ...rest.toSorted(([a], [b]) => (a < b ? -1 : 1))])
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
console.log(`${added} packages of other platforms added`)
