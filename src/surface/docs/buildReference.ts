import { packageRoot } from "../../platform/settings/PackageFolders.ts"
import { writeLargeDocuments } from "./LargeDocuments.ts"

/** Writes the API reference's large documents into `dist`, for the package and the image: a part of `npm run build`. */
await writeLargeDocuments(new URL("dist/docs/", packageRoot))
