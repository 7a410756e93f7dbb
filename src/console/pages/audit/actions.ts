/** Labels for the recorded actions. Unknown actions of a later version are shown unchanged. */
const words: Readonly<Record<string, string>> = {
  "organization.created": "Created the organization",
  "organization.updated": "Renamed the organization",
  "organization.closed": "Closed the organization",
  "member.added": "Added a member",
  "member.updated": "Changed a member",
  "member.removed": "Removed a member",
  "invitation.created": "Invited a person",
  "invitation.revoked": "Revoked an invitation",
  "invitation.accepted": "Accepted an invitation",
  "session.started": "Signed in",
  "session.ended": "Signed out",
  "api_key.created": "Created an API key",
  "api_key.revoked": "Revoked an API key",
  "return_urls.updated": "Changed the return pages",
  "account.onboarding_started": "Began to connect the account",
  "account.linked": "Connected the account",
  "account.unlinked": "Unlinked the account",
  "account.disconnected": "Disconnected the account",
  "endpoint.created": "Created a destination",
  "endpoint.updated": "Changed a destination",
  "endpoint.deleted": "Deleted a destination",
  "endpoint.secret_rotated": "Rotated a signing secret",
  "endpoint.tested": "Sent a test event",
  "event.triggered": "Triggered an event",
  "delivery.resent": "Re-sent a delivery",
  "recovery.started": "Recovered failed deliveries",
  "event_replay.started": "Started a replay",
  "event_replay.canceled": "Canceled a replay",
  "product.created": "Created a product",
  "product.updated": "Changed a product",
  "price.created": "Created a price",
  "price.updated": "Changed a price",
  "promotion_code.created": "Created a promotion code",
  "promotion_code.updated": "Changed a promotion code",
  "payment_link.created": "Created a payment link",
  "payment_link.updated": "Changed a payment link",
  "checkout_page.created": "Created a checkout page",
  "checkout_page.updated": "Changed a checkout page",
  "checkout_page.deleted": "Deleted a checkout page",
  "checkout_session.created": "Created a checkout session",
  "checkout_session.expired": "Expired a checkout session",
  "subscription.updated": "Changed a subscription",
  "subscription.canceled": "Canceled a subscription",
  "refund.created": "Refunded a payment",
  "product_image.uploaded": "Uploaded a product image",
  "product_image.removed": "Removed a product image",
  "receipt.replayed": "Handled a notification again"
}

export const actionWords = (action: string): string =>
  Object.hasOwn(words, action) ? (words[action] ?? action) : action

export const knownActions: ReadonlyArray<string> = Object.keys(words)

export const targetWord = (type: string): string => type.replaceAll("_", " ")
