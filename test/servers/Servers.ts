import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** The servers that answer in `Servers.test.ts`. Each runs a program with the same six answers, as far as it has them. */

const programs = fileURLToPath(new URL("./programs/", import.meta.url))

/** What is compiled, downloaded or written for them; kept from run to run. */
const kept = fileURLToPath(new URL("../../node_modules/.cache/servers/", import.meta.url))

const paths = ["/200", "/204", "/204-length", "/103", "/chunked", "/close"] as const
export type Path = (typeof paths)[number]

/** What a server sent, by path, in `latin1`; divided by whether its connection was used again. */
export interface Recorded {
  readonly reused: Partial<Record<Path, string>>
  readonly closed: Partial<Record<Path, string>>
}

export const recordedIn = new URL("./answers.json", import.meta.url)

/** What `npm run test:servers` recorded, by server. */
export const recorded: Readonly<Record<string, Recorded>> = JSON.parse(readFileSync(recordedIn, "utf8"))

export interface RealServer {
  readonly name: string
  readonly paths: ReadonlyArray<Path>
  /** Installs what it needs if that is missing; throws if the machine can't. */
  readonly prepare: () => unknown
  /** Runs it in the foreground. `behind`: the port of the first server, for those that are proxies. */
  readonly command: (port: number, behind: number) => readonly [program: string, ...parameters: Array<string>]
}

const run = (program: string, parameters: ReadonlyArray<string>) => {
  mkdirSync(kept, { recursive: true })
  return execFileSync(program, parameters, { cwd: kept, stdio: "pipe", env: { ...process.env, GOBIN: kept } })
}

const installedAs = (file: string, install: () => unknown): void => {
  if (!existsSync(`${kept}${file}`)) install()
}

const withoutHints = paths.filter((path) => path !== "/103")

const python = (name: string, parameters: (port: number) => string): RealServer => ({
  name,
  paths: withoutHints,
  prepare: () =>
    installedAs("python/bin/daphne", () => {
      run("python3", ["-m", "venv", "python"])
      run("python/bin/pip", ["install", "--quiet", "uvicorn", "hypercorn", "daphne", "gunicorn"])
    }),
  command: (port) => {
    const [program, ...rest] = parameters(port).split(" ")
    return ["env", `PYTHONPATH=${programs}`, "PYTHONDONTWRITEBYTECODE=1", `${kept}python/bin/${program}`, ...rest]
  }
})

const classPath = `${kept}:/usr/share/java/*`

/** With the libraries of Debian's packages `libjetty9-java` and `libtomcat10-java`. */
const java = (name: string): RealServer => ({
  name,
  paths: withoutHints,
  prepare: () => run("javac", ["-d", kept, "-cp", classPath, `${programs}${name}.java`]),
  command: (port) => ["java", "-cp", classPath, name, String(port)]
})

/** Writes a server's configuration with its ports. */
const configured = (file: string, port: number, behind: number): string => {
  const text = readFileSync(`${programs}${file}`, "utf8")
  writeFileSync(`${kept}${file}`, text.replace("PORT", String(port)).replace("BEHIND", String(behind)))
  return `${kept}${file}`
}

/** The others may be proxies of the first. */
export const servers: readonly [RealServer, ...Array<RealServer>] = [
  {
    name: "Node",
    paths,
    prepare: () => mkdirSync(kept, { recursive: true }),
    command: (port) => [process.execPath, `${programs}node.mjs`, String(port)]
  },
  {
    name: "Go",
    paths,
    prepare: () => run("go", ["build", "-o", "go-server", `${programs}server.go`]),
    command: (port) => [`${kept}go-server`, String(port)]
  },
  python("uvicorn", (port) => `uvicorn asgi:app --port ${port} --lifespan off`),
  python("hypercorn", (port) => `hypercorn asgi:app --bind 127.0.0.1:${port} --workers 0`),
  python("daphne", (port) => `daphne -b 127.0.0.1 -p ${port} asgi:app`),
  python("gunicorn", (port) => `gunicorn wsgi:app --bind 127.0.0.1:${port}`),
  python("gunicorn with threads", (port) => `gunicorn wsgi:app --bind 127.0.0.1:${port} --threads 2`),
  {
    name: "PHP",
    paths: withoutHints,
    prepare: () => run("php", ["--version"]),
    command: (port) => ["php", "-S", `127.0.0.1:${port}`, `${programs}index.php`]
  },
  {
    name: "puma",
    paths,
    prepare: () => run("puma", ["--version"]),
    command: (port) => ["puma", "--early-hints", "-b", `tcp://127.0.0.1:${port}`, `${programs}config.ru`]
  },
  java("Jetty"),
  java("Tomcat"),
  {
    name: "nginx",
    paths,
    prepare: () => run("nginx", ["-v"]),
    command: (port, behind) => ["nginx", "-p", kept, "-c", configured("nginx.conf", port, behind)]
  },
  {
    name: "Caddy",
    paths,
    prepare: () =>
      installedAs("caddy", () => run("go", ["install", "github.com/caddyserver/caddy/v2/cmd/caddy@v2.10.2"])),
    command: (port, behind) => [
      `${kept}caddy`,
      "run",
      "--adapter",
      "caddyfile",
      "--config",
      configured("Caddyfile", port, behind)
    ]
  }
]
