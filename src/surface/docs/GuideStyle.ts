/** The style of the guides: one column on a phone, contents next to the text on a wider screen, light and dark. */
export const guideStyle = `:root {
  color-scheme: light dark;
  --text: #1c2430; --quiet: #5b6675; --back: #fff; --raised: #f5f7fa; --line: #dde3ea; --link: #0b5cad; --mark: #fff3c4;
}
@media (prefers-color-scheme: dark) {
  :root { --text: #dfe5ec; --quiet: #98a4b3; --back: #12161c; --raised: #1b212a; --line: #303946; --link: #7db8f5; --mark: #4a3f14; }
}
* { box-sizing: border-box }
html { scroll-padding-top: 4.5rem; -webkit-text-size-adjust: 100% }
body { margin: 0; font: 1rem/1.6 system-ui, sans-serif; color: var(--text); background: var(--back); overflow-wrap: break-word }
a { color: var(--link) }
header { position: sticky; top: 0; z-index: 1; display: flex; gap: .75rem 1.25rem; align-items: center;
  padding: .6rem 1rem; background: var(--back); border-bottom: 1px solid var(--line) }
header .home { font-weight: 650; color: inherit; text-decoration: none }
header form { display: flex; gap: .4rem; margin-left: auto; flex: 0 1 20rem; min-width: 0 }
input, button { font: inherit; color: inherit; padding: .3rem .6rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--raised) }
input { flex: 1; min-width: 0; width: 100% }
button { cursor: pointer }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px }
.page { max-width: 82rem; margin: 0 auto }
main { padding: 0 1rem 3rem; min-width: 0; max-width: 66rem }
main > :not(.table) { max-width: 48rem }
main > :first-child { margin-top: 1.5rem }
h1 { font-size: 1.9rem; line-height: 1.2 }
h2 { font-size: 1.35rem; line-height: 1.3; margin: 2.4rem 0 .8rem; padding-top: .4rem }
h3 { font-size: 1.08rem; margin: 1.8rem 0 .6rem }
.anchor { text-decoration: none; color: var(--quiet); opacity: 0; font-weight: 400 }
:is(h2, h3, h4):hover .anchor, .anchor:focus { opacity: 1 }
code { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: var(--raised); border-radius: .25rem; padding: .1em .3em }
pre { overflow-x: auto; padding: .9rem 1rem; background: var(--raised); border: 1px solid var(--line); border-radius: .5rem }
pre code { padding: 0; background: none; overflow-wrap: normal }
.table { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: .925rem; min-width: 100% }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem; border-bottom: 1px solid var(--line); min-width: 6rem }
th { color: var(--quiet); font-weight: 600 }
td:last-child { min-width: 12rem }
li { margin: .25rem 0 }
li:has(> a[id]) { list-style: none; margin: .7rem 0 .7rem -1.2rem }
:is(section:target, li:has(> :target), tr:has(:target)) { background: var(--mark) }
section { padding: .1rem 0; border-bottom: 1px solid var(--line) }
section h3 { margin: 1rem 0 .2rem }
section p { margin: .4rem 0 }
small { color: var(--quiet); font-weight: 400 }
nav { padding: 1rem; border-top: 1px solid var(--line); background: var(--raised) }
nav h2 { font-size: .8rem; letter-spacing: .04em; text-transform: uppercase; color: var(--quiet); margin: .9rem 0 .2rem; padding: 0 }
nav h2:first-child { margin-top: 0 }
nav ul { list-style: none; margin: 0; padding: 0 }
nav li { margin: 0 }
nav a { display: block; padding: .12rem .6rem; font-size: .94rem; color: inherit; text-decoration: none; border-radius: .35rem }
nav a:hover { text-decoration: underline }
nav a[aria-current] { font-weight: 650; background: var(--line) }
nav li li a { padding-left: 1.5rem; color: var(--quiet); font-size: .86rem }
nav li li li a { padding-left: 2.4rem }
.found { list-style: none; padding: 0 }
.found li { margin: 1.2rem 0 }
.found p { margin: .2rem 0; color: var(--quiet) }
dl dt { margin-top: .9rem; font-weight: 600 }
dl dd { margin: 0; color: var(--quiet) }
dl dd p { margin: 0 }
h4 { margin: 1.2rem 0 .4rem }
section pre { max-height: 26rem; overflow-y: auto }
.route code { display: block; padding: .5rem .7rem }
.fields dt { margin-top: .55rem; font-weight: 400; color: var(--text) }
.fields dt code { font-weight: 650 }
.fields .fields { margin: .2rem 0 .6rem .2rem; padding-left: .9rem; border-left: 2px solid var(--line) }
.errors { display: grid; grid-template-columns: 3rem minmax(0, 1fr); gap: .3rem .6rem }
.errors dt { margin: 0 }
summary { cursor: pointer; font-weight: 600; padding: .3rem 0 .6rem }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
@media (max-width: 60rem) { nav a { padding: .45rem .6rem } }
@media (max-width: 30rem) {
  header .home { font-size: .95rem }
  header { flex-wrap: wrap }
  header form { flex: 1 1 100%; order: 3 }
  header .to-contents { margin-left: auto }
  header button { display: none }
  html { scroll-padding-top: 7rem }
}
@media (min-width: 60rem) {
  .page { display: grid; grid-template-columns: 17rem minmax(0, 1fr) }
  nav { grid-column: 1; grid-row: 1; border: 0; background: none; padding: 1.5rem 1rem;
    position: sticky; top: 3.6rem; max-height: calc(100vh - 3.6rem); overflow-y: auto; align-self: start }
  main { grid-column: 2; grid-row: 1; padding: 0 2.5rem 4rem }
  .to-contents { display: none }
}
@media print { header, nav, .anchor { display: none } pre { white-space: pre-wrap } }
`
