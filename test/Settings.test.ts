import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Either, Option, Redacted } from "effect"
import { settingRows } from "../src/platform/settings/Definitions.ts"
import { exporterRows, headerSettings } from "../src/platform/settings/ExportSettings.ts"
import { misspeltSettings, readSettings, type SettingsShape } from "../src/platform/settings/Settings.ts"

type Variables = Readonly<Record<string, string>>

const read = (variables: Variables) =>
  Effect.runSync(
    Effect.either(
      readSettings.pipe(Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables)))))
    )
  )

const good = (variables: Variables): SettingsShape => {
  const result = read(variables)
  if (Either.isLeft(result)) {
    throw new Error(`Refused: ${result.left.message}`)
  }
  return result.right
}

const refusal = (variables: Variables): ReadonlyArray<string> => {
  const result = read(variables)
  return Either.isLeft(result) ? result.left.message.split("\n") : []
}

const masterKey = (fill: number) => Buffer.alloc(32, fill).toString("base64")

const production = {
  MODE: "production",
  DATABASE_URL: "postgresql://service:s3cr3tpassword@db.internal:5432/payments",
  MASTER_KEYS: `k1:${masterKey(1)}`,
  PUBLIC_URL: "https://payments.example",
  CHECKOUT_SUCCESS_URL: "https://shop.example/thanks?session_id={CHECKOUT_SESSION_ID}",
  CHECKOUT_CANCEL_URL: "https://shop.example/cart",
  PROVIDER_PRODUCTION_SECRET_KEY: "sk_live_platformsecret",
  PROVIDER_PRODUCTION_WEBHOOK_SECRETS: "whsec_livesecret",
  SMTP_URL: "smtps://mailer:m4ilpassword@smtp.example:465"
}

const without = (variables: Variables, name: string): Variables =>
  Object.fromEntries(Object.entries(variables).filter(([key]) => key !== name))

const sandboxProvider = {
  PROVIDER_SANDBOX_SECRET_KEY: "sk_test_platformsecret",
  PROVIDER_SANDBOX_WEBHOOK_SECRETS: "whsec_testsecret"
}

