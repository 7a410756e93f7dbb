import { text } from "../../platform/bounds/Text.ts"

/** An event's public id in a request. */
export const EventIdText = text({
  min: 9,
  max: 128,
  pattern: /^svc_(?:evt_[0-9a-f]{64}|test_evt_[A-Za-z0-9_-]+)$/,
  rule: "must be an event's id: svc_evt_ and 64 hexadecimal digits, or svc_test_evt_ and the test's id"
}).annotations({ description: "The event's id" })
