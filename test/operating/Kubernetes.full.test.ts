import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { BlockList } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Ajv } from "ajv"
import { Duration } from "effect"
import type { Deployment } from "kubernetes-types/apps/v1.d.ts"
import type { Container, PodSpec } from "kubernetes-types/core/v1.d.ts"
import type { NetworkPolicyEgressRule } from "kubernetes-types/networking/v1.d.ts"
import { createGenerator } from "ts-json-schema-generator"
import { parse, parseAllDocuments } from "yaml"
import { serviceCommands } from "../../src/app/cli/commands/Service.ts"
import { metricTable } from "../../src/platform/telemetry/Metrics.ts"
import { operations } from "../../src/surface/contract/Api.ts"
import { documentedInProduction, documentedSettings } from "../../src/surface/docs/GuideTables.ts"
import type { KubernetesManifests } from "./KubernetesManifests.ts"
import { build, forEachObject, type Manifest } from "./Kustomize.ts"

// What is checked in for Kubernetes, with the example's overlay applied, held against Kubernetes' own schemas and against
// the service that it runs

const root = fileURLToPath(new URL("../../", import.meta.url))
const folder = join(root, "src/operating/kubernetes")
const overlay = join(folder, "overlays/example")
const manifests = build(overlay)

/** The same with its database beside it, on CloudNativePG. */
const overlayWithDatabase = join(folder, "overlays/cloudnative-pg")
const manifestsWithDatabase = build(overlayWithDatabase)
const text = (file: string) => readFileSync(join(root, file), "utf8")

/** The manifests of a kind; the schemas, which a test of its own applies, say that they have its form. */
const ofKind = <Kind extends keyof KubernetesManifests>(kind: Kind) =>
  manifests.filter((manifest) => manifest.kind === kind) as unknown as ReadonlyArray<KubernetesManifests[Kind]>

const deployments = ofKind("Deployment")

const pods: ReadonlyArray<{ readonly name: string; readonly spec: PodSpec; readonly labels: Record<string, string> }> =
  [...deployments, ...ofKind("Job")].map(({ metadata, spec }) => ({
    name: metadata?.name ?? "",
    spec: spec?.template?.spec ?? { containers: [] },
    labels: { ...spec?.template?.metadata?.labels }
  }))

const containerOf = ({ containers }: PodSpec): Container => {
  expect(containers).toHaveLength(1)
  return containers[0] ?? { name: "" }
}

const settings = { ...ofKind("ConfigMap")[0]?.data }

const schemas = createGenerator({
  path: fileURLToPath(new URL("./KubernetesManifests.ts", import.meta.url)),
  tsconfig: join(root, "tsconfig.json"),
  type: "KubernetesManifests",
  additionalProperties: false,
  skipTypeCheck: true
}).createSchema("KubernetesManifests")

// A quantity is a class in the types of CloudNativePG's resource, with its value inside
for (const definition of Object.values(schemas.definitions ?? {})) {
  if (typeof definition !== "object" || Object.keys(definition.properties ?? {}).join() !== "value") continue
  for (const field of ["properties", "required", "additionalProperties"] as const) delete definition[field]
  definition.type = ["number", "string"]
}

const kustomize = ["kustomize", "kubectl"].find(
  (file) => spawnSync(file, ["version", "--client"], { stdio: "ignore" }).status === 0
)

