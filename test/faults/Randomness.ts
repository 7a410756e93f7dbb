import { Utils } from "effect"

/** The seed of everything that these tests draw: printed, and another one with `FAULTS_SEED`. */
export const seed = Number(process.env["FAULTS_SEED"] ?? 20_260_131)

/** Numbers drawn from the seed; which moment of the processes' lives they hit is not in the seed's hands. */
export class Randomness {
  readonly #numbers = new Utils.PCGRandom(seed)

  between(min: number, max: number): number {
    return min + Math.floor(this.#numbers.number() * (max - min + 1))
  }

  isTrue(probability: number): boolean {
    return this.#numbers.number() < probability
  }

  oneOf<A>(items: readonly [A, ...ReadonlyArray<A>]): A {
    return items[this.between(0, items.length - 1)] ?? items[0]
  }
}