describe("settings", () => {
  it("need nothing on a developer's machine", () => {
    const settings = good({})
    expect(settings).toMatchObject({
      mode: "local",
      host: "127.0.0.1",
      port: 8080,
      roles: { api: true, worker: true },
      endpointLimit: 16,
      console: true,
      eventStreamLimit: 100,
      rateLimitPerMinute: 600,
      trustedOrigins: [],
      allowLocalDestinations: true
    })
    expect(Duration.toSeconds(settings.delivery.timeout)).toBe(10)
    const { databaseUrl, masterKeys, provider } = settings
    expect(Option.isNone(databaseUrl) && Option.isNone(masterKeys) && Option.isNone(provider.sandbox)).toBe(true)
  })

  it("take a complete production configuration", () => {
    const settings = good(production)
    expect(settings).toMatchObject({ mode: "production", allowLocalDestinations: false })
    expect(Option.map(settings.databaseUrl, Redacted.value)).toEqual(Option.some(production.DATABASE_URL))
    expect(settings.publicUrl).toEqual(Option.some("https://payments.example"))
    expect(settings.checkoutSuccessUrl).toEqual(Option.some(production.CHECKOUT_SUCCESS_URL))
    expect(Option.isSome(settings.provider.production) && Option.isNone(settings.provider.sandbox)).toBe(true)
  })

  it.each([
    ["HOST", "0.0.0.0", (s: SettingsShape) => s.host, "0.0.0.0"],
    ["PORT", "0", (s: SettingsShape) => s.port, 0],
    ["PORT", "65535", (s: SettingsShape) => s.port, 65_535],
    [
      "PUBLIC_URL",
      "https://pay.example/base//",
      (s: SettingsShape) => Option.getOrNull(s.publicUrl),
      "https://pay.example/base"
    ],
    ["ROLES", "api", (s: SettingsShape) => s.roles, { api: true, worker: false }],
    ["ROLES", "worker", (s: SettingsShape) => s.roles, { api: false, worker: true }],
    ["SHUTDOWN_TIMEOUT", "2 seconds", (s: SettingsShape) => Duration.toMillis(s.shutdownTimeout), 2000],
    ["DATABASE_POOL_SIZE", "2", (s: SettingsShape) => s.databasePoolSize, 2],
    ["ALLOW_LOCAL_DESTINATIONS", "false", (s: SettingsShape) => s.allowLocalDestinations, false],
    [
      "ALLOWED_DESTINATION_NETWORKS",
      "172.16.0.0/12, fd00::/8,10.1.2.3",
      (s: SettingsShape) => ["172.18.0.2", "10.1.2.3", "10.1.2.4"].map((one) => s.destinationNetworks.check(one)),
      [true, true, false]
    ],
    ["SHUTDOWN_DELAY", "5 seconds", (s: SettingsShape) => Duration.toMillis(s.http.shutdownDelay), 5000],
    ["ENDPOINT_LIMIT", "1000", (s: SettingsShape) => s.endpointLimit, 1000],
    ["DELIVERY_TIMEOUT", "100 millis", (s: SettingsShape) => Duration.toMillis(s.delivery.timeout), 100],
    ["DELIVERY_CONCURRENCY", "1", (s: SettingsShape) => s.delivery.concurrency, 1],
    ["RATE_LIMIT_PER_MINUTE", "1200", (s: SettingsShape) => s.rateLimitPerMinute, 1200],
    [
      "TRUSTED_ORIGINS",
      "https://app.example, http://localhost:3000",
      (s: SettingsShape) => s.trustedOrigins,
      ["https://app.example", "http://localhost:3000"]
    ],
    ["TRUSTED_PROXIES", "10.0.0.0/8,::1", (s: SettingsShape) => s.trustedProxies.check("10.9.8.7"), true],
    ["TRUSTED_PROXIES", "10.0.0.0/8,::1", (s: SettingsShape) => s.trustedProxies.check("::1", "ipv6"), true],
    ["TRUSTED_PROXIES", "10.0.0.0/8,::1", (s: SettingsShape) => s.trustedProxies.check("11.0.0.1"), false],
    [
      "TRUSTED_TRACE_PARENTS",
      "10.0.0.0/8,::1",
      (s: SettingsShape) => ["10.9.8.7", "11.0.0.1"].map((address) => s.trustedTraceParents.check(address)),
      [true, false]
    ],
    ["SMTP_URL", "smtp://localhost:1025", (s: SettingsShape) => Option.isSome(s.smtpUrl), true],
    ["DATABASE_URL", "postgres:///payments?host=/run", (s: SettingsShape) => Option.isSome(s.databaseUrl), true],
    [
      "DATABASE_URL",
      "postgres://u:p@h1:5432,h2:5433/payments?target_session_attrs=read-write",
      (s: SettingsShape) => Option.isSome(s.databaseUrl),
      true
    ],
    ["DATABASE_READ_URL", "postgres://u:p@h1,h2/db", (s: SettingsShape) => Option.isSome(s.databaseReadUrl), true],
    ["LOCAL_ACCOUNT_ID", "acct_1", (s: SettingsShape) => Option.getOrNull(s.provider.localAccountId), "acct_1"]
  ])("%s may be %s", (name, value, from, expected) => {
    expect(from(good({ [name]: value }))).toEqual(expected)
  })

  it.each([
    ["MODE", ["", "staging", "Production"]],
    ["HOST", ["", "  "]],
    ["PORT", ["", "-1", "65536", "80.5", "http", "1e3", "0x50"]],
    [
      "PUBLIC_URL",
      [
        ...["", "shop.example", "ftp://shop.example", "javascript:alert(1)"],
        ...["https://shop.example/?a=b", "https://shop.example/#a", "https://name:word@shop.example"]
      ]
    ],
    ["ROLES", ["", "both", "API"]],
    ["SHUTDOWN_TIMEOUT", ["", "soon", "1 millis"]],
    ["SHUTDOWN_DELAY", ["", "soon", "1"]],
    [
      "ALLOWED_DESTINATION_NETWORKS",
      [
        "",
        "receiver",
        "172.16.0.0/33",
        "0.0.0.0/0",
        "169.254.0.0/16",
        "100.100.100.200",
        "127.0.0.0/8",
        "8.8.8.8",
        "::/0"
      ]
    ],
    ["DATA_DIR", ["", " "]],
    [
      "DATABASE_URL",
      [
        "",
        "payments",
        "mysql://u:s3cr3t@host/db",
        "postgresql:payments",
        "postgres://u:s3cr3t@h1,,h2/db",
        "postgres://u:s3cr3t@h1,h2/db?target_session_attrs=standby"
      ]
    ],
    [
      "DATABASE_READ_URL",
      ["", "mysql://u:s3cr3t@host/db", "postgres://u:s3cr3t@h1/db?target_session_attrs=read-write"]
    ],
    ["DATABASE_POOL_SIZE", ["", "1", "501"]],
    ["PROVIDER_API_URL", ["", "localhost:12111"]],
    ["LOCAL_ACCOUNT_ID", ["", "acct_", "cus_123", "acct_a/b"]],
    ["CHECKOUT_SUCCESS_URL", ["", "/thanks"]],
    ["CHECKOUT_CANCEL_URL", ["", "/cart"]],
    ["ALLOW_LOCAL_DESTINATIONS", ["", "maybe"]],
    ["ENDPOINT_LIMIT", ["", "0", "1001", "1.5"]],
    ["RATE_LIMIT_PER_MINUTE", ["", "0", "-600", "lots"]],
    ["FAILED_AUTHENTICATIONS_PER_MINUTE", ["", "0"]],
    ["TRUSTED_TRACE_PARENTS", ["", "gateway.internal", "10.0.0.0/33"]],
    ["TRUSTED_PROXIES", ["", "proxy.internal", "10.0.0.0/33", "10.0.0.0/", "10.0.0.1,", "::/129", "10.0.0.0/8/8"]],
    ["TRUSTED_ORIGINS", ["", "app.example", "https://app.example/", "https://app.example,*", "null"]],
    [
      "SMTP_URL",
      ["", "smtp.example:25", "https://smtp.example", "smtp://", "smtp://a:b c@x", '"smtp://a:b@x"', "smtp://a:b@x'"]
    ],
    ["MAIL_FROM", ["", " "]],
    ["EMULATOR_PORT", ["", "65536"]],
    ["PROVIDER_TIMEOUT", ["", "999 millis", "10"]],
    ["PROVIDER_CONCURRENCY_PER_ACCOUNT", ["", "0", "1001", "many"]],
    [
      "IMAGE_STORE_URL",
      ["", "bucket", "s3://bucket", "https://key:secret@s3.example/bucket", "https://s3.example/b?x=1"]
    ],
    ["IMAGE_STORE_REGION", [""]],
    ["DELIVERY_TIMEOUT", ["", "99 millis", "10"]],
    ["DELIVERY_LEASE_MARGIN", ["", "999 millis"]],
    ["DELIVERY_CONCURRENCY", ["", "0", "10001"]],
    ["DELIVERY_CONCURRENCY_PER_ENDPOINT", ["", "0", "1001"]],
    ["DELIVERY_POLL_INTERVAL", ["", "9 millis"]],
    // A delivery can be re-sent for 72 hours
    ["DELIVERY_RETENTION", ["", "3 days", "30"]],
    // The provider can repeat a notification for 30 days
    ["RECEIPT_RETENTION", ["", "29 days", "400"]],
    ["AUDIT_RETENTION", ["", "23 hours", "730"]]
  ])("%s is refused by its name where it is wrong", (name, values) => {
    for (const value of values) {
      const lines = refusal({ [name]: value })
      expect(lines, `${name}=${value}`).toHaveLength(1)
      expect(lines[0], `${name}=${value}`).toMatch(new RegExp(`^${name}: \\S`))
    }
  })

  it("are refused all at once, each by its name", () => {
    const names = refusal({ PORT: "x", ROLES: "x", ENDPOINT_LIMIT: "0", DATABASE_URL: "" }).map(
      (line) => line.split(":")[0]
    )
    expect(names.toSorted()).toEqual(["DATABASE_URL", "ENDPOINT_LIMIT", "PORT", "ROLES"])
  })

  it("keep the marker of the session's id in return URLs", () => {
    const url = "https://shop.example/t?s={CHECKOUT_SESSION_ID}&x=1"
    expect(good({ CHECKOUT_SUCCESS_URL: url }).checkoutSuccessUrl).toEqual(Option.some(url))
  })
})

