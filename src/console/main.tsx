import { render } from "preact"
import { App } from "./App.tsx"
import { loadSession } from "./state/Session.ts"

void loadSession()

const root = document.getElementById("console")
if (root !== null) render(<App />, root)