describe("the manifests for Kubernetes", () => {
  it("have the form that Kubernetes requires, and no field that it does not know", () => {
    const ajv = new Ajv({ strict: false, allErrors: true, formats: { "date-time": true } }).addSchema({
      $id: "kubernetes",
      definitions: schemas.definitions ?? {}
    })
    const problemsOf = (manifest: Manifest) => {
      const validate = ajv.getSchema(`kubernetes#/definitions/KubernetesManifests/properties/${manifest.kind}`)
      if (validate === undefined) return [`${manifest.kind} is none of the known kinds`]
      return validate(manifest) === true
        ? []
        : (validate.errors ?? []).map(({ instancePath, message, params }) =>
            [manifest.kind, manifest.metadata.name, instancePath, message, JSON.stringify(params)].join(" ")
          )
    }
    expect(manifests.length).toBeGreaterThan(12)
    expect(manifestsWithDatabase.length).toBe(manifests.length + 1)
    expect([...manifests, ...manifestsWithDatabase].flatMap(problemsOf)).toEqual([])

    // It would find a misspelt field, a wrong type, a missing one and a value that there is not
    const broken = (of: string, part: string, change: (object: Record<string, unknown>) => void) => {
      const original = manifestsWithDatabase.find(({ kind }) => kind === of)
      const copy: Manifest = structuredClone(original ?? { apiVersion: "", kind: "", metadata: { name: "" } })
      forEachObject(copy, (object) => {
        if (part in object) change(object)
      })
      return problemsOf(copy)
    }
    expect(broken("Deployment", "livenessProbe", () => {})).toEqual([])
    const container = (change: (object: Record<string, unknown>) => void) =>
      broken("Deployment", "livenessProbe", change)
    expect(container((object) => Object.assign(object, { readinesProbe: {} }))).not.toEqual([])
    expect(container((object) => Object.assign(object, { ports: "8080" }))).not.toEqual([])
    expect(container((object) => delete object["name"])).not.toEqual([])
    const cluster = (change: (object: Record<string, unknown>) => void) => broken("Cluster", "method", change)
    expect(cluster(() => {})).toEqual([])
    expect(cluster((object) => Object.assign(object, { numbers: 1 }))).not.toEqual([])
    expect(cluster((object) => Object.assign(object, { number: "1" }))).not.toEqual([])
    expect(cluster((object) => delete object["number"])).not.toEqual([])
    expect(cluster((object) => Object.assign(object, { method: "some" }))).not.toEqual([])
  })

  it.skipIf(kustomize === undefined).each([
    [overlay, manifests],
    [overlayWithDatabase, manifestsWithDatabase]
  ])("are what kustomize makes of them (skipped where it is not installed): %s", (directory, ours) => {
    const args = kustomize === "kustomize" ? ["build", directory] : ["kustomize", directory]
    const { status, stderr, stdout } = spawnSync(kustomize ?? "", args, { encoding: "utf8" })
    expect(status, stderr).toBe(0)
    const hash = /(?<="name":"connected-payments)-[a-z0-9]{10}(?=")/g
    const byName = (all: ReadonlyArray<unknown>) =>
      all
        .map((manifest) => JSON.stringify(manifest).replace(hash, ""))
        .map((json) => JSON.parse(json) as Manifest)
        .toSorted((a, b) => (`${a.kind} ${a.metadata.name}` < `${b.kind} ${b.metadata.name}` ? -1 : 1))
    const theirs = parseAllDocuments(stdout).map((document) => document.toJS() as unknown)
    expect(byName(ours)).toEqual(byName(theirs))
  })

  it("give each process every setting that production requires, and no setting that there is not", () => {
    const required = documentedInProduction("required")
    for (const { name, spec } of pods) {
      const { env = [], envFrom = [] } = containerOf(spec)
      // The secret may have any setting: those that production requires, and others that are secrets
      expect(envFrom, name).toEqual([
        { configMapRef: { name: "connected-payments" } },
        { secretRef: { name: "connected-payments" } }
      ])
      const given = [...Object.keys(settings), ...env.map((variable) => variable.name)]
      const inSecret = /^The keys in .*?\n\n/ms.exec(
        text("src/docs/guides/deploying.md").replace(/.*?(?=The keys in)/s, "")
      )?.[0]
      expect(
        required.filter((setting) => !given.includes(setting) && inSecret?.includes(`\`${setting}\``) !== true),
        name
      ).toEqual([])
      // Two of the pod itself, for a value that refers to them
      const own = new Set(["POD_NAME", "POD_NAMESPACE"])
      const unknown = given.filter(
        (setting) => !documentedSettings.includes(setting) && !setting.startsWith("OTEL_") && !own.has(setting)
      )
      expect(unknown, name).toEqual([])
      expect(new Set(given).size, name).toBe(given.length)
      for (const { value = "" } of env) {
        for (const [, variable = ""] of value.matchAll(/\$\((\w+)\)/g)) expect(given).toContain(variable)
      }
    }
    expect(documentedInProduction("refused").filter((setting) => setting in settings)).toEqual([])
  })

  it("hold no secret", () => {
    expect(manifests.map(({ kind }) => kind)).not.toContain("Secret")
    const secret = /(?:_URL=postgres|smtps?:\/\/|sk_(?:live|test)_|whsec_|_KEYS?$|_SECRETS$)/
    for (const [name, value] of Object.entries(settings)) expect(`${name}=${value}`).not.toMatch(secret)
    for (const { spec } of pods) {
      for (const { name, value } of containerOf(spec).env ?? []) {
        if (value !== undefined) expect(`${name}=${value}`).not.toMatch(secret)
      }
    }
  })

  it("run the image's own command, as api and as worker, and migrations before them", () => {
    const dockerfile = text("Dockerfile")
    const version = (JSON.parse(text("package.json")) as { readonly version: string }).version
    const roles = deployments.map(({ metadata, spec }) => {
      const container = containerOf(spec?.template.spec ?? { containers: [] })
      expect([container.command, container.args]).toEqual([undefined, undefined])
      const role = container.env?.find(({ name }) => name === "ROLES")?.value
      expect(metadata?.name).toBe(`connected-payments-${role}`)
      return role
    })
    expect(roles.toSorted()).toEqual(["api", "worker"])
    for (const { spec } of pods) expect(containerOf(spec).image).toBe(`registry.example/connected-payments:${version}`)
    const [job] = ofKind("Job")
    const [file, command] = containerOf(job?.spec?.template.spec ?? { containers: [] }).command ?? []
    expect(dockerfile).toMatch(new RegExp(`RUN ln -s \\S+ /usr/local/bin/${file} `))
    expect(serviceCommands.map(({ name }) => name)).toContain(command)
  })

  it("ask for health where it is served, and give a process the time that its shutdown takes", () => {
    const served = operations.map(({ path }) => path)
    const [delay, timeout] = ["SHUTDOWN_DELAY", "SHUTDOWN_TIMEOUT"].map((name) =>
      Duration.toSeconds(Duration.decode((settings[name] ?? "") as Duration.DurationInput))
    )
    for (const { metadata, spec } of deployments) {
      const pod = spec?.template.spec ?? { containers: [] }
      const { livenessProbe, ports, readinessProbe, startupProbe } = containerOf(pod)
      expect(ports).toEqual([{ name: "http", containerPort: Number(settings["PORT"]) }])
      for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
        expect(probe?.httpGet?.port, metadata?.name).toBe("http")
        expect(served).toContain(probe?.httpGet?.path)
      }
      expect([startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet?.path)).toEqual([
        "/health/live",
        "/health/live",
        "/health/ready"
      ])
      // As long as a start may wait for another process's migrations
      expect((startupProbe?.periodSeconds ?? 0) * (startupProbe?.failureThreshold ?? 0)).toBeGreaterThan(300)
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual((delay ?? 0) + (timeout ?? 0) + 5)
    }
    expect(settings["HOST"]).toBe("0.0.0.0")
  })

  it("let a process do nothing but its work", () => {
    for (const { name, spec } of pods) {
      expect(spec, name).toMatchObject({
        serviceAccountName: "connected-payments",
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } }
      })
      expect(containerOf(spec).securityContext, name).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] }
      })
      for (const forbidden of ["hostNetwork", "hostPID", "hostIPC"]) expect(spec).not.toHaveProperty(forbidden)
      const [temporary, authority, ...others] = spec.volumes ?? []
      expect([temporary?.emptyDir?.medium, authority?.secret?.optional, others]).toEqual(["Memory", true, []])
    }
    expect(text("Dockerfile")).toMatch(/^USER 1000:1000$/m)
    expect(ofKind("ServiceAccount").map((account) => account.automountServiceAccountToken)).toEqual([false])
  })

  it("ask for the memory that a process takes at full speed, and allow what its heap may grow to", () => {
    const [, worker, api] =
      /takes some\s(\d+) MB at full speed, a process with both roles (\d+)/.exec(text("src/docs/guides/running.md")) ??
      []
    const heap = /--max-old-space-size=(\d+)/.exec(text("Dockerfile"))?.[1]
    const mebibytes = (quantity: unknown) => {
      const [, number, unit] = /^(\d+)(Mi|Gi)$/.exec(String(quantity)) ?? []
      return Number(number) * (unit === "Gi" ? 1024 : 1)
    }
    const resourcesOf = (role: string) => {
      const deployment = deployments.find(({ metadata }) => metadata?.name === `connected-payments-${role}`)
      return containerOf(deployment?.spec?.template.spec ?? { containers: [] }).resources
    }
    for (const [role, documented] of [
      ["worker", Number(worker)],
      ["api", Number(api)]
    ] as const) {
      const { limits, requests } = resourcesOf(role) ?? {}
      expect(mebibytes(requests?.["memory"])).toBeGreaterThan(documented)
      expect(mebibytes(requests?.["memory"])).toBeLessThan(documented * 1.5)
      expect(limits?.["cpu"]).toBeUndefined()
      expect(mebibytes(limits?.["memory"])).toBeGreaterThan(Number(heap) * 1.2)
    }
  })
})