describe("the store of product images", () => {
  const bucket = {
    IMAGE_STORE_URL: "https://s3.example/bucket/shop",
    IMAGE_STORE_ACCESS_KEY_ID: "AKIDEXAMPLE",
    IMAGE_STORE_SECRET_ACCESS_KEY: "s3cr3t"
  }

  it("is the database where nothing is said, else a bucket with its credentials", () => {
    expect(good({}).imageStore).toEqual(Option.none())
    const { secretAccessKey, ...store } = Option.getOrThrow(good({ ...bucket, IMAGE_STORE_REGION: "auto" }).imageStore)
    expect(store).toEqual({ url: new URL(bucket.IMAGE_STORE_URL), accessKeyId: "AKIDEXAMPLE", region: "auto" })
    expect(Redacted.value(secretAccessKey)).toBe("s3cr3t")
  })

  it.each(["s3cr3t\n", "s3 cr3t", '"s3cr3t"', "'s3cr3t'"])(
    "is refused with a secret key that can't be right: %j",
    (key) => {
      const lines = refusal({ ...bucket, IMAGE_STORE_SECRET_ACCESS_KEY: key })
      expect(lines).toEqual([expect.stringMatching(/^IMAGE_STORE_SECRET_ACCESS_KEY: /)])
      expect(lines.join()).not.toContain("cr3t")
    }
  )

  it.each(Object.keys(bucket))("is refused where %s is missing or empty and the others are set", (name) => {
    expect(refusal({ ...bucket, [name]: "" })).toEqual([expect.stringMatching(new RegExp(`^${name}: \\S`))])
    const lines = refusal(without(bucket, name))
    expect(lines).toEqual([expect.stringMatching(new RegExp(`^${name}: \\S`))])
    expect(lines.join()).not.toContain("s3cr3t")
  })
})

