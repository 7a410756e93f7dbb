/** For consumers of the service's events: verify a delivery and read its event. Depends on nothing but `node:crypto`. */
export * from "./Events.ts"
export * from "./Verify.ts"
