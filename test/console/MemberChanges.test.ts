import { describe, expect, it } from "@effect/vitest"
import { memberChanges } from "../../src/console/pages/people/memberChanges.ts"

const developer = { role: "developer", environments: ["sandbox", "production"] } as const

describe("what is sent of a member whom a form changes", () => {
  it("is nothing but the workspaces if only they were changed: somebody may have taken the role from them meanwhile", () => {
    expect(memberChanges(developer, { role: "developer", environments: ["sandbox"] })).toEqual({
      environments: ["sandbox"]
    })
    expect(memberChanges(developer, { role: "developer", environments: ["production", "sandbox"] })).toEqual({})
  })

  it("is the workspaces beside a new role, unless that enters all", () => {
    expect(memberChanges(developer, { ...developer, role: "viewer" })).toEqual({
      role: "viewer",
      environments: ["sandbox", "production"]
    })
    expect(memberChanges(developer, { ...developer, role: "admin" })).toEqual({ role: "admin" })
    expect(
      memberChanges({ role: "admin", environments: ["sandbox", "production"] }, { ...developer, role: "admin" })
    ).toEqual({})
  })
})