describe("the overlay with CloudNativePG", () => {
  it("reaches the database that it creates, and checks its certificate", () => {
    const [cluster] = manifestsWithDatabase.filter(({ kind }) => kind === "Cluster")
    const name = cluster?.metadata.name
    const own = JSON.stringify(manifestsWithDatabase)
    expect(own).toContain(`"podSelector":{"matchLabels":{"cnpg.io/cluster":"${name}"}}`)
    expect(own.match(new RegExp(`"secretName":"${name}-ca"`, "g"))).toHaveLength(pods.length)
    const urls = [...text(`${overlayWithDatabase.slice(root.length)}/kustomization.yaml`).matchAll(/_URL=(\S+)/g)]
    expect(urls.map(([, url = ""]) => new URL(url).hostname)).toEqual([`${name}-rw`, `${name}-ro`])
    const mounted = /"mountPath":"([^"]*)","readOnly":true/.exec(own)?.[1]
    for (const [, url = ""] of urls) expect(new URL(url).searchParams.get("sslrootcert")).toBe(`${mounted}/ca.crt`)
  })
})

describe("the selectors", () => {
  it("of deployments, budgets, spreads and services select their own pods alone", () => {
    const selects = (selector: Record<string, string> = {}) =>
      pods
        .filter(({ labels }) => Object.entries(selector).every(([label, value]) => labels[label] === value))
        .map(({ name }) => name)
    for (const { metadata, spec } of deployments) {
      const own = [metadata?.name]
      expect(selects(spec?.selector.matchLabels)).toEqual(own)
      const spreads = spec?.template.spec?.topologySpreadConstraints ?? []
      expect(spreads.map(({ topologyKey }) => topologyKey)).toEqual([
        "topology.kubernetes.io/zone",
        "kubernetes.io/hostname"
      ])
      for (const { labelSelector } of spreads) expect(selects(labelSelector?.matchLabels)).toEqual(own)
      const budget = ofKind("PodDisruptionBudget").find((one) => one.metadata?.name === metadata?.name)
      expect(selects(budget?.spec?.selector?.matchLabels)).toEqual(own)
    }
    for (const { spec } of ofKind("Service")) expect(selects(spec?.selector)).toEqual(["connected-payments-api"])
    const policies = ofKind("NetworkPolicy").map(({ spec }) => selects(spec?.podSelector.matchLabels))
    expect(policies).toEqual([pods.map(({ name }) => name), ["connected-payments-api"]])
  })
})

