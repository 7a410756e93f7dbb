/**
 * The style of checkout pages, light and dark. Contrast is at least 4.5:1 for text and 3:1 for borders and focus; touch
 * targets are at least 44 px high; nothing scrolls sideways at 320 px.
 */
export const payStyle = `:root{color-scheme:light dark;--text:#1a1a1a;--soft:#4a4a4a;--back:#fff;--line:#767676;--act:#1f2937;--on:#fff;--bad:#a8001c;--focus:#1d4ed8;--test:#4a3500;--testback:#fff3c4}
@media(prefers-color-scheme:dark){:root{--text:#f2f2f2;--soft:#c9c9c9;--back:#161616;--line:#8f8f8f;--act:#e5e7eb;--on:#111;--bad:#ff9c93;--focus:#93c5fd;--test:#ffe9a8;--testback:#3d2f00}}
*{box-sizing:border-box}
body{margin:0;font:1.0625rem/1.5 system-ui,sans-serif;color:var(--text);background:var(--back);overflow-wrap:anywhere}
main{max-width:32rem;margin:0 auto;padding:1rem 1rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:1rem 0 .5rem}
h2{font-size:1.0625rem;margin:0}
img{display:block;max-width:100%;height:auto;border-radius:.5rem;margin:0 0 1rem}
p{margin:.5rem 0}
.text{white-space:pre-line}
.soft{color:var(--soft)}
ul{list-style:none;margin:1.5rem 0;padding:0;border-top:1px solid var(--line)}
li{padding:1rem 0;border-bottom:1px solid var(--line)}
label{display:block;margin:.5rem 0 .25rem}
input{font:inherit;color:inherit;background:var(--back);width:8rem;max-width:100%;min-height:2.75rem;padding:.5rem .75rem;border:1px solid var(--line);border-radius:.375rem}
input[aria-invalid]{border:2px solid var(--bad)}
button{font:inherit;font-weight:600;width:100%;min-height:3rem;padding:.75rem 1rem;color:var(--on);background:var(--act);border:1px solid var(--act);border-radius:.5rem;cursor:pointer}
a{color:inherit}
:focus-visible{outline:3px solid var(--focus);outline-offset:2px}
.bad{color:var(--bad);font-weight:600}
.alert{border:2px solid var(--bad);border-radius:.5rem;padding:.75rem 1rem;margin:1rem 0}
.test{color:var(--test);background:var(--testback);border:2px solid var(--test);border-radius:.5rem;padding:.75rem 1rem;margin:0 0 1rem}
.total{font-weight:600}
`
