import { Effect } from "effect"
import { keyedWrite } from "../../identity/KeyedWrite.ts"
import { Principal } from "../../identity/Principal.ts"
import { handlersOf, serve } from "../../platform/kit/Handlers.ts"
import { SyntheticTests } from "../publishing/SyntheticTests.ts"
import { CreatedEndpoint, Endpoint, EndpointsApi, QueuedTest, RotatedEndpoint } from "./Api.ts"
import { Endpoints } from "./Endpoints.ts"

export const endpointsHandlers = handlersOf(
  EndpointsApi,
  Effect.all([Endpoints, SyntheticTests, keyedWrite]),
  ([endpoints, tests, write]) => ({
    list: () => Effect.flatMap(Principal, endpoints.list),
    create: (request) =>
      write.prepared({ operation: "endpoints.create", answer: CreatedEndpoint }, request, (tenant) =>
        endpoints.prepareCreate(tenant, request.payload)
      ),
    get: ({ path }) => Effect.flatMap(Principal, (principal) => endpoints.get(principal, path.id)),
    update: (request) =>
      write.atOnce({ operation: "endpoints.update", answer: Endpoint }, request, (tenant) =>
        endpoints.update(tenant, request.path.id, request.payload)
      ),
    delete: (request) =>
      write.deletion("endpoints.delete", request, (tenant) => endpoints.delete(tenant, request.path.id)),
    rotateSecret: (request) =>
      write.atOnce({ operation: "endpoints.rotate_secret", answer: RotatedEndpoint }, request, (tenant) =>
        endpoints.rotateSecret(tenant, request.path.id)
      ),
    test: (request) =>
      Effect.zipLeft(
        write.atOnce({ operation: "endpoints.test", answer: QueuedTest }, request, (tenant) =>
          tests.queue(tenant, request.path.id, request.payload.type)
        ),
        tests.announce
      ),
    skipped: ({ path, urlParams }) =>
      Effect.flatMap(Principal, (principal) => endpoints.listSkipped(principal, path.id, urlParams))
  })
)

export const endpointsHttp = serve(endpointsHandlers)
