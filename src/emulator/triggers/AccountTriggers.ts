import { Effect } from "effect"
import type { RequestContext } from "../api/Route.ts"
import { type AccountChanges, changedAccount, usualChange } from "../control/AccountChanges.ts"
import { emit, emitThin } from "../events/Events.ts"
import { newId, platformApplicationId } from "../Ids.ts"
import { accountInvalid, type ProviderError } from "../ProviderError.ts"
import type { Account, Event } from "../Records.ts"
import type { Implementations } from "./Trigger.ts"
import type { OptionsOf } from "./TriggerList.ts"

/** The platform as an account's owner sees it: the application that acts for the account. */
const application = { id: platformApplicationId, object: "application", name: "Emulated platform" }

interface Forms {
  readonly snapshot: boolean
  readonly thin: boolean
}

interface Changed {
  readonly before: Account
  readonly after: Account
}

/** Applies the options to the account; without options, makes the {@link usualChange}. */
const change = (context: RequestContext, asked: AccountChanges): Effect.Effect<Changed, ProviderError> => {
  const before = context.platform.objects.get("account", context.account)
  if (before === undefined) return accountInvalid(context.account)
  const after = changedAccount(before, Object.keys(asked).length === 0 ? usualChange(before, context.now) : asked)
  context.platform.objects.put("account", after.id, after)
  return Effect.succeed({ before, after })
}

const snapshotOf = (context: RequestContext, { after, before }: Changed, isSent: boolean): Event =>
  emit(
    context.objects,
    { ...context, unsent: !isSent },
    { type: "account.updated", shape: "account", object: after, previous: before }
  )

/** Updates the account. The provider stores the snapshot event of a thin `v1` event whether or not it is sent. */
const update = (context: RequestContext, asked: AccountChanges, forms: Forms) =>
  Effect.map(change(context, asked), (changed) => {
    const { id } = changed.after
    const snapshot = snapshotOf(context, changed, forms.snapshot)
    if (forms.thin) {
      emitThin(context.objects, context.now, {
        type: "v1.account.updated",
        context: id,
        related: { id, type: "account", url: `/v1/accounts/${id}` },
        snapshot: snapshot.id
      })
    }
    return id
  })

export const deauthorize = (context: RequestContext, forms: Forms) =>
  Effect.sync(() => {
    const { account, objects, platform } = context
    platform.objects.put("connection", account, { account, revoked: true })
    const snapshot = emit(
      objects,
      { ...context, unsent: !forms.snapshot },
      { type: "account.application.deauthorized", shape: "application", object: application }
    )
    if (forms.thin) {
      emitThin(objects, context.now, {
        type: "v1.account.application.deauthorized",
        context: account,
        snapshot: snapshot.id
      })
    }
    return application.id
  })

/** Changes a capability. Only the event's context names the account: the event's object is the capability. */
const changeCapability = (
  context: RequestContext,
  { capability = "card_payments", status = "inactive" }: OptionsOf<"v1.capability.updated">
) =>
  Effect.map(
    change(context, {
      capabilities: { [capability]: status },
      ...(capability === "card_payments" ? { charges_enabled: status === "active" } : {}),
      ...(capability === "transfers" ? { payouts_enabled: status === "active" } : {})
    }),
    ({ after: { id } }) => {
      emitThin(context.objects, context.now, {
        type: "v1.capability.updated",
        context: id,
        related: { id: capability, type: "capability", url: `/v1/accounts/${id}/capabilities/${capability}` }
      })
      return capability
    }
  )

/** Changes requirements in the newer accounts API: the event belongs to the platform, and its object is the account. */
const updateRequirements = (context: RequestContext, asked: AccountChanges) =>
  Effect.map(change(context, asked), ({ after: { id } }) => {
    emitThin(context.objects, context.now, {
      type: "v2.core.account[requirements].updated",
      related: { id, type: "v2.core.account", url: `/v2/core/accounts/${id}` }
    })
    return id
  })

const ping = ({ now, platform }: RequestContext) =>
  Effect.sync(() => {
    const id = newId("ed_test_")
    emitThin(platform.objects, now, {
      type: "v2.core.event_destination.ping",
      related: { id, type: "v2.core.event_destination", url: `/v2/core/event_destinations/${id}` }
    })
    return id
  })

export const accountTriggers = {
  "account.updated": (context, { thin = false, ...asked }) => update(context, asked, { snapshot: true, thin }),
  "account.application.deauthorized": (context, { thin = false }) => deauthorize(context, { snapshot: true, thin }),
  "v1.account.updated": (context, { snapshot = false, ...asked }) => update(context, asked, { snapshot, thin: true }),
  "v1.account.application.deauthorized": (context, { snapshot = false }) =>
    deauthorize(context, { snapshot, thin: true }),
  "v1.capability.updated": changeCapability,
  "v2.core.account[requirements].updated": updateRequirements,
  "v2.core.event_destination.ping": ping
} satisfies Partial<Implementations>