describe("the network", () => {
  const policy = ofKind("NetworkPolicy").find(({ metadata }) => metadata?.name === "connected-payments")
  const rules: ReadonlyArray<NetworkPolicyEgressRule> = policy?.spec?.egress ?? []

  const portsTo = (address: string) => {
    const family = address.includes(":") ? "ipv6" : "ipv4"
    const holds = (cidr: string) => {
      const [network = "", prefix = "0"] = cidr.split("/")
      const list = new BlockList()
      list.addSubnet(network, Number(prefix), network.includes(":") ? "ipv6" : "ipv4")
      return network.includes(":") === address.includes(":") && list.check(address, family)
    }
    return rules
      .filter(({ to = [] }) =>
        to.some(({ ipBlock }) => ipBlock !== undefined && holds(ipBlock.cidr) && !(ipBlock.except ?? []).some(holds))
      )
      .flatMap(({ ports = [] }) => ports.map(({ port }) => port))
  }

  it("lets processes reach the provider, destinations, the mail relay and the database", () => {
    for (const address of ["93.184.216.34", "2606:4700::1111"]) expect(portsTo(address)).toEqual([443, 465, 587])
    expect(portsTo("10.20.30.40")).toEqual([5432])
  })

  it("lets them reach neither the cloud's metadata, nor the cluster, nor anything else that is private", () => {
    for (const address of [
      "169.254.169.254",
      "169.254.170.2",
      "fd00:ec2::254",
      "100.100.100.200",
      "10.96.0.1",
      "10.20.30.41",
      "172.20.0.1",
      "192.168.1.1",
      "127.0.0.1",
      "::1",
      "fe80::1",
      "64:ff9b::a9fe:a9fe",
      "2002:a9fe:a9fe::1"
    ]) {
      expect([address, portsTo(address)]).toEqual([address, []])
    }
  })

  it("lets nobody in but the ingress controller, to the API", () => {
    expect(policy?.spec?.policyTypes).toEqual(["Ingress", "Egress"])
    expect(policy?.spec?.ingress).toEqual([])
    const [open, ...others] = ofKind("NetworkPolicy").filter(({ metadata }) => metadata?.name !== "connected-payments")
    expect(others).toEqual([])
    expect(open?.spec?.ingress?.map(({ ports }) => ports)).toEqual([[{ protocol: "TCP", port: "http" }]])
  })
})

