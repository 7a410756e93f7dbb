import { render } from "preact"
import { App } from "./App.tsx"
import { loadSession } from "./state/Session.ts"
import { applyTheme } from "./state/Theme.ts"

applyTheme()
void loadSession()

const root = document.getElementById("console")
if (root !== null) render(<App />, root)
