import type { ComponentChildren } from "preact"
import { usePageHeading } from "../components/Page.tsx"
import { ThemeSwitch } from "./AccountMenu.tsx"
import { Brand } from "./Brand.tsx"

export const PlainPage = (props: { readonly title: string; readonly children?: ComponentChildren }) => {
  const heading = usePageHeading(props.title)
  return (
    <main class="plain" id="main">
      <div class="plain-card">
        <Brand />
        <h1 ref={heading} tabIndex={-1}>
          {props.title}
        </h1>
        {props.children}
      </div>
      <div class="plain-footer">
        <ThemeSwitch />
      </div>
    </main>
  )
}