describe("the provider's credentials", () => {
  it("are a key and at least one webhook secret of the same environment", () => {
    const sandbox = good({ ...sandboxProvider, PROVIDER_SANDBOX_WEBHOOK_SECRETS: " whsec_a , whsec_b," }).provider
      .sandbox
    expect(
      Option.map(sandbox, ({ secretKey, webhookSecrets }) => [
        Redacted.value(secretKey),
        webhookSecrets.map(Redacted.value)
      ])
    ).toEqual(Option.some(["sk_test_platformsecret", ["whsec_a", "whsec_b"]]))
    for (const key of ["rk_test_restricted", "rkcs_test_claimable"]) {
      expect(good({ ...sandboxProvider, PROVIDER_SANDBOX_SECRET_KEY: key })).toBeDefined()
    }
  })

  it.each(["sk_live_platformsecret", "rk_live_platformsecret", "pk_test_x", "sk_test_", "", "sk_test_a b"])(
    "in sandbox are never %s",
    (key) => {
      const lines = refusal({ ...sandboxProvider, PROVIDER_SANDBOX_SECRET_KEY: key })
      expect(lines).toHaveLength(1)
      expect(lines[0]).toMatch(/^PROVIDER_SANDBOX_SECRET_KEY: /)
    }
  )

  it.each([
    ["is not a signing secret", "abc"],
    ["is in quotes", '"whsec_testsecret"'],
    ["has a space in it", "whsec_test secret"],
    ["has a line break in it", "whsec_test\nsecret"],
    ["is nothing but a prefix", "whsec_"]
  ])("are refused by their name where a webhook secret %s", (_, wrong) => {
    for (const value of [wrong, `whsec_good,${wrong}`]) {
      const lines = refusal({ ...sandboxProvider, PROVIDER_SANDBOX_WEBHOOK_SECRETS: value })
      expect(lines).toHaveLength(1)
      expect(lines[0]).toMatch(/^PROVIDER_SANDBOX_WEBHOOK_SECRETS: /)
      expect(lines[0]).not.toMatch(/good|abc|secret"/)
    }
  })

  it("in production are never the sandbox's", () => {
    const lines = refusal({ ...production, PROVIDER_PRODUCTION_SECRET_KEY: "sk_test_platformsecret" })
    expect(lines.map((line) => line.split(":")[0])).toEqual(["PROVIDER_PRODUCTION_SECRET_KEY"])
  })

  it("are refused with one webhook secret in both environments, and the message names both settings only", () => {
    const [message] = refusal({
      ...production,
      ...sandboxProvider,
      PROVIDER_SANDBOX_WEBHOOK_SECRETS: "whsec_testsecret,whsec_livesecret"
    })
    expect(message).toMatch(/^PROVIDER_PRODUCTION_WEBHOOK_SECRETS: .*PROVIDER_SANDBOX_WEBHOOK_SECRETS/)
    expect(message).not.toContain("whsec_")
  })

  it("are refused one without the other, in both directions", () => {
    for (const name of Object.keys(sandboxProvider)) {
      expect(refusal(without(sandboxProvider, name))[0]).toMatch(new RegExp(`^${name}: `))
    }
    for (const name of ["PROVIDER_PRODUCTION_SECRET_KEY", "PROVIDER_PRODUCTION_WEBHOOK_SECRETS"]) {
      expect(refusal(without(production, name))[0]).toMatch(new RegExp(`^${name}: `))
    }
    expect(refusal({ ...sandboxProvider, PROVIDER_SANDBOX_WEBHOOK_SECRETS: " , " })[0]).toMatch(
      /^PROVIDER_SANDBOX_WEBHOOK_SECRETS: /
    )
  })

  it("of production are taken with MODE=production only", () => {
    const { PROVIDER_PRODUCTION_SECRET_KEY, PROVIDER_PRODUCTION_WEBHOOK_SECRETS } = production
    expect(refusal({ PROVIDER_PRODUCTION_SECRET_KEY, PROVIDER_PRODUCTION_WEBHOOK_SECRETS })[0]).toMatch(
      /^PROVIDER_PRODUCTION_SECRET_KEY: /
    )
  })
})

describe("production", () => {
  it.each(["DATABASE_URL", "MASTER_KEYS", "PUBLIC_URL", "CHECKOUT_SUCCESS_URL", "CHECKOUT_CANCEL_URL", "SMTP_URL"])(
    "does not start without %s",
    (name) => {
      expect(refusal(without(production, name)).map((line) => line.split(":")[0])).toEqual([name])
    }
  )

  it("does not start on the emulator, nor with local destinations", () => {
    const noProvider = without(
      without(production, "PROVIDER_PRODUCTION_SECRET_KEY"),
      "PROVIDER_PRODUCTION_WEBHOOK_SECRETS"
    )
    expect(refusal(noProvider)[0]).toMatch(/^PROVIDER_PRODUCTION_SECRET_KEY: .*emulator/)
    expect(refusal({ ...production, PROVIDER_API_URL: "http://127.0.0.1:12111" })[0]).toMatch(/^PROVIDER_API_URL: /)
    expect(refusal({ ...production, ALLOW_LOCAL_DESTINATIONS: "true" })[0]).toMatch(/^ALLOW_LOCAL_DESTINATIONS: /)
    expect(refusal({ ...production, ALLOWED_DESTINATION_NETWORKS: "172.16.0.0/12" })[0]).toMatch(
      /^ALLOWED_DESTINATION_NETWORKS: /
    )
  })

  it("does not start with a public URL that is not encrypted, nor with mail whose TLS is turned off", () => {
    expect(refusal({ ...production, PUBLIC_URL: "http://payments.example" })).toEqual([
      "PUBLIC_URL: must start with https:// with MODE=production"
    ])
    for (const query of [
      "ignoreTLS=true",
      "secure=false",
      "pool=1&requireTLS=false",
      "tls.rejectUnauthorized=false",
      "%69gnoreTLS=true"
    ]) {
      const problems = refusal({ ...production, SMTP_URL: `smtp://mailer:m4il@smtp.example:587?${query}` })
      expect(
        problems.map((line) => line.split(":")[0]),
        query
      ).toEqual(["SMTP_URL"])
      expect(problems.join()).not.toContain("m4il")
    }
    for (const url of ["smtp://smtp.example:587", "smtp://u:100%25@smtp.example", "smtps://u:50%@smtp.example"]) {
      expect(good({ ...production, SMTP_URL: url }).mode, url).toBe("production")
    }
    expect(good({ SMTP_URL: "smtp://mail:1025?ignoreTLS=true", PUBLIC_URL: "http://127.0.0.1:8080" }).mode).toBe(
      "local"
    )
  })

  it("does not start with a database elsewhere whose connections may be plain", () => {
    const problemsOf = (name: string, url: string) =>
      refusal({ ...production, [name]: url }).map((line) => line.split(" with")[0])
    for (const name of ["DATABASE_URL", "DATABASE_DIRECT_URL", "DATABASE_READ_URL"]) {
      for (const host of ["db.example", "db.example,10.0.0.2", "8.8.8.8"]) {
        for (const query of ["", "?sslmode=prefer", "?sslmode=disable", "?ssl=0"]) {
          const url = `postgresql://u:s3cr3t@${host}/payments${query}`
          expect(problemsOf(name, url), url).toEqual([`${name}: must have sslmode=verify-full`])
        }
      }
    }
    for (const url of [
      ...["db.example/p?sslmode=require", "8.8.8.8,db.example/p?sslmode=verify-full", "db.example/p?ssl=true"],
      ...[
        "127.0.0.1/p",
        "localhost/p",
        "[::1]:5432/p",
        "/p?host=/run",
        "10.1.2.3,[fd00::1]/p",
        "postgres/p",
        "db.internal/p"
      ]
    ]) {
      expect(problemsOf("DATABASE_URL", `postgresql://${url}`), url).toEqual([])
    }
    expect(good({ DATABASE_URL: "postgresql://u:p@db.example/payments" }).mode).toBe("local")
  })

  it("reads each secret from a file, and says which file can't be read or is wrong, but nothing of it", () => {
    const rows = [...settingRows, ...exporterRows]
    const secrets = rows.flatMap(({ file, name }) => (file === undefined ? [] : [[name, file] as const]))
    // By their declaration, and by their names as well
    expect(secrets.map(([name]) => name)).toEqual(
      rows.map(({ name }) => name).filter((name) => /SECRET|_KEYS$|_HEADERS$|DATABASE_.*URL|SMTP_URL/.test(name))
    )
    const gone = Object.fromEntries(secrets.map(([name, file]) => [file, `/nowhere/${name}`]))
    const provided = Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(gone))))
    const headers = headerSettings.map((header) => Effect.runSync(Effect.flip(provided(header))).toString())
    const problems = [...refusal(gone), ...headers].join("\n")
    for (const [, file] of secrets) expect(problems).toMatch(new RegExp(`${file}.*the file can't be read \\(ENOENT`))

    const file = join(mkdtempSync(join(tmpdir(), "connected-payments-")), "keys")
    writeFileSync(file, `${production.MASTER_KEYS}\n`)
    const fromFile = { ...without(production, "MASTER_KEYS"), MASTER_KEYS_FILE: file }
    expect(Option.map(good(fromFile).masterKeys, ([{ id }]) => id)).toEqual(Option.some("k1"))
    writeFileSync(file, "s3cr3t")
    const [wrong, ...more] = refusal(fromFile)
    expect([wrong, more]).toEqual([expect.stringMatching(/^MASTER_KEYS: must be a list/), []])
    expect(wrong).not.toContain("s3cr3t")
    rmSync(dirname(file), { recursive: true })
  })

  it("warns of names that resemble a setting's", () => {
    expect(
      misspeltSettings(["DELIVERY_RETENTON", "PUBLIC_URI", "NODE", "PATH", "PORT", "LOG_LEVEL", "NODE_ENV", "HOSTNAME"])
    ).toEqual([
      "DELIVERY_RETENTON is not a setting, and changes nothing: did you mean DELIVERY_RETENTION?",
      "PUBLIC_URI is not a setting, and changes nothing: did you mean PUBLIC_URL?"
    ])
  })

  it("names everything that is missing at once", () => {
    expect(refusal({ MODE: "production" })).toHaveLength(7)
  })
})

