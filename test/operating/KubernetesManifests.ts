import type { ClusterSpec } from "@cdk8s-kit/crds/pg"
import type { Deployment } from "kubernetes-types/apps/v1.d.ts"
import type { HorizontalPodAutoscaler } from "kubernetes-types/autoscaling/v2.d.ts"
import type { Job } from "kubernetes-types/batch/v1.d.ts"
import type { ConfigMap, Namespace, Service, ServiceAccount } from "kubernetes-types/core/v1.d.ts"
import type { ObjectMeta } from "kubernetes-types/meta/v1.d.ts"
import type { Ingress, NetworkPolicy } from "kubernetes-types/networking/v1.d.ts"
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.d.ts"

/**
 * The manifests that ours may be, by their kind. JSON Schemas are made of these types when the tests run: the package has
 * them from Kubernetes' own OpenAPI document, and a type, unlike that document, has no properties that are not named.
 */
export interface KubernetesManifests {
  readonly Deployment: Deployment
  readonly HorizontalPodAutoscaler: HorizontalPodAutoscaler
  readonly Job: Job
  readonly ConfigMap: ConfigMap
  readonly Namespace: Namespace
  readonly Service: Service
  readonly ServiceAccount: ServiceAccount
  readonly Ingress: Ingress
  readonly NetworkPolicy: NetworkPolicy
  readonly PodDisruptionBudget: PodDisruptionBudget
  /** CloudNativePG's: the types are made from the operator's own definition of the resource. */
  readonly Cluster: {
    readonly apiVersion: "postgresql.cnpg.io/v1"
    readonly kind: "Cluster"
    readonly metadata: ObjectMeta
    readonly spec: ClusterSpec
  }
}
