import { Effect } from "effect"
import { ValidationFailed } from "../../platform/errors/Errors.ts"
import type { Tools } from "./Tools.ts"

/** The tools of one connection: an agent works better with only the few that it needs. */

export const maxChosenTools = 100

/**
 * Sets of tools for common tasks, by the names that a connection gives for them: each leaves a model room for its work. A
 * test holds their size.
 */
export const toolSets: Readonly<Record<string, ReadonlyArray<string>>> = {
  sell: [
    "list_products",
    "create_product",
    "list_prices",
    "create_price",
    "create_checkout_session",
    "get_checkout_session",
    "expire_checkout_session",
    "list_payment_links",
    "create_payment_link",
    "update_payment_link"
  ],
  support: [
    "search_payments",
    "list_payment_intents",
    "get_payment_intent",
    "list_charges",
    "get_charge",
    "list_checkout_sessions",
    "get_checkout_session",
    "list_checkout_session_line_items",
    "list_refunds",
    "create_refund",
    "list_disputes",
    "list_subscriptions",
    "get_subscription",
    "update_subscription"
  ],
  webhooks: [
    "list_event_types",
    "list_webhook_endpoints",
    "create_webhook_endpoint",
    "update_webhook_endpoint",
    "send_webhook_test_event",
    "list_all_webhook_deliveries",
    "list_webhook_deliveries",
    "get_webhook_delivery",
    "retry_webhook_delivery",
    "recover_webhook_endpoint",
    "replay_webhook_events",
    "list_webhook_events",
    "get_webhook_event",
    "get_webhook_statistics"
  ],
  read: [
    "list_products",
    "list_prices",
    "list_payment_intents",
    "get_payment_intent",
    "list_checkout_sessions",
    "list_refunds",
    "list_disputes",
    "list_customers",
    "list_subscriptions",
    "get_balance",
    "list_payouts",
    "list_webhook_endpoints",
    "list_webhook_events",
    "list_all_webhook_deliveries",
    "get_webhook_statistics"
  ]
}

/** The form of a tool's name; errors repeat no other text from the request. */
const nameForm = /^[a-z_]{1,64}$/

const refused = (message: string) => new ValidationFailed({ message, fields: ["tools"] })

/**
 * The tools that the address of a connection names, as `?tools=sell,get_balance`: 1 to 100 names of tools or of sets,
 * separated by commas. Without `tools`, all of them.
 *
 * @param target the target of the request's line, e.g. `/mcp?tools=list_products`
 */
export const chosenTools = (tools: Tools, target: string): Effect.Effect<Tools, ValidationFailed> => {
  const start = target.indexOf("?")
  if (start === -1) return Effect.succeed(tools)
  const query = new URLSearchParams(target.slice(start + 1))
  if ([...query.keys()].some((name) => name !== "tools")) {
    return new ValidationFailed({ message: "The tool server takes one query parameter: `tools`." })
  }
  const [list, ...others] = query.getAll("tools")
  if (list === undefined) return Effect.succeed(tools)
  const names = list.split(",", maxChosenTools + 1)
  if (others.length > 0 || names.length > maxChosenTools) {
    return refused(`\`tools\` in the query must be given once, with 1 to ${maxChosenTools} names, separated by commas.`)
  }
  const chosen = new Map<string, NonNullable<ReturnType<Tools["get"]>>>()
  // A set has those of its tools that the installation's provider supports
  const inSet = (set: string) => (toolSets[set] ?? []).filter((name) => tools.has(name))
  for (const name of names.flatMap((given) => (Object.hasOwn(toolSets, given) ? inSet(given) : given))) {
    const tool = tools.get(name)
    if (tool === undefined) {
      const which = nameForm.test(name) ? `; there is no tool ${name}` : ""
      return refused(
        `\`tools\` in the query must be names of tools, such as list_products, or of sets: ${Object.keys(toolSets).join(", ")}${which}.`
      )
    }
    chosen.set(name, tool)
  }
  return Effect.succeed(chosen)
}