describe("the scaling", () => {
  const autoscalers = ofKind("HorizontalPodAutoscaler")
  const adapter = parse(readFileSync(join(overlay, "prometheus-adapter.yaml"), "utf8")) as {
    readonly rules: Record<
      "custom" | "external",
      ReadonlyArray<{
        readonly seriesQuery: string
        readonly name: { readonly as: string }
        readonly metricsQuery: string
      }>
    >
  }

  it("is of deployments that there are, which leave their number to it", () => {
    const names = deployments.map(({ metadata }) => metadata?.name)
    expect(autoscalers.map(({ spec }) => spec?.scaleTargetRef.name).toSorted()).toEqual(names.toSorted())
    expect(deployments.map(({ spec }: Deployment) => spec?.replicas)).toEqual([undefined, undefined])
    for (const { spec } of autoscalers) expect(spec?.minReplicas).toBeGreaterThanOrEqual(2)
  })

  it("asks for metrics that the adapter's example serves, of metrics that the service exports", () => {
    const metrics = autoscalers.flatMap(({ spec }) => spec?.metrics ?? [])
    const names = (kind: "custom" | "external") => adapter.rules[kind].map(({ name }) => name.as)
    expect(metrics.flatMap(({ pods: pod }) => (pod === undefined ? [] : [pod.metric.name]))).toEqual(names("custom"))
    expect(metrics.flatMap(({ external }) => (external === undefined ? [] : [external.metric.name]))).toEqual(
      names("external")
    )
    const exported = Object.entries(metricTable).map(([name, { kind, unit }]) =>
      [name.replaceAll(".", "_"), unit === "s" ? "_seconds" : "", kind === "histogram" ? "_count" : ""].join("")
    )
    for (const { seriesQuery } of [...adapter.rules.custom, ...adapter.rules.external]) {
      expect(exported).toContain(seriesQuery.replace(/\{.*/, ""))
    }
    // The whole installation's, which each process reports
    expect(adapter.rules.external[0]?.metricsQuery).toMatch(/^max by/)
  })
})