describe("master keys", () => {
  it("are a list, the current one first", () => {
    const keys = good({ MASTER_KEYS: `new:${masterKey(2)}, old:${masterKey(1)}` }).masterKeys
    expect(
      Option.map(keys, (all) => all.map(({ id, key }) => [id, Buffer.from(Redacted.value(key)).toString("base64")]))
    ).toEqual(
      Option.some([
        ["new", masterKey(2)],
        ["old", masterKey(1)]
      ])
    )
  })

  it.each([
    "",
    "k1",
    "k1:",
    `:${masterKey(1)}`,
    `k 1:${masterKey(1)}`,
    `k1:${Buffer.alloc(31).toString("base64")}`,
    `k1:${Buffer.alloc(33).toString("base64")}`,
    `k1:${masterKey(1)}:x`,
    `k1:"${masterKey(1)}"`,
    `"k1:${masterKey(1)}"`,
    `k1:${masterKey(1).slice(0, 9)}\n${masterKey(1).slice(9)}`,
    `k1:${masterKey(1)},k1:${masterKey(2)}`,
    `k1:${masterKey(1)},`
  ])("are not %j", (value) => {
    expect(refusal({ MASTER_KEYS: value })[0]).toMatch(/^MASTER_KEYS: /)
  })
})

describe("a secret's value", () => {
  const secrets: Variables = {
    DATABASE_URL: "mysql://user:TOPSECRET@host/db",
    MASTER_KEYS: "k1:TOPSECRET",
    SMTP_URL: "mailer:TOPSECRET@smtp.example",
    PROVIDER_SANDBOX_SECRET_KEY: "sk_live_TOPSECRET",
    PROVIDER_PRODUCTION_SECRET_KEY: "sk_test_TOPSECRET",
    PROVIDER_SANDBOX_WEBHOOK_SECRETS: "whsec_TOPSECRET",
    PROVIDER_PRODUCTION_WEBHOOK_SECRETS: "whsec_TOPSECRET"
  }

  it.each(Object.keys(secrets))("of %s is in no refusal, alone or with the others", (name) => {
    for (const variables of [{ [name]: secrets[name] ?? "" }, secrets, { ...secrets, MODE: "production" }]) {
      const message = refusal(variables).join("\n")
      expect(message).not.toBe("")
      expect(message).not.toContain("TOPSECRET")
    }
  })

  it("is in no printed settings", () => {
    const settings = good({ ...production, ...sandboxProvider })
    const printed = `${JSON.stringify(settings)}\n${String(settings.databaseUrl)}`
    for (const secret of ["s3cr3tpassword", "m4ilpassword", "platformsecret", "livesecret", "testsecret"]) {
      expect(printed).not.toContain(secret)
    }
  })
})
