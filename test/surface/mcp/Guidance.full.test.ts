import { spawnSync } from "node:child_process"
import { Effect } from "effect"
import { onSharedService, TestService } from "../../harness/TestService.ts"
import { expect } from "../../harness/Tests.ts"
import { overHttp } from "./McpClient.ts"

/** What the engines that guide models' function calling make of the tools' arguments. */

const python = process.env["PYTHON"] ?? "python3"
const hasEngines = spawnSync(python, ["-c", "import llguidance, outlines_core"]).status === 0
const note = hasEngines ? "" : " (skipped: llguidance and outlines-core of PyPI are not installed)"

/** Prints the tools that an engine refuses, with its reason. */
const script = `
import json, sys
from llguidance import LLMatcher, LLTokenizer
from outlines_core.json_schema import build_regex_from_schema
tokenizer = LLTokenizer("byte")
for name, schema in json.load(sys.stdin).items():
    refusal = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(schema), tokenizer)
    if refusal: print(name, "llguidance", refusal)
    try: build_regex_from_schema(json.dumps(schema))
    except Exception as refusal: print(name, "outlines-core", refusal)
print("done")
`

onSharedService("the tools' arguments", (it) => {
  it.scoped.skipIf(!hasEngines)(`are understood by llguidance and outlines-core${note}`, function* () {
    const { baseUrl, organization } = yield* TestService
    const { client } = yield* overHttp(baseUrl, organization.testKey)
    const { tools } = yield* Effect.promise(() => client.listTools())
    expect(tools.length).toBeGreaterThan(60)
    const input = JSON.stringify(Object.fromEntries(tools.map(({ inputSchema, name }) => [name, inputSchema])))
    expect(spawnSync(python, ["-c", script], { input, encoding: "utf8" })).toMatchObject({
      stdout: "done\n",
      stderr: ""
    })
  })
})
