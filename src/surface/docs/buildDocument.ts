import { mkdir, writeFile } from "node:fs/promises"
import { packageRoot } from "../../platform/settings/PackageFolders.ts"
import { openApiDocument } from "./OpenApiDocument.ts"
import { builtOpenApi } from "./OpenApiText.ts"

/** Writes the OpenAPI document into `dist`, for the package and the image: a part of `npm run build`. */
const file = new URL(`dist/${builtOpenApi}`, packageRoot)
await mkdir(new URL(".", file), { recursive: true })
await writeFile(file, JSON.stringify(openApiDocument()))
