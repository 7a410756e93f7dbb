# syntax=docker/dockerfile:1
# To build on an image that nobody can change, name its digest: --build-arg NODE_IMAGE=node:24-bookworm-slim@sha256:…
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY src/client/package.json src/client/
COPY src/console/package.json src/console/
COPY src/emulator/package.json src/emulator/
COPY src/webhooks/package.json src/webhooks/
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts
COPY tsconfig.json LICENSE ./
COPY src ./src
RUN npm run build

# What the service needs when it runs, and nothing to build or test with; the database is never the embedded one
FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts --omit=dev --omit=optional --workspaces=false

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title=connected-payments org.opencontainers.image.version=0.1.0 \
  org.opencontainers.image.licenses=MIT
ENV NODE_ENV=production MODE=production HOST=0.0.0.0 PORT=8080
WORKDIR /app
# What the bundles in dist leave outside: OpenTelemetry's packages
COPY --from=dependencies /app/node_modules/@opentelemetry ./node_modules/@opentelemetry
# The programs, and what they serve. The modules beside them are for teams that embed the service
COPY --from=build /app/dist/app/main.js ./dist/app/
COPY --from=build /app/dist/app/cli/main.js ./dist/app/cli/
COPY --from=build /app/dist/chunks ./dist/chunks
COPY --from=build /app/dist/console ./dist/console
COPY --from=build /app/dist/docs ./dist/docs
COPY --from=build /app/dist/packages ./dist/packages
COPY --from=build /app/dist/third-party-licences.txt ./dist/
# The guides that are served at /docs
COPY --from=build /app/src/docs ./src/docs
COPY package.json LICENSE ./
# The command line: docker exec … connected-payments migrate
RUN ln -s /app/dist/app/cli/main.js /usr/local/bin/connected-payments && chmod +x dist/app/cli/main.js
# The image's user `node`, by number: Kubernetes' runAsNonRoot can't judge a name
USER 1000:1000
EXPOSE 8080
# Of every role: a worker serves its health on the same port
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/ready`, { signal: AbortSignal.timeout(2500) }).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Node 24's own nursery is of 64 MB, which holds 100 MB more at the same rate. A worker's heap is of 768 MB at most, so that
# V8 collects garbage sooner, which saves another 60 MB; what a worker may hold, 2,304 events of 256 KiB, fits. V8 takes the
# sizes when it starts, not later: hence the shell
CMD ["sh", "-c", "exec node --max-semi-space-size=16 $([ \"$ROLES\" = worker ] && echo --max-old-space-size=768) dist/app/main.js"]
