/** For an embedding team's own tests: the database, the provider and the whole service, as scoped layers. */
export { EmbeddedPostgresError, type EmbeddedPostgresReason } from "../../platform/storage/embedded/EmbeddedPostgres.ts"
export { EmbeddedDatabase, embeddedClientLayer } from "./Database.ts"
export { LocalProvider } from "./LocalProvider.ts"
export {
  type RunningTestService,
  TestService,
  TestServiceFailed,
  type TestServiceOptions
} from "./TestService.ts"
