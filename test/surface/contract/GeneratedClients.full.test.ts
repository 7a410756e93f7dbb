import { execFile, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { openApiDocument } from "../../../src/surface/docs/OpenApiDocument.ts"
import { onSharedService, TestService } from "../../harness/TestService.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))

const run = (command: string, args: ReadonlyArray<string>, cwd: string, env: Readonly<Record<string, string>> = {}) =>
  Effect.promise(() =>
    promisify(execFile)(command, args, { cwd, env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 }).then(
      ({ stdout }) => stdout,
      // tsc writes its errors to standard output
      (error: { readonly stdout?: string; readonly stderr?: string }) => {
        throw new Error(`${command} ${args.join(" ")}: ${error.stdout} ${error.stderr}`)
      }
    )
  )

/** A folder with the document, inside the checkout so that packages are found from there. */
const workFolder = Effect.acquireRelease(
  Effect.sync(() => {
    mkdirSync(join(root, "node_modules/.cache"), { recursive: true })
    const folder = mkdtempSync(join(root, "node_modules/.cache/generated-"))
    writeFileSync(join(folder, "openapi.json"), JSON.stringify(openApiDocument()))
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const access = Effect.map(TestService, ({ baseUrl, organization }) => ({
  BASE_URL: baseUrl,
  ORGANIZATION_ID: organization.id,
  API_KEY: organization.testKey
}))

const payInPython = `import os
from uuid import UUID

import httpx
from payments.api.checkout_sessions import checkout_sessions_create, checkout_sessions_get
from payments.api.prices import prices_create
from payments.client import AuthenticatedClient
from payments.models import CheckoutSession, CreateCheckoutSession, CreatePrice, Price

client = AuthenticatedClient(
    base_url=os.environ["BASE_URL"], token=os.environ["API_KEY"], prefix="", auth_header_name="x-api-key"
)
organization = UUID(os.environ["ORGANIZATION_ID"])
price = prices_create.sync(
    organization,
    client=client,
    idempotency_key="py-price",
    body=CreatePrice.from_dict({"currency": "brl", "unit_amount": 1500, "product_data": {"name": "Coffee"}}),
)
assert isinstance(price, Price), price
created = checkout_sessions_create.sync(
    organization,
    client=client,
    idempotency_key="py-session",
    body=CreateCheckoutSession.from_dict({"mode": "payment", "line_items": [{"price": price.id, "quantity": 2}]}),
)
assert isinstance(created, CheckoutSession), created
httpx.post(created.url, data={"action": "pay"})
paid = checkout_sessions_get.sync(organization, created.id, client=client)
assert isinstance(paid, CheckoutSession), paid
print(paid.payment_status, paid.amount_total)
`

const goModule = `module payments

go 1.24

require (
	github.com/google/uuid v1.6.0
	github.com/oapi-codegen/oapi-codegen/v2 v2.8.2
	github.com/oapi-codegen/runtime v1.9.0
)
`

/** Its pruning overlooks what only the document's webhooks refer to. */
const goConfig = `package: main
output: client.go
generate: { models: true, client: true }
output-options: { skip-prune: true }
`

const payInGo = `package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/google/uuid"
)

func sent[T any](answer T, err error) T {
	if err != nil {
		panic(err)
	}
	return answer
}

func main() {
	ctx := context.Background()
	organization := uuid.MustParse(os.Getenv("ORGANIZATION_ID"))
	authorized := WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("x-api-key", os.Getenv("API_KEY"))
		return nil
	})
	client := sent(NewClientWithResponses(os.Getenv("BASE_URL"), authorized))
	amount := int64(2500000000)
	price := sent(client.PricesCreateWithResponse(ctx, organization, &PricesCreateParams{IdempotencyKey: "go-price"},
		CreatePrice{Currency: "idr", UnitAmount: &amount, ProductData: &CreatePriceProductData{Name: "Coffee"}})).JSON200
	session := sent(client.CheckoutSessionsCreateWithResponse(ctx, organization,
		&CheckoutSessionsCreateParams{IdempotencyKey: "go-session"},
		CreateCheckoutSession{Mode: "payment", LineItems: []CreateCheckoutSessionLineItemsItem{{Price: price.Id, Quantity: 2}}})).JSON200
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	sent(browser.PostForm(*session.Url, url.Values{"action": {"pay"}}))
	paid := sent(client.CheckoutSessionsGetWithResponse(ctx, organization, session.Id, nil)).JSON200
	fmt.Println(*paid.PaymentStatus, *paid.AmountTotal)
}
`

/** From the machine's own cache: a test downloads nothing. */
const goOffline = { GOFLAGS: "-mod=mod", GOPROXY: "off", GOSUMDB: "off" }
const goGenerator = "github.com/oapi-codegen/oapi-codegen/v2"
const goCache = String(spawnSync("go", ["env", "GOMODCACHE"]).stdout ?? "").trim()
const hasGoGenerator = goCache !== "" && existsSync(join(goCache, `${goGenerator}@v2.8.2`))

const hasPythonGenerator = spawnSync("python3", ["-c", "import openapi_python_client"]).status === 0

/** In milliseconds: a generator, a compiler and a client start one after the other. */
const limit = 600_000

onSharedService("a client generated from the OpenAPI document", (it) => {
  it.scoped.skipIf(!hasPythonGenerator)(
    "in Python imports and does a payment (skipped unless python3 can import openapi_python_client)",
    function* () {
      const folder = yield* workFolder
      writeFileSync(join(folder, "pay.py"), payInPython)
      // Without its hooks, which only format
      writeFileSync(join(folder, "config.json"), JSON.stringify({ post_hooks: [] }))
      const options = [
        "--path",
        "openapi.json",
        "--output-path",
        "payments",
        "--meta",
        "none",
        "--config",
        "config.json"
      ]
      yield* run("python3", ["-m", "openapi_python_client", "generate", ...options], folder)
      yield* run("python3", ["-m", "compileall", "-q", "payments"], folder)
      const printed = yield* run("python3", ["pay.py"], folder, yield* access)
      expect(printed.trim()).toBe("paid 3000")
    },
    limit
  )

  it.scoped.skipIf(!hasGoGenerator)(
    "in Go compiles and does a payment of more than 32 bits (skipped unless go has oapi-codegen in its cache)",
    () =>
      Effect.gen(function* () {
        const folder = yield* workFolder
        writeFileSync(join(folder, "go.mod"), goModule)
        writeFileSync(join(folder, "pay.go"), payInGo)
        writeFileSync(join(folder, "config.yaml"), goConfig)
        yield* run(
          "go",
          ["run", `${goGenerator}/cmd/oapi-codegen`, "-config", "config.yaml", "openapi.json"],
          folder,
          goOffline
        )
        const printed = yield* run("go", ["run", "."], folder, { ...goOffline, ...(yield* access) })
        expect(printed.trim()).toBe("paid 5000000000")
      }),
    limit
  )
})
